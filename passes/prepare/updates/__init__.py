"""Passes of the preparation that rewrite updates of slices, or decide how they are made."""
