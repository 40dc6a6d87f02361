"""Builders of the LLVM dialect, by what they lower."""
