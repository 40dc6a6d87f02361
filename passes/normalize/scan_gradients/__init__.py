"""Gradients of scans: polynomials, their derivatives, the gradient as a scan, and the proof that a program has it."""
