"""Functions of JAX's libraries and programs as people write them, to be measured against ``jax.jit``."""
