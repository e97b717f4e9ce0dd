"""The jobs from files to files."""
