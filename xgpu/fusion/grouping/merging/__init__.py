"""Kernels of a grouping that become one, and those that wait for others so that they can."""
