"""What we learn from: named data sets, a user's own files, and splits of either."""
