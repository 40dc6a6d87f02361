"""The passes on kernels, one a file; the framework and what passes share are in rooms of their own."""
