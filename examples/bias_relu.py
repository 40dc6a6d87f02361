"""One line of a neural network: a bias added to each row, negative numbers cut off."""

import jax
import jax.numpy as jnp


def bias_relu(x: jax.Array, bias: jax.Array) -> jax.Array:
    """Return ``max(x + bias, 0)``; bias is broadcast over the rows."""
    return jnp.maximum(x + bias, 0)


bias_relu.example_args = (  # type: ignore[attr-defined]
    jax.ShapeDtypeStruct((512, 1024), jnp.float32),
    jax.ShapeDtypeStruct((1024,), jnp.float32),
)
