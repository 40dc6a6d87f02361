"""Passes that prepare loops and branches to be run by a host, which launches kernels and computes nothing."""
