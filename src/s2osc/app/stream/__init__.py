"""Streams from files to files."""
