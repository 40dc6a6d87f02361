"""Tiles in shared memory: their layouts, and their places."""
