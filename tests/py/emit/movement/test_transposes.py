"""Transposes with what is computed from them, on the host executor, against NumPy."""

import numpy as np

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
