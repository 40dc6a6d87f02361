"""Passes on matrix products: which are computed by kernels, and how their operands lie in memory."""
