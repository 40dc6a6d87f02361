"""Passes from level ``loops`` to level ``mapped``: each makes one kind of decision and writes it down."""
