"""Random operations and groups of operations that the planner has kernels or rewrites of their own for."""
