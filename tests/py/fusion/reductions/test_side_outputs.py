"""Arrays that a reduction's kernel stores beside its results: where it has enough blocks for what a loop would move."""

from typing import Any

import jax.numpy as jnp
import pytest

import xgpu
from xgpu.runtime.compare import compare


def _total(x: Any, y: Any) -> tuple[Any, Any]:
    return jnp.sum(x), jnp.tanh(x) * y + x


def _of_rows(x: Any, y: Any) -> tuple[Any, Any]:
    return jnp.sum(x * y, 1), jnp.tanh(x) * y + x


@pytest.mark.parametrize(
    ("function", "spec", "emitters"),
    [
        (_total, "f32[2048]", ["reduce_row"]),
        (_total, "f32[65536]", ["parts"]),  # One block of the reduction would take 21 us for what 64 do at once.
        (_of_rows, "f32[4,16384]", ["reduce_row"]),  # As long as a launch.
        (_of_rows, "f32[4096,1024]", ["reduce_row"]),
    ],
)
def test_a_loop_is_merged_where_blocks_are_enough(function: Any, spec: str, emitters: list[str]) -> None:
    program = xgpu.compile(function, spec, spec)
    assert [kernel.emitter for kernel in program.kernels] == emitters
    inputs = program.random_inputs()
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))
