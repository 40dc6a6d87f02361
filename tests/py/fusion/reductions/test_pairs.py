"""Distances between all rows of two arrays, or of all numbers of them: each thread computes some.

Rows that a kernel has transposed are read for that; numbers are as they are.
"""

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


def _limits_below(x: Any, limits: Any) -> Any:
    return (x[..., None] > limits).sum(-1)


def _nearest(x: Any, numbers: Any) -> Any:
    return jnp.argmin(jnp.abs(x[..., None] - numbers), -1)


def _bits(x: Any) -> Any:
    return ((x[:, None] >> jnp.arange(24)) & 1).sum(-1)


@pytest.mark.parametrize(
    ("function", "specs", "emitters"),
    [
        (_kernel, ("f32[1200,9]", "f32[1200,9]"), ["transpose", "reduce_column"]),
        (_farthest, ("f32[701,12]", "f32[1999,12]"), ["transpose", "reduce_column"]),
        (_farthest, ("bf16[1300,16]", "bf16[1024,16]"), ["transpose", "reduce_column"]),
        (_batch, ("f32[2400,10]", "f32[2400,10]"), ["loop", "reduce_column"]),
        (_kernel, ("f32[300,9]", "f32[300,9]"), ["reduce_row"]),
        (_limits_below, ("f32[4001,77]", "f32[15]"), ["reduce_column"]),
        (_limits_below, ("bf16[300001]", "bf16[100]"), ["reduce_column"]),
        (_nearest, ("f32[501,600]", "f32[16]"), ["reduce_column"]),
        (_bits, ("s32[280001]",), ["reduce_column"]),
        (_limits_below, ("f32[401,77]", "f32[15]"), ["reduce_row"]),
    ],
)
def test_pairs_are_reduced_by_columns(function: Any, specs: tuple[str, ...], emitters: list[str]) -> None:
    program = xgpu.compile(function, *specs)
    assert [kernel.emitter for kernel in program.kernels] == emitters
    inputs = program.random_inputs()
    (found,), (expected,) = program.run(*inputs), program.reference(*inputs)
    assert compare(found, expected).agrees
