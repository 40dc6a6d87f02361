"""An RMS norm and a product in one kernel: ``xgpu run examples/blocks/norm_linear.py:norm_linear --check``."""

import jax.numpy as jnp
from jax import lax

from xgpu import block

ROWS, COLUMNS, DEPTH = 32, 64, 32


@block.kernel
def norm_linear(x, weight, w, *, eps=1e-6):
    """Return the rows of ``x``, divided by their root mean squares and scaled by a weight, times ``w``."""
    (m, k), (_, n) = x.shape, w.shape
    i, j = block.grid(block.cdiv(m, ROWS), block.cdiv(n, COLUMNS))

    def step(number, carried):
        rows = x.tile((ROWS, DEPTH), (i, number)).astype(jnp.float32)
        scaled = (rows * weight.tile(DEPTH, (number,))).astype(x.dtype)
        product = block.dot(scaled, w.tile((DEPTH, COLUMNS), (number, j)))
        return {"total": carried["total"] + product, "squares": carried["squares"] + jnp.sum(rows * rows, axis=1)}

    # The factor of a row is known after all steps, and is one of the result as well as of the row.
    start = {"total": jnp.zeros((ROWS, COLUMNS)), "squares": jnp.zeros(ROWS)}
    found = block.steps(block.cdiv(k, DEPTH), step, start)
    result = found["total"] * lax.rsqrt(found["squares"] / k + eps)[:, None]
    return block.store(result.astype(x.dtype), (m, n), (i, j))


norm_linear.example_args = ("bf16[70,100]", "f32[100]", "bf16[100,90]")
