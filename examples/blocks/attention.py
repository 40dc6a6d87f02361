"""Causal attention by online softmax: ``xgpu run examples/blocks/attention.py:attention --check``."""

import jax.numpy as jnp
import numpy as np

from xgpu import block

ROWS, KEYS = 16, 32


@block.kernel
def attention(q, k, v, *, causal=True):
    """Return ``softmax(q @ k.T / sqrt(depth)) @ v`` for each head; a row sees the keys up to its own."""
    (batch, heads, rows, depth), keys = q.shape, k.shape[2]
    number, i = block.grid(batch * heads, block.cdiv(rows, ROWS))
    head = (number // heads, number % heads)
    queries = q.tile((ROWS, depth), (*head, i, 0))

    def step(number, carried):
        largest, total, out = carried
        logits = block.dot(queries, k.tile((KEYS, depth), (*head, number, 0)).T) / np.sqrt(depth)
        key = block.index((ROWS, KEYS), lambda row, column: number * KEYS + column)
        seen = key < keys
        if causal:
            seen = seen & (key <= block.index((ROWS, KEYS), lambda row, column: i * ROWS + row))
        logits = jnp.where(seen, logits, -1e30)
        new = jnp.maximum(largest, jnp.max(logits, axis=1))
        weights, old = jnp.exp(logits - new[:, None]), jnp.exp(largest - new)
        product = block.dot(weights.astype(v.dtype), v.tile((KEYS, depth), (*head, number, 0)))
        return new, total * old + jnp.sum(weights, axis=1), out * old[:, None] + product

    start = jnp.full(ROWS, -1e30), jnp.zeros(ROWS), jnp.zeros((ROWS, depth))
    _, total, out = block.steps(block.cdiv(keys, KEYS), step, start)
    return block.store((out / total[:, None]).astype(q.dtype), q.shape, (*head, i, 0))


attention.example_args = ("bf16[1,2,50,32]",) * 3
