"""Kernels whose steps have two products, one after the other: the threads of their blocks."""
