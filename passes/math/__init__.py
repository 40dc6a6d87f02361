"""Mathematical functions as arithmetic, a file for each family. The pass `expand-math` writes these."""
