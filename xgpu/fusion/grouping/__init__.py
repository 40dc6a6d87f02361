"""The values that are stored and the kernels that compute them, with the reasons."""
