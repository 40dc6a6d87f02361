"""Measures how far the functions of floats are from the exact ones: ``python -m xgpu.tools.accuracy``."""
