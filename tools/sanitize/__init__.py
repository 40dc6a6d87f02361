"""Kernels on tiles on a GPU under compute-sanitizer."""
