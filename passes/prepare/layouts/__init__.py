"""Passes that choose in which order of dimensions values are computed, and what libraries read."""
