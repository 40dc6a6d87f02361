"""Imported modules to operations that xgpu supports, one pass a file; `normalize` goes on from there."""
