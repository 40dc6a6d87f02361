"""Passes that make concatenations, and change which there are."""
