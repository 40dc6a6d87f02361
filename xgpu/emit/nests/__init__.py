"""The emitter of nests: kernels of level ``mapped`` to level ``emitted``."""
