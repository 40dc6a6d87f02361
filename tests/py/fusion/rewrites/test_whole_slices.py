"""Dynamic slices of whole dimensions start at 0, and those of whole arrays are no slices."""

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import xgpu


def _results(function: Any, *specs: str) -> xgpu.Compiled:
    """Compile a program, and check its results where slices are to start before, in and after the array."""
    compiled = xgpu.compile(function, *specs)
    for start in (-3, 0, 2, 100):
        inputs = [np.int32(start) if array.ndim == 0 else array for array in compiled.random_inputs(1)]
        for got, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
            np.testing.assert_array_equal(got, expected)
    return compiled


def test_the_slice_of_a_whole_array_is_the_array() -> None:
    compiled = _results(lambda x, i: lax.dynamic_slice(x, (i, i), (4, 6)) * 2, "f32[4,6]", "s32[]")
    assert "slice" not in compiled.ir("fusions")


def test_an_array_updated_as_a_whole_is_its_update() -> None:
    compiled = _results(lambda x, y, i: lax.dynamic_update_slice(x, y * 2, (i, i)), *["f32[4,6]"] * 2, "s32[]")
    assert "slice" not in compiled.ir("fusions")
    assert [launch.inputs for launch in compiled.launches] == [(1,)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y, i, j: lax.dynamic_slice(x, (i, j), (4, 6)) * 2,
        lambda x, y, i, j: lax.dynamic_update_slice(x, y, (i, j)),
    ],
)
def test_the_start_of_a_whole_dimension_is_not_read(function: Any) -> None:
    compiled = _results(function, "f32[9,6]", "f32[4,6]", "s32[]", "s32[]")
    assert all(3 not in launch.inputs for launch in compiled.launches)


def test_one_layer_in_a_loop() -> None:
    def function(x: Any, w: Any) -> Any:
        return lax.scan(lambda x, w: (x @ w, x * 2), x, w)

    compiled = xgpu.compile(function, "f32[64,128]", "f32[1,128,128]")
    assert "slice" not in compiled.ir("fusions")
    x, w = (np.arange(64 * 128) % 7, np.arange(128 * 128) % 5)
    x, w = np.float32(x).reshape(64, 128), np.float32(w).reshape(1, 128, 128)
    for got, expected in zip(compiled.run(x, w), jax.jit(function)(x, w), strict=True):
        np.testing.assert_array_equal(got, expected)
