"""Definitions of the operations that `expand-operations` replaces, one or a few a file."""
