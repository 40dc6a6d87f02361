"""Arrays of 2- and 4-bit elements, between NumPy's form, one element a byte, and that of kernels and XLA, packed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xgpu.dtypes import DType

Array = np.ndarray[Any, Any]


def packed(array: Array, dtype: DType) -> Array:
    """Return the bytes of an array of packed elements; the first of a byte's elements is in its lowest bits."""
    per_byte, codes = 8 // dtype.bits, np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    padded = np.zeros((-(-codes.size // per_byte), per_byte), np.uint8)
    padded.reshape(-1)[: codes.size] = codes & ((1 << dtype.bits) - 1)
    return np.asarray(np.bitwise_or.reduce(padded << _shifts(dtype), axis=1, dtype=np.uint8))


def packed_empty(shape: Sequence[int], dtype: DType) -> Array:
    """Return memory for a packed array of this shape, all zeros."""
    return np.zeros(-(-int(np.prod(shape)) * dtype.bits // 8), np.uint8)


def unpacked(data: Array, shape: Sequence[int], dtype: DType) -> Array:
    """Return the array whose packed bytes are ``data``."""
    codes = (data[:, None] >> _shifts(dtype)).reshape(-1)[: int(np.prod(shape))] & ((1 << dtype.bits) - 1)
    return np.asarray(codes.astype(np.uint8)).view(dtype.numpy).reshape(tuple(shape))


def _shifts(dtype: DType) -> Array:
    return np.arange(0, 8, dtype.bits, dtype=np.uint8)
