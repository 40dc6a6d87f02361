"""The language of par and seq loops: text (`.te`) and Python, both to level ``loops``."""
