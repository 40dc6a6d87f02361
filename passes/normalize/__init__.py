"""Rewrites of legal modules to level `stablehlo`, one pass a file; what several share is in rooms of its own."""
