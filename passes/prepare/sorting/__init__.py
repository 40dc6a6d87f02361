"""Sorts as operations that kernels compute."""
