"""Distances between all rows of two arrays: each thread computes some, of rows that a kernel has transposed."""

from typing import Any

import jax.numpy as jnp
import pytest

import xgpu
from xgpu.runtime.compare import compare


def _kernel(x: Any, y: Any) -> Any:
    return jnp.exp(-jnp.square(x[:, None] - y[None]).sum(-1))


def _farthest(x: Any, y: Any) -> Any:
    return jnp.abs(2 * x[:, None] - y[None]).max(-1)


def _batch(x: Any, y: Any) -> Any:
    return jnp.minimum(x.reshape(4, -1, 1, x.shape[-1]), y.reshape(4, 1, -1, y.shape[-1])).sum(-1)


@pytest.mark.parametrize(
    ("function", "specs", "emitters"),
    [
        (_kernel, ("f32[1200,9]", "f32[1200,9]"), ["transpose", "reduce_column"]),
        (_farthest, ("f32[701,12]", "f32[1999,12]"), ["transpose", "reduce_column"]),
        (_farthest, ("bf16[1300,16]", "bf16[1024,16]"), ["transpose", "reduce_column"]),
        (_batch, ("f32[2400,10]", "f32[2400,10]"), ["loop", "reduce_column"]),
        (_kernel, ("f32[300,9]", "f32[300,9]"), ["reduce_row"]),
    ],
)
def test_pairs_are_reduced_by_columns(function: Any, specs: tuple[str, str], emitters: list[str]) -> None:
    program = xgpu.compile(function, *specs)
    assert [kernel.emitter for kernel in program.kernels] == emitters
    inputs = program.random_inputs()
    (found,), (expected,) = program.run(*inputs), program.reference(*inputs)
    assert compare(found, expected).agrees
