"""Builders and analyses that several passes share."""
