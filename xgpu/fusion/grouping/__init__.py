"""Which values are stored and which kernel computes them, with the reasons."""
