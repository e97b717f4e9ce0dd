"""What is run: protocols, methods, data."""
