"""One answer as a page a colleague can open."""
