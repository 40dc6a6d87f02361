"""LLVM IR to PTX, and to machine code for the GPU."""
