"""Solutions of small systems, written out element by element."""
