"""The passes from level `optimized` to `llvm`, one a file."""
