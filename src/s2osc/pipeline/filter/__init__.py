"""From a pool to the items that stand out most: D_out."""
