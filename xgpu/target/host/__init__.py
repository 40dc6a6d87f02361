"""Kernels for the processor of this machine: blocks of threads run one after the other, with checks on request."""
