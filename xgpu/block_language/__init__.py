"""Block programs in Python: JAX code on tiles, from a function to the text of level ``tiles``."""
