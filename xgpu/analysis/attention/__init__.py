"""Attention in programs: what is attention, and what its masks say."""
