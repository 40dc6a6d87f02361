"""Facts about a value's elements, by construction, that make xgpu and XLA agree on them; and how to draw such elements.

The fuzzer never loosens a tolerance to hide that two correct compilers differ. It tracks instead which values every
correct compiler computes bit for bit, and lets only those reach operations that would turn a rounding error into a
different answer. XLA on the CPU contracts a product and a sum, reorders constants and flushes subnormals; so
arithmetic on floats is exact only on a *grid*: multiples of a power of two, bounded so that every result is
representable.
"""

import math
import sys
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from xgpu.dtypes import DType, dtype_named

# XLA for the CPU takes the smallest numbers of f8e5m2fnuz for other ones where it does not vectorize.
_SMALL = ("f8e3m4", "f8e4m3", "f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2")
_SMALL_LIMITS: dict[str, Any] = {
    name: ml_dtypes.finfo(dtype_named(name).numpy)  # type: ignore[no-untyped-call]
    for name in _SMALL
}

PRECISION = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53, "c64": 24, "c128": 53}
PRECISION |= {name: limits.nmant + 1 for name, limits in _SMALL_LIMITS.items()}
"""Bits of a significand, with the implicit one."""

_LARGEST = {
    "f16": 65504.0,
    "bf16": 255 * 2.0**120,
    "f32": 16777215 * 2.0**104,
    "f64": sys.float_info.max,
}
_LARGEST |= {"c64": _LARGEST["f32"], "c128": _LARGEST["f64"]}
_LARGEST |= {name: float(limits.max) for name, limits in _SMALL_LIMITS.items()}
_SMALLEST = {
    "f16": 2.0**-14,
    "bf16": 2.0**-126,
    "f32": 2.0**-126,
    "f64": 2.0**-1022,
    "c64": 2.0**-126,
    "c128": 2.0**-1022,
}
_SMALLEST |= {name: float(limits.smallest_normal) for name, limits in _SMALL_LIMITS.items()}

MAX_ULPS = {**dict.fromkeys(_SMALL, 0.0), "f16": 3.0, "bf16": 3.0, "f32": 16.0, "f64": 16.0}
"""Rounding error, in ULPs, above which an inexact value is used no further: below what `compare` tolerates."""

TERMINAL = 1e9
"""ULPs of a value whose small elements have an error bounded in absolute terms alone: used by no arithmetic."""

FLOATS = tuple(map(dtype_named, ("f16", "bf16", "f32", "f64")))
SIGNED = tuple(map(dtype_named, ("s8", "s16", "s32", "s64")))
UNSIGNED = tuple(map(dtype_named, ("u8", "u16", "u32", "u64")))
INTEGERS = SIGNED + UNSIGNED
SMALL_FLOATS = tuple(map(dtype_named, _SMALL))
"""Floats of 8 bits: what is made of them is used only where it is exact."""
PACKED = tuple(map(dtype_named, ("s4", "u4")))
"""Integers of which several share a byte."""
PRED = dtype_named("pred")
COMPLEX = tuple(map(dtype_named, ("c64", "c128")))
"""Numbers of two floats: what is known of them holds for each part. They are used only where they are exact."""
ALL = (*FLOATS, *INTEGERS, PRED)


@dataclass(frozen=True)
class Facts:
    """Bounds that hold for every element.

    ``lo`` and ``hi`` bound the finite elements. For floats: ``smallest`` bounds the magnitude of nonzero elements from
    below; every element is a multiple of ``2**-grid`` if that is not None; ``special`` allows infinities and NaN;
    ``nonzero`` excludes zeros; ``ulps`` is 0 if every correct compiler computes the same number, else by how much they
    may differ. ``pristine`` elements also have the sign of zero and the NaN that an argument or constant gave them.
    """

    lo: float
    hi: float
    smallest: float = 1.0
    grid: int | None = None
    special: bool = False
    nonzero: bool = False
    pristine: bool = False
    ulps: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether all correct compilers compute the same elements."""
        return self.ulps == 0

    @property
    def magnitude(self) -> float:
        """Largest magnitude of a finite element."""
        return max(abs(self.lo), abs(self.hi))


def has_floats(dtype: DType) -> bool:
    """Whether elements are floating-point numbers, or consist of them."""
    return dtype.is_float or dtype in COMPLEX


def largest(dtype: DType) -> float:
    """Return the largest number of a floating-point type, or of a complex one's parts."""
    return _LARGEST[dtype.hlo]


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the lowest and highest value of an integer type or of pred."""
    bits = dtype.bits - dtype.is_signed
    return (-(2**bits) if dtype.is_signed else 0), 2**bits - 1


def whole_range(dtype: DType) -> Facts:
    """Return facts that allow every value of an integer type or of pred."""
    return Facts(*integer_range(dtype), pristine=True)


def whole_floats(dtype: DType) -> Facts:
    """Return facts that allow every normal number of a floating-point type, zeros of both signs, infinities and NaN."""
    return Facts(-largest(dtype), largest(dtype), _SMALLEST[dtype.hlo], special=True, pristine=True)


def integers(dtype: DType, lo: float, hi: float) -> Facts:
    """Return facts for an integer result whose values, before wrapping, lie between ``lo`` and ``hi``."""
    lowest, highest = integer_range(dtype)
    return Facts(lo, hi) if lowest <= lo and hi <= highest else Facts(lowest, highest)


def on_grid(dtype: DType, lo: float, hi: float, grid: int, **flags: Any) -> Facts | None:
    """Return facts for float multiples of ``2**-grid``, or None if not all of them are representable."""
    if max(abs(lo), abs(hi)) * 2.0**grid > 2.0 ** PRECISION[dtype.hlo] or max(abs(lo), abs(hi)) > _LARGEST[dtype.hlo]:
        return None
    smallest = 2.0**-grid
    return None if smallest < _SMALLEST[dtype.hlo] else Facts(lo, hi, smallest, grid, **flags)


def representable(dtype: DType, facts: Facts) -> bool:
    """Whether elements within the bounds are normal numbers of a floating-point type, with a margin for rounding."""
    in_range = facts.magnitude <= _LARGEST[dtype.hlo] / 4 and facts.smallest >= _SMALLEST[dtype.hlo] * 4
    return in_range and facts.lo <= facts.hi


def join(dtype: DType, *parts: Facts) -> Facts:
    """Return facts that hold for elements that come from any of the parts."""
    lo, hi = min(p.lo for p in parts), max(p.hi for p in parts)
    grids = [p.grid for p in parts]
    grid = None if None in grids else max(g for g in grids if g is not None)
    if grid is not None and has_floats(dtype) and on_grid(dtype, lo, hi, grid) is None:
        grid = None
    return Facts(
        lo,
        hi,
        min(p.smallest for p in parts),
        grid,
        special=any(p.special for p in parts),
        nonzero=all(p.nonzero for p in parts),
        pristine=all(p.pristine for p in parts),
        ulps=max(p.ulps for p in parts),
    )


def has_known_bits(dtype: DType, facts: Facts) -> bool:
    """Whether all compilers give elements the same bits: XLA for the CPU changes NaN of 8 bits that it moves."""
    return facts.pristine and not (dtype in SMALL_FLOATS and facts.special)


def computed(facts: Facts, **changes: Any) -> Facts:
    """Return facts for a result of arithmetic: its zeros and NaN need not be bitwise those of another compiler."""
    return replace(facts, pristine=False, **changes)


def draw(dtype: DType, shape: tuple[int, ...], facts: Facts, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return a random array whose elements obey the facts, extreme values among them."""
    if dtype in COMPLEX:
        real = dtype_named("f32" if dtype.bits == 64 else "f64")
        parts = draw(real, (*shape, 2), facts, generator)
        return parts.view(dtype.numpy).reshape(shape)
    if not dtype.is_float:
        return _draw_integers(dtype, shape, facts, generator)
    if facts == whole_floats(dtype):
        return _draw_extremes(dtype, shape, generator)
    if facts.grid is not None:
        scale = 2.0**facts.grid
        lo, hi = int(facts.lo * scale), int(facts.hi * scale)
        multiples = generator.integers(lo, hi, shape, endpoint=True)
        if facts.nonzero:
            multiples = np.where(multiples == 0, hi or lo, multiples)
        values = multiples.astype(np.float64) / scale
    else:
        values = _draw_magnitudes(shape, facts, generator)
    if facts.special:
        specials = np.array([np.nan, np.inf, -np.inf] if facts.lo < 0 else [np.nan, np.inf])
        values = np.where(generator.random(shape) < 0.1, generator.choice(specials, shape), values)
    return np.asarray(values).astype(dtype.numpy)


def _draw_extremes(dtype: DType, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return ties of roundings, ends of integers and of the type itself, and what is around them; or any bits of 8."""
    if dtype in SMALL_FLOATS:
        return generator.integers(0, 256, shape, np.uint8).view(dtype.numpy)
    ends = [_LARGEST[dtype.hlo], _SMALLEST[dtype.hlo], 0.0, math.inf, math.nan, 0.5, 1.0, 1.5, 2.5, 3.0, 1e4]
    with np.errstate(over="ignore"):
        powers = np.array([2.0**bits for bits in (7, 8, 15, 16, 31, 32, 63, 64)]).astype(dtype.numpy)
        around = [*powers, *np.nextafter(powers, powers.dtype.type(0)), *np.asarray(ends).astype(dtype.numpy)]
    values = generator.choice(np.array(around, dtype.numpy), shape)
    return np.asarray(np.where(generator.random(shape) < 0.5, -values, values)).astype(dtype.numpy)


def _draw_magnitudes(shape: tuple[int, ...], facts: Facts, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    smallest = max(facts.smallest, 2.0**-10)
    values = np.exp2(generator.uniform(math.log2(smallest), math.log2(max(facts.magnitude, smallest)), shape))
    if facts.lo < 0:
        values = np.where(generator.random(shape) < 0.5, -values, values)
    values = np.clip(values, facts.lo, facts.hi)
    if not facts.nonzero:
        values = np.where(generator.random(shape) < 0.05, 0.0, values)
    return np.asarray(values)


def _draw_integers(
    dtype: DType, shape: tuple[int, ...], facts: Facts, generator: np.random.Generator
) -> np.ndarray[Any, Any]:
    lo, hi = int(facts.lo), int(facts.hi)
    kind = np.uint64 if hi > np.iinfo(np.int64).max else np.int64
    anywhere = generator.integers(lo, hi, shape, dtype=kind, endpoint=True)
    near_lo, near_hi = max(lo, min(hi, -4)), min(hi, max(lo, 40))
    near = generator.integers(near_lo, near_hi, shape, dtype=kind, endpoint=True)
    extreme = np.where(generator.random(shape) < 0.5, np.array(lo, kind), np.array(hi, kind))
    which = generator.random(shape)
    values = np.where(which < 0.5, near, np.where(which < 0.9, anywhere, extreme))
    return np.asarray(values).astype(dtype.numpy)
