"""The passes on emitted kernels, one a file; those before and after, the framework and what passes share have rooms."""
