"""The host's runtime of block-level operations: asynchronous copies, mbarriers, products of warps."""
