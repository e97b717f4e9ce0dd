"""Who is unknown, and how sure that is."""
