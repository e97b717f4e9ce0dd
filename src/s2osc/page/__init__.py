"""The page people work in: a thin layer over results and streams, and a store of what they did."""
