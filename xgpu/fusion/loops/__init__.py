"""Loops that become one kernel: what makes them recurrences, and one of their iterations."""
