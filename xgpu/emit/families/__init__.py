"""The families of kernels: schedule and emitter of each in one file."""
