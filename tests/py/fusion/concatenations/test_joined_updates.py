"""Concatenations that scatters read: stored by a kernel of their own if their pieces share much."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.py.planned import TARGET, planned
from xgpu import Compiled
from xgpu.options import Options

ROWS = 20011


def _program(steps: int) -> Compiled:
    """Solutions of ``steps`` triangular equations, one after the other, added to rows given by indices."""

    def add(x: jax.Array, i: jax.Array) -> jax.Array:
        found: list[jax.Array] = []
        for step in range(steps):
            found.append(x[:, step] - sum((x[:, k] * each for k, each in enumerate(found)), jnp.zeros_like(x[:, 0])))
        return jnp.zeros((ROWS, steps, 3)).at[i].add(jnp.stack(found, 1))

    return planned(add, [f"f32[{ROWS},{steps},3]", f"s32[{ROWS}]"], TARGET, Options())


@pytest.mark.parametrize(("steps", "kernels"), [(2, ["scatter"]), (12, ["concatenate_tiled", "scatter"])])
def test_pieces_of_long_chains_are_computed_before_a_scatter(steps: int, kernels: list[str]) -> None:
    program = _program(steps)
    emitters = [kernel.emitter for kernel in program.kernels if kernel.emitter != "loop"]
    assert emitters == kernels
    x = program.random_inputs()[0] / 4
    i = np.arange(ROWS, dtype=np.int32) * 7 % ROWS
    found: list[np.ndarray] = []
    for step in range(steps):
        found.append(x[:, step] - sum(x[:, k] * each for k, each in enumerate(found)))
    expected = np.zeros_like(x)
    np.add.at(expected, i, np.stack(found, 1))
    np.testing.assert_allclose(program.run(x, i, on="host")[0], expected, rtol=1e-4, atol=1e-4)
