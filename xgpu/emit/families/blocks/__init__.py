"""Kernels that are written on tiles, of any operations."""
