"""The families of reductions, and what they share."""
