"""Rewrites of reductions, windows and scans before the planner, one pass a file."""
