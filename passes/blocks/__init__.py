"""Passes that plan kernels of tiles of the emitter ``block``: each decides one thing, and says it in attributes."""
