"""Long epilogues of reductions are loops of their own where one lane of many rows would compute them."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xgpu


def _long(x: Any) -> Any:
    total = (x * x).sum(-1)
    return total**0.3 * jnp.log1p(total) / (1 + total**0.7) + (total + 2) ** 0.9 * (total + 3) ** 0.2, total


def _short(x: Any) -> Any:
    return jnp.sqrt((x * x).sum(-1) + 1)


@pytest.mark.parametrize(
    ("function", "shape", "emitters"),
    [
        (_long, "f32[40000,128]", ["reduce_row", "loop"]),
        # A launch takes longer.
        (_long, "f32[4000,128]", ["reduce_row"]),
        # Rows of one lane each.
        (_long, "f32[40000,4]", ["loop"]),
        (_short, "f32[40000,128]", ["reduce_row"]),
        (lambda x: _long(x.T), "f32[128,40000]", ["reduce_column"]),
    ],
)
def test_long_epilogues(function: Any, shape: str, emitters: list[str]) -> None:
    compiled = xgpu.compile(function, shape)
    assert [kernel.emitter for kernel in compiled.kernels] == emitters
    inputs = compiled.random_inputs(0)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=2e-6)
