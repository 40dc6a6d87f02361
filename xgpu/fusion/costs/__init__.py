"""What values cost to recompute, and what kernels read and write."""
