"""From tiles to threads: passes on the level ``tiles``, and what they share."""
