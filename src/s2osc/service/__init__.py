"""A saved model over HTTP: what programs ask, and what they get."""
