"""What the operations that `expand-operations` replaces are short for, one or a few a file."""
