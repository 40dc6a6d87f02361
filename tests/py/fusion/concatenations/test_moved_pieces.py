"""Concatenations whose results lie in memory as they are, in another shape: which walk their kernels take."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.py.planned import TARGET, planned
from xgpu.options import Options


@pytest.mark.parametrize(
    ("width", "emitter"), [(1, "concatenate_tiled"), (3, "concatenate_tiled"), (6, "concatenate_tiled"), (600, "loop")]
)
def test_short_pieces_along_any_dimension_are_put_together_in_a_tile(width: int, emitter: str) -> None:
    """Lanes of a loop's warp take a branch for each piece; long ones are read by whole warps."""

    def stack(x: jax.Array) -> jax.Array:
        pieces = [jnp.sin(x), x * x, x + 1, jnp.cos(x), -x, x * 2]
        return jnp.stack(pieces, 1).reshape(x.shape[0], 2, 3, width)

    program = planned(stack, [f"f32[3001,{width}]"], TARGET, Options())
    assert [kernel.emitter for kernel in program.kernels] == [emitter]
    (x,) = program.random_inputs()
    expected = np.stack([np.sin(x), x * x, x + 1, np.cos(x), -x, x * 2], 1).reshape(len(x), 2, 3, width)
    np.testing.assert_allclose(program.run(x, on="host")[0], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("operations", [20, 400])
def test_what_pieces_share_is_computed_once_behind_a_reshape(operations: int) -> None:
    """The epilogue follows the concatenation: it computes nothing of what the pieces are computed from again."""

    def stack(x: jax.Array) -> jax.Array:
        shared = x
        for _ in range(operations):
            shared = shared * x + 0.5
        return jnp.stack([shared, shared + x, shared - x, shared * x, -shared, shared * 2], 1).reshape(-1, 2, 3)

    program = planned(stack, ["f32[3001]"], TARGET, Options())
    assert [kernel.emitter for kernel in program.kernels] == ["concatenate_tiled"]
