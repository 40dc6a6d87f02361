"""Modules of the LLVM and NVVM dialects as LLVM IR text, and LLVM in process."""
