"""The type of test programs: a JAX function, the types of its arguments, and optionally inputs chosen to be hard."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import xgpu
from xgpu.dtypes import DType, dtype_named

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TestProgram:
    """A program that every way of running must agree on with XLA.

    ``specs`` are its arguments (``f32[8,128]``); ``inputs`` makes the arrays, random ones if it is None. ``expected``,
    where there is one, makes of them what the results are to the bit, in place of XLA, which gives them approximately.
    """

    __test__ = False

    name: str
    function: Callable[..., Any]
    specs: tuple[str, ...]
    inputs: Callable[[], Sequence[Array]] | None = None
    expected: Callable[[Sequence[Array]], Sequence[Array]] | None = None
    options: xgpu.Options | None = None

    def compile(self) -> xgpu.Compiled:
        """Return the program, compiled for the default GPU."""
        return xgpu.compile(self.function, *self.specs, options=self.options)

    def __str__(self) -> str:
        return self.name


FLOATS = ("f16", "bf16", "f32", "f64")
SIGNED = ("s8", "s16", "s32", "s64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
REALS = FLOATS + INTEGERS
ALL = (*REALS, "pred")

SIZE = 331
"""A prime: no vector width divides it."""


_NORMAL_RANGE = {
    "f16": (2.0**-14, 65504.0),
    "bf16": (2.0**-126, 3.3895313892515355e38),
    "f32": (2.0**-126, 3.4028234663852886e38),
    "f64": (2.0**-1022, 1.7976931348623157e308),
}
"""Smallest normal and largest finite number of each type."""


def special_values(dtype: DType) -> Array:
    """Return the values of a type where operations go wrong: zeros, ones, extremes, infinities, NaN.

    Without numbers below the normal range: XLA on the CPU, the reference, takes those of f32 and f64 for zero.
    """
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.is_integer:
        bits = dtype.bits - dtype.is_signed
        lowest, highest = (-(2**bits) if dtype.is_signed else 0), 2**bits - 1
        values = [0, 1, 2, 3, 5, 7, dtype.bits - 1, dtype.bits, highest, highest - 1, lowest, lowest + 1]
        values += [-1, -2, -7] if dtype.is_signed else [highest // 2, highest // 2 + 1]
        return np.array([v for v in values if lowest <= v <= highest], dtype.numpy)
    tiny, largest = _NORMAL_RANGE[dtype.hlo]
    positive = [0.0, tiny, 1e-3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.7, 10.0, 100.0, largest, np.inf]
    return np.array([*positive, *(-x for x in positive), np.nan]).astype(dtype.numpy)


def pairs(dtype: str, arity: int, seed: int = 0) -> list[Array]:
    """Return ``arity`` arrays of ``SIZE`` elements: special values against each other, then random ones."""
    element = dtype_named(dtype)
    special = special_values(element)
    generator = np.random.default_rng(seed)
    arrays = []
    for position in range(arity):
        picked = special[(np.arange(SIZE) // len(special) ** position) % len(special)]
        if element.is_float:
            drawn = (generator.standard_normal(SIZE) * 4).astype(element.numpy)
        else:
            drawn = generator.choice(special, SIZE)
            if element.is_integer:
                drawn = (drawn + generator.integers(0, 9, SIZE).astype(element.numpy)).astype(element.numpy)
        use_special = np.arange(SIZE) < len(special) ** min(arity, 2)
        arrays.append(np.where(use_special, picked, drawn))
    return arrays
