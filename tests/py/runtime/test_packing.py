"""Arrays of 2- and 4-bit elements, packed as XLA's buffers are."""

import ctypes

import jax
import numpy as np
import pytest

from xgpu.dtypes import DTYPES, DType
from xgpu.runtime.packing import packed, packed_empty, unpacked
from xgpu.tools.programs.scalars.conversions import all_values

PACKED = [dtype for dtype in DTYPES if dtype.is_packed]
SHAPES = [(), (0,), (1,), (2,), (3,), (7,), (8,), (3, 5), (2, 3, 7)]


def array_of(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).choice(all_values(dtype), shape)


def test_which_types_are_packed() -> None:
    assert [str(dtype) for dtype in PACKED] == ["s2", "s4", "u2", "u4", "f4e2m1fn"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", PACKED, ids=str)
def test_there_and_back(dtype: DType, shape: tuple[int, ...]) -> None:
    array = array_of(dtype, shape)
    data = packed(array, dtype)
    assert data.dtype == np.uint8
    assert data.size == packed_empty(shape, dtype).size == -(-array.size * dtype.bits // 8)
    back = unpacked(data, shape, dtype)
    assert back.dtype == dtype.numpy
    assert back.shape == shape
    np.testing.assert_array_equal(back.astype(np.float32), array.astype(np.float32))


@pytest.mark.parametrize("shape", [(3, 5), (8,), (9,)], ids=str)
@pytest.mark.parametrize("dtype", PACKED, ids=str)
def test_the_bytes_are_those_of_xla(dtype: DType, shape: tuple[int, ...]) -> None:
    array = array_of(dtype, shape)
    on_device = jax.device_put(array, jax.devices("cpu")[0])
    data = packed(array, dtype)
    held = (ctypes.c_uint8 * data.size).from_address(on_device.unsafe_buffer_pointer())
    assert bytes(held) == data.tobytes()


def test_unused_bits_mean_nothing() -> None:
    dtype = next(dtype for dtype in PACKED if dtype.hlo == "s4")
    assert unpacked(np.array([0x21, 0xF3], np.uint8), (3,), dtype).tolist() == [1, 2, 3]


def test_a_transposed_array_is_packed_in_its_order() -> None:
    dtype = next(dtype for dtype in PACKED if dtype.hlo == "u4")
    array = np.arange(6).reshape(2, 3).astype(dtype.numpy)
    assert packed(array.T, dtype).tolist() == [0x30, 0x41, 0x52]
