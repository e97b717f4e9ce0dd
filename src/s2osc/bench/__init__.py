"""Experiments: metrics, one record per run, tables made from records."""
