"""Labelled items and pool from different sources: the comparison, and what is done about it."""
