"""Compiled programs as folders that C, C++ and Rust programs build against, with no Python and no XLA."""
