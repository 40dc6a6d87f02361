"""The times of products of matrices: of libraries, of kernels of our own, of aligned and unaligned operands."""
