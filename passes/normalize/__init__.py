"""Rewrites of imported modules to the level `stablehlo`, one pass a file; what several share is in rooms of its own."""
