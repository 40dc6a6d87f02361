"""Rewrites scatters as others whose updates may come in any order."""
