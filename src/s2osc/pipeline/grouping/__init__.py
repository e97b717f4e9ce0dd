"""The groups of unknown items."""
