"""Transposes with what is computed from them, on the host executor, against NumPy."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.emit.movement.test_concatenate import numbers


def test_reshaped_transposes_take_a_tile():
    compiled = xgpu.compile(lambda x: x.T.reshape(8, 12, 64) + 1, "f32[64,96]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["transpose"]
    x = numbers("f32[64,96]", 0)
    np.testing.assert_array_equal(compiled.run(x, sanitize=True)[0], x.T.reshape(8, 12, 64) + 1)


def test_reshaped_transposes_that_are_read_at_other_indices_too_are_left_to_the_loop():
    def function(x):
        columns = x.transpose(2, 3, 0, 1).reshape(4, 7, 2, 7, 34, 1)
        return columns + columns.transpose(0, 3, 2, 1, 4, 5)

    compiled = xgpu.compile(function, "f32[8,14,17,7]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    x = numbers("f32[8,14,17,7]", 0)
    np.testing.assert_array_equal(compiled.run(x, sanitize=True)[0], function(x))


@pytest.mark.parametrize("vector", [1, 4])
def test_rows_that_a_thread_takes_together(vector: int) -> None:
    """Moved, and computed from several numbers of a point each, of the last dimensions but one."""

    def function(x: Any) -> Any:
        luma = jnp.stack([x[..., 0] + x[..., 1] * x[..., 2], x[..., 2] - x[..., 0], jnp.sin(x[..., 1])], 1)
        return x.transpose(0, 3, 1, 2) * 2, luma

    inputs = (numbers("f32[2,12,20,3]", 0),)
    names = [kernel.name for kernel in xgpu.compile(function, *inputs).kernels]
    schedule = {"threads": 64, "vector": vector, "rows": 3, "row": 240}
    compiled = xgpu.compile(function, *inputs, options=xgpu.Options(schedules=dict.fromkeys(names, schedule)))
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    for got, expected in zip(compiled.run(*inputs, sanitize=True), compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
