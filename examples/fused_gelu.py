"""A fused feed-forward epilogue: GELU of an activation plus its bias, added to the residual stream, in bfloat16."""

import jax
import jax.numpy as jnp


def gelu_bias_residual(activation: jax.Array, bias: jax.Array, residual: jax.Array) -> jax.Array:
    """Return ``residual + gelu(activation + bias)``; bias is broadcast over the rows."""
    return residual + jax.nn.gelu(activation + bias)


gelu_bias_residual.example_args = (  # type: ignore[attr-defined]
    jax.ShapeDtypeStruct((512, 1024), jnp.bfloat16),
    jax.ShapeDtypeStruct((1024,), jnp.bfloat16),
    jax.ShapeDtypeStruct((512, 1024), jnp.bfloat16),
)
