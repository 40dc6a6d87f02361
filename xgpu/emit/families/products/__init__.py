"""Kernels around matrix products."""
