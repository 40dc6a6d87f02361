"""Passes that write what libraries compute elsewhere as operations of kernels, for programs without libraries."""
