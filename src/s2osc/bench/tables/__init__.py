"""Records -> tables."""
