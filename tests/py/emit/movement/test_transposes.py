"""Transposes with what is computed from them, on the host executor, against NumPy."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.emit.movement.test_concatenate import numbers
from xgpu.interface.explanation import explain


def test_reshaped_transposes_take_a_tile():
    compiled = xgpu.compile(lambda x: x.T.reshape(8, 12, 64) + 1, "f32[64,96]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["transpose"]
    x = numbers("f32[64,96]", 0)
    np.testing.assert_array_equal(compiled.run(x, sanitize=True)[0], x.T.reshape(8, 12, 64) + 1)


def test_a_value_that_is_moved_in_several_ways_has_a_kernel_for_each() -> None:
    """A loop would read a sector for each element of at least one, which a launch takes less time than."""

    def function(x: Any) -> Any:
        y = x * 2 + 1
        return y.transpose(2, 0, 1), y.transpose(2, 1, 0) - 3, y.transpose(2, 0, 1) * y.transpose(2, 0, 1)

    for shape, emitters in ((128, 128, 48), ["transpose", "transpose"]), ((64, 64, 48), ["loop"]):
        text = f"f32[{','.join(map(str, shape))}]"
        compiled = xgpu.compile(function, text)
        assert [kernel.emitter for kernel in compiled.kernels] == emitters
        x = numbers(text, 0)
        for result, expected in zip(compiled.run(x), function(x), strict=True):
            np.testing.assert_array_equal(result, expected)


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


@pytest.mark.parametrize(
    ("spec", "order", "side"),
    [
        ("u8[33,65,17,129]", (3, 1, 0, 2), 32),
        ("bf16[9,17,65,129]", (3, 0, 2, 1), 32),
        ("u8[33,65,128,256]", (3, 1, 0, 2), 128),
        ("f32[20003,40]", (1, 0), 64),
        ("f32[1023,2049]", (1, 0), 64),
    ],
)
def test_tiles_are_smaller_where_that_halves_what_they_cover(spec: str, order: tuple[int, ...], side: int) -> None:
    """Of two tiles of 128 x 128 only 17 x 129 elements would be moved."""
    compiled = xgpu.compile(lambda x: x.transpose(order), spec)
    (kernel,) = explain(compiled).kernels
    assert kernel.emitter == "transpose"
    assert kernel.schedule["side"] == side


def test_small_tile_of_bytes_moves_every_element() -> None:
    compiled = xgpu.compile(lambda x: x.transpose(3, 1, 0, 2), "u8[5,13,17,129]", options=xgpu.Options())
    names = [kernel.name for kernel in compiled.kernels]
    schedule = {"threads": 64, "side": 32, "width": 1}
    options = xgpu.Options(schedules=dict.fromkeys(names, schedule))
    compiled = xgpu.compile(lambda x: x.transpose(3, 1, 0, 2), "u8[5,13,17,129]", options=options)
    x = np.random.default_rng(0).integers(0, 255, (5, 13, 17, 129)).astype(np.uint8)
    np.testing.assert_array_equal(compiled.run(x, sanitize=True)[0], x.transpose(3, 1, 0, 2))
