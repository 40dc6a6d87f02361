"""Shared parts of passes on kernels of tiles: the decisions that are written in the IR."""
