"""Where work on the parts of a pool runs: in this process, or on a Ray cluster."""
