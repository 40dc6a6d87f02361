"""Concatenations that lie in memory in another shape go through a tile, however much their pieces share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.py.planned import TARGET, planned
from xgpu.options import Options


@pytest.mark.parametrize("operations", [2, 20, 400])
def test_what_pieces_share_is_computed_once_behind_a_reshape(operations: int) -> None:
    """The epilogue follows the concatenation: it computes nothing of what the pieces are computed from again."""

    def stack(x: jax.Array) -> jax.Array:
        shared = x
        for _ in range(operations):
            shared = shared * x + 0.5
        return jnp.stack([shared, shared + x, shared - x, shared * x, -shared, shared * 2], -1).reshape(-1, 2, 3)

    program = planned(stack, ["f32[3001]"], TARGET, Options())
    assert [kernel.emitter for kernel in program.kernels] == ["concatenate_tiled"]
    x = program.random_inputs()[0] / 8
    shared = x
    for _ in range(operations):
        shared = shared * x + np.float32(0.5)
    expected = np.stack([shared, shared + x, shared - x, shared * x, -shared, shared * 2], -1).reshape(-1, 2, 3)
    np.testing.assert_allclose(program.run(x, on="host")[0], expected, rtol=1e-5, atol=1e-5)
