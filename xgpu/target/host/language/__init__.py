"""A small language of Python's form for functions that kernels call on this machine, and its compiler to LLVM IR."""
