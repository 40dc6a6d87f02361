"""Passes that look at constants."""
