"""Kernels as foreign functions that XLA calls on the CPU."""
