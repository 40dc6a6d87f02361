"""Floats of few bits as integers: their formats, arithmetic and storage. The pass `expand-floats` writes these."""
