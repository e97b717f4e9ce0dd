"""Weak and strong views of whole batches."""
