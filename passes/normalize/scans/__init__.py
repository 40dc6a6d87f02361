"""Shared parts of passes that find scans; and gradients of scans: polynomials, the gradient as a scan, the proof."""
