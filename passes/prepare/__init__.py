"""Rewrites of StableHLO before the planner, one pass a file; what several of them share is in rooms of its own."""
