"""Seeded random arrays for trying a program out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xgpu.dtypes import DType
from xgpu.errors import InvalidInput
from xgpu.frontend.signature import ArgumentSpec

MOST_DIMENSIONS = 64
"""The most dimensions of a NumPy array."""
_ANYWHERE = 1 / 8
"""Share of integers drawn from the type's whole range; the others are near valid indices of the program's arrays."""


def random_inputs(
    arguments: Sequence[ArgumentSpec], extents: Sequence[int], seed: int, limits: Mapping[int, int] | None = None
) -> list[np.ndarray[Any, Any]]:
    """Return an array per argument, the same for the same seed.

    Floats are normally distributed. Integers may be indices of an array whose sizes are among ``extents``, so they
    fall inside its range, just outside it on both sides, and a few far outside. Those of arguments with ``limits``, by
    their numbers, are from 0 to below them.
    """
    try:
        generator = np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InvalidInput(f"seed: expected a number of at least 0, got {seed!r}") from None
    largest = max(extents, default=1)
    drawn = [_draw(generator, argument.dtype, argument.shape, largest) for argument in arguments]
    for number, limit in (limits or {}).items():
        dtype = arguments[number].dtype
        most = min(limit, 2 ** (dtype.bits - dtype.is_signed))
        drawn[number] = generator.integers(0, most, arguments[number].shape).astype(dtype.numpy)
    return drawn


def _draw(generator: np.random.Generator, dtype: DType, shape: tuple[int, ...], largest: int) -> np.ndarray[Any, Any]:
    if dtype.kind == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_float:
        numbers = np.asarray(generator.standard_normal(shape))
        # A negative number would be NaN in a type without a sign.
        return (np.abs(numbers) if dtype.hlo == "f8e8m0fnu" else numbers).astype(dtype.numpy)
    if dtype.kind == "complex":
        real, imaginary = generator.standard_normal((2, *shape))
        return np.asarray(real + 1j * imaginary).astype(dtype.numpy)
    bits = dtype.bits - dtype.is_signed
    lowest, highest = (-(2**bits) if dtype.is_signed else 0), 2**bits - 1
    margin = 2 + largest // 16
    near = generator.integers(max(-margin, lowest), min(largest + margin, highest), shape, endpoint=True)
    wide = generator.integers(lowest, highest, shape, dtype=np.uint64 if lowest == 0 else np.int64, endpoint=True)
    anywhere = generator.random(shape) < _ANYWHERE
    return np.asarray(np.where(anywhere, wide.astype(dtype.numpy), near.astype(dtype.numpy)))
