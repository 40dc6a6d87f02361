"""Exact conversions between two types, in NumPy, and values at which conversions go wrong.

The meaning is HLO's: integers keep their lower bits; floats are rounded once, to nearest and ties to even; a float
becomes the integer nearest to it towards zero, the nearest one of the type if it is out of range, 0 if it is NaN;
to pred, whether it is not zero. Overflow gives infinity, NaN in a format without, the largest number in f4e2m1fn, which
has neither. There NaN becomes negative zero. f8e8m0fnu, the powers of two, rounds halfway up, zero and negative
numbers to NaN, and positive ones below its least to that.
"""

from typing import Any

import numpy as np

from xgpu.dtypes import DTYPES, DType, dtype_named, dtype_of_numpy

Array = np.ndarray[Any, Any]

REAL_TYPES = tuple(dtype for dtype in DTYPES if dtype.kind != "complex")
"""Every type but the complex ones."""

STRATIFIED = 1 << 16
"""Number of values tried of a type of more than 16 bits."""

_F64_DIGITS = 53


def all_values(dtype: DType) -> Array:
    """Return every value of a type of at most 16 bits, or `STRATIFIED` values of a wider one."""
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.bits > 16:
        return _stratified_floats(dtype) if dtype.is_float else _stratified_integers(dtype)
    codes = np.arange(1 << dtype.bits).astype(np.uint8 if dtype.bits <= 8 else np.uint16)
    return codes.view(dtype.numpy)


def _tails(generator: np.random.Generator, count: int, bits: int) -> Array:
    """Return numbers of ``bits`` bits: random ones, and ones whose last bits are 10...0, 01...1, or 10...01."""
    numbers = generator.integers(0, 1 << bits, count, np.uint64)
    last = generator.integers(1, bits, count, endpoint=True).astype(np.uint64)
    one = np.uint64(1)
    half = one << (last - one)
    kept = numbers >> last << last
    return np.choose(np.arange(count) % 4, [numbers, kept | half, kept | (half - one), kept | half | one])


def _stratified_floats(dtype: DType) -> Array:
    """Return values of every exponent, many of them halfway between two of a narrower format, or beside that."""
    generator = np.random.default_rng(dtype.bits)
    mantissa = 23 if dtype.bits == 32 else 52
    exponents = np.arange(STRATIFIED, dtype=np.uint64) // np.uint64(2) % np.uint64(1 << (dtype.bits - 1 - mantissa))
    # Half of them where most narrower formats have their values.
    bias = (1 << (dtype.bits - 2 - mantissa)) - 1
    exponents[::2] = generator.integers(bias - 26, bias + 66, exponents[::2].size)
    signs = generator.integers(0, 2, STRATIFIED, np.uint64) << np.uint64(dtype.bits - 1)
    codes = signs | exponents << np.uint64(mantissa) | _tails(generator, STRATIFIED, mantissa)
    codes[:4] = [0, 1 << (dtype.bits - 1), ((1 << (dtype.bits - 1 - mantissa)) - 1) << mantissa, 1]
    return codes.astype(f"u{dtype.bits // 8}").view(dtype.numpy)


def _stratified_integers(dtype: DType) -> Array:
    """Return numbers of every length, many of them halfway between two of a float type, or beside that."""
    generator = np.random.default_rng(dtype.bits + dtype.is_signed)
    shifts = (np.arange(STRATIFIED) // 4 % dtype.bits).astype(np.uint64)
    numbers = _tails(generator, STRATIFIED, dtype.bits) if dtype.bits < 64 else _tails(generator, STRATIFIED, 63) * 2
    numbers = numbers >> shifts
    negated = np.where(generator.integers(0, 2, STRATIFIED) == 1, -numbers.astype(np.int64), numbers.astype(np.int64))
    return (negated if dtype.is_signed else numbers).astype(dtype.numpy)


def other_xla_results(values: Array, source: DType, target: DType) -> list[Array]:
    """Return what XLA on the CPU may give instead of the exact results, for the reasons in `XLA_DIFFERENCES`."""
    if source.hlo == "f4e2m1fn" and target.is_integer:
        numbers = values.astype(np.float64)
        endless = np.where(np.abs(numbers) == 6.0, np.copysign(np.inf, numbers), numbers)
        return [convert_exactly(endless, dtype_named("f64"), target)]
    if not target.is_float and target.kind != "bool":
        return []
    routes = [_flushed(values, source)]
    if target.is_float and target.bits < 32 and (source.hlo == "f64" or (source.is_integer and source.bits > 24)):
        with np.errstate(all="ignore"):
            rounded = values.astype(np.float32)
        routes += [rounded, _flushed(rounded, dtype_named("f32"))]
    results = [convert_exactly(route, dtype_of_numpy(route.dtype), target) for route in routes]
    return [*results, *(_flushed(result, target) for result in results)]


def _flushed(values: Array, dtype: DType) -> Array:
    """Return values of bf16, f32 or f64 with denormal ones made zero; others as they are."""
    if dtype.hlo not in ("bf16", "f32", "f64"):
        return values
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
        is_denormal = np.abs(wide) < (2.0**-1022 if dtype.hlo == "f64" else 2.0**-126)
        return np.where(is_denormal, np.copysign(0.0, wide).astype(dtype.numpy), values)


XLA_DIFFERENCES = """\
- From f64 and from integers of more than 24 bits to floats of less than 32, XLA may round twice: to f32, and from
  there. To which types it does depends on the processor.
- From f4e2m1fn, XLA converts 6 and -6 to the largest and smallest number of an integer type.
- XLA takes denormals of bf16, f32 and f64 for zero where it computes with them: converting to pred, and between these
  types. From f64, it makes NaN of what is below the least power of two of f8e8m0fnu.
"""
"""Conversions where XLA on the CPU is known to differ from `convert_exactly`."""


def convert_exactly(values: Array, source: DType, target: DType) -> Array:
    """Return an array of ``source`` converted to ``target``."""
    with np.errstate(all="ignore"):
        if target.kind == "bool":
            return values.astype(np.float64 if source.is_float else values.dtype) != np.zeros((), np.int8)
        if target.is_float:
            return _to_float(values, source, target)
        return _integers(values, source, target)


def _to_float(values: Array, source: DType, target: DType) -> Array:
    if target.bits == 64 or (target.bits == 32 and not source.is_float):
        return values.astype(target.numpy)
    wide = _to_f64_odd(values, source) if source.is_integer else values.astype(np.float64)
    if target.bits < 32:
        wide = _to_f32_odd(wide).astype(np.float64)
    if target.hlo == "f4e2m1fn":
        wide = np.where(np.isnan(wide), -0.0, wide)
    return wide.astype(np.float32).astype(target.numpy)


def _to_f64_odd(values: Array, source: DType) -> Array:
    """Return integers as f64, inexact ones rounded to the neighbour with an odd last bit."""
    if source.bits <= _F64_DIGITS:
        return values.astype(np.float64)
    numbers = [int(value) for value in values]
    excess = [max(0, abs(number).bit_length() - _F64_DIGITS) for number in numbers]
    return np.array(
        [
            float((abs(n) >> e | (abs(n) & ((1 << e) - 1) != 0)) << e) * (1 if n >= 0 else -1)
            for n, e in zip(numbers, excess, strict=True)
        ]
    )


def _to_f32_odd(values: Array) -> Array:
    """Return f64 as f32, inexact ones rounded to the neighbour with an odd last bit: rounding that again is right."""
    nearest = values.astype(np.float32)
    back = nearest.astype(np.float64)
    beyond = np.abs(back) > np.abs(values)
    towards_zero = np.where(beyond, np.nextafter(nearest, np.float32(0)), nearest)
    bits = towards_zero.view(np.uint32) | ((back != values) & ~np.isnan(values)).astype(np.uint32)
    return bits.view(np.float32)


def _integers(values: Array, source: DType, target: DType) -> Array:
    if source.is_float:
        lowest = -(1 << (target.bits - 1)) if target.is_signed else 0
        highest = (1 << (target.bits - target.is_signed)) - 1
        numbers = [
            0 if value != value else min(max(int(max(min(value, 2.0**65), -(2.0**65))), lowest), highest)
            for value in values.astype(np.float64).tolist()
        ]
        wide = np.array(numbers, np.int64 if target.is_signed else np.uint64)
    else:
        wide = values.astype(np.int64 if source.is_signed else np.uint64)
    if target.bits >= 8:
        return wide.astype(target.numpy)
    return (wide.astype(np.uint64) & np.uint64((1 << target.bits) - 1)).astype(np.uint8).view(target.numpy)
