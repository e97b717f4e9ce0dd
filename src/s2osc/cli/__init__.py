"""Words into objects, errors into one line."""
