"""The stores: the same file names on every side, one contract suite over all of them."""
