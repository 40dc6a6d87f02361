"""Proofs about the kernels of a package before it ships, from the maps of level `emitted`."""
