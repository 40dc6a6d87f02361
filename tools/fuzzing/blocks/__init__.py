"""Random kernels that are written on tiles: their text, and a command that compares them with XLA."""
