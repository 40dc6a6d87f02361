"""A layer of experts: each token goes to two of them, and its rows are sorted by expert for `lax.ragged_dot`."""

import jax
import jax.numpy as jnp
from jax import lax

_TOP = 2
"""Experts that a token goes to."""


def experts(x: jax.Array, router: jax.Array, gate: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Return what the experts of each token make of it, by their probabilities.

    x: [tokens, width], router: [width, experts], gate and up: [experts, width, hidden], down: [experts, hidden, width].
    """
    weights, chosen = lax.top_k(jax.nn.softmax((x @ router).astype(jnp.float32)), _TOP)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    flat = chosen.reshape(-1)
    order = jnp.argsort(flat)
    sizes = jnp.bincount(flat, length=router.shape[1])
    rows = x[order // _TOP]
    hidden = jax.nn.silu(lax.ragged_dot(rows, gate, sizes)) * lax.ragged_dot(rows, up, sizes)
    made = lax.ragged_dot(hidden, down, sizes) * weights.reshape(-1)[order, None].astype(x.dtype)
    return jnp.zeros_like(x).at[order // _TOP].add(made)


experts.example_args = (  # type: ignore[attr-defined]
    "bf16[2048,2048]",
    "bf16[2048,64]",
    "bf16[64,2048,1408]",
    "bf16[64,2048,1408]",
    "bf16[64,1408,2048]",
)
