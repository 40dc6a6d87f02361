"""Packages tried on a machine that has nothing but a CUDA driver: programs of C, C++ and Rust that are built here."""
