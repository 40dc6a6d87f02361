"""Fourier transforms as operations that kernels compute."""
