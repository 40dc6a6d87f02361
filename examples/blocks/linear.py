"""A product with an activation as a block program: ``xgpu run examples/blocks/linear.py:linear_silu --check``."""

import jax

from xgpu import block

ROWS, COLUMNS, DEPTH = 64, 64, 32
"""The tile of a block, and how much of the contracted dimension a step adds."""


@block.kernel
def linear_silu(x, w):
    """Return ``silu(x @ w)``: each block computes one tile of it."""
    (m, k), (_, n) = x.shape, w.shape
    i, j = block.grid(block.cdiv(m, ROWS), block.cdiv(n, COLUMNS))

    def product(step):
        return block.dot(x.tile((ROWS, DEPTH), (i, step)), w.tile((DEPTH, COLUMNS), (step, j)))

    total = block.accumulate(block.cdiv(k, DEPTH), product)
    return block.store(jax.nn.silu(total).astype(x.dtype), (m, n), (i, j))


linear_silu.example_args = ("bf16[200,100]", "bf16[100,150]")
