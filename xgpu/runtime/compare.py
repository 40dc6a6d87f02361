"""Compares an output with the reference: largest absolute and relative error, ULPs, and whether that is agreement."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from xgpu.dtypes import DType, dtype_of_numpy, format_spec
from xgpu.errors import CompilerError
from xgpu.records import dataclass

type Array = np.ndarray[Any, np.dtype[Any]]

# How many ULPs an output may be away, by the type's name in HLO; integers and booleans must be equal.
#
# f64, f32: xgpu and XLA each evaluate a transcendental function to within a few ULPs, by different polynomials, and
#   sum in different orders; the operations after it multiply that by their condition number. A wrong formula, a lost
#   term or an operation done in a narrower type is hundreds of ULPs away or more.
# f16, bf16: every operation rounds its result, so both sides agree exactly until the f32 values behind a result
#   straddle a rounding boundary. That makes one ULP, and operations after it a few more.
# Narrower: only conversions make them, each rounded correctly; one boundary can be straddled.
_ULPS = {"f64": 32, "f32": 32, "f16": 4, "bf16": 4}
_NARROW_ULPS = 1

# Subtracting nearly equal numbers leaves the rounding errors of numbers larger than the result, and these count many
# ULPs of the small result. So an element agrees too if its absolute error is the tolerated number of ULPs of the
# output's magnitude. That is its largest element up to 1, where terms are of the size of 1, or its median where that is
# more: a sum of many terms has large partial sums even where it is itself small, and one outlier must not hide errors.
_CANCELLED_MAGNITUDE = 1.0
_MEDIAN_SAMPLE = 1 << 16

# Elements compared at a time: the temporaries of large outputs would take many times the output's own memory.
_CHUNK = 1 << 18

# The one floating-point type here without a sign bit.
_UNSIGNED_FLOATS = ("f8e8m0fnu",)


@dataclass(frozen=True)
class Comparison:
    """The distance of an output from the reference.

    The errors are the largest of all elements: absolute, relative to the reference (infinite where that alone is
    zero), and in ULPs of the output's type (None for integers and booleans). They are infinite where one side is a
    NaN and the other is not. ``disagreements`` counts the elements beyond the tolerance, ``first_disagreement`` is the
    index of one. ``excused`` counts those beyond the tolerated ULPs that agree by their absolute error.
    """

    dtype: DType
    shape: tuple[int, ...]
    absolute_error: float
    relative_error: float
    ulps: float | None
    disagreements: int
    first_disagreement: tuple[int, ...] | None
    excused: int

    @property
    def agrees(self) -> bool:
        """Whether every element is within its type's tolerance."""
        return self.disagreements == 0

    def __str__(self) -> str:
        ulps = "" if self.ulps is None else f", {self.ulps:.0f} ULP"
        spec = format_spec(self.dtype, self.shape)
        text = f"{spec}: absolute error {self.absolute_error:.3g}, relative {self.relative_error:.3g}{ulps}"
        if self.agrees:
            return f"{text}: agrees" + (f" ({self.excused} elements by absolute error)" if self.excused else "")
        return f"{text}: {self.disagreements} elements disagree, the first at {list(self.first_disagreement or ())}"


def compare(actual: Array, expected: Array) -> Comparison:
    """Compare an output with the reference.

    NaN agrees with NaN, an infinity with itself, and zeros of either sign with each other. Raises `CompilerError` if
    dtypes or shapes differ.
    """
    dtype = dtype_of_numpy(expected.dtype)
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        got = format_spec(dtype_of_numpy(actual.dtype), actual.shape)
        raise CompilerError(f"expected an output of type {format_spec(dtype, expected.shape)}, got {got}")
    if dtype.kind == "complex":
        part = np.float32 if dtype.hlo == "c64" else np.float64
        found, wanted = (_flat(each).view(part) for each in (actual, expected))
        whole = _combine(dtype_of_numpy(np.dtype(part)), found, wanted, parts=2)
        first = None if whole.first_disagreement is None else _index(whole.first_disagreement[0] // 2, actual.shape)
        errors = whole.absolute_error, whole.relative_error, whole.ulps
        return Comparison(dtype, actual.shape, *errors, whole.disagreements, first, whole.excused)
    return _combine(dtype, actual, expected)


def difference(actual: Array, expected: Array) -> str | None:
    """Say where two arrays are not the same to the bit, all NaNs being one, or return None.

    Raises `CompilerError` if dtypes or shapes differ.
    """
    dtype = dtype_of_numpy(expected.dtype)
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        got = format_spec(dtype_of_numpy(actual.dtype), actual.shape)
        raise CompilerError(f"expected an output of type {format_spec(dtype, expected.shape)}, got {got}")
    found, wanted = _flat(actual), _flat(expected)
    if dtype.kind == "complex":
        found, wanted = (each.view(f"f{each.itemsize // 2}") for each in (found, wanted))
    differs = found.view(f"u{found.itemsize}") != wanted.view(f"u{wanted.itemsize}")
    if dtype.is_packed and dtype.is_integer:
        # The same number can lie in a byte with different upper bits.
        differs = found != wanted
    if dtype.kind in ("float", "complex"):
        differs &= ~((found != found) & (wanted != wanted))
    if not differs.any():
        return None
    first = int(differs.argmax())
    return (
        f"{format_spec(dtype, actual.shape)}: {np.count_nonzero(differs)} elements differ; "
        f"number {first} is {found[first]}, expected {wanted[first]}"
    )


def _flat(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1)


def _index(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(position, shape))


@dataclass(frozen=True)
class _Errors:
    """The errors of each element of a chunk."""

    absolute: Array
    relative: Array
    ulps: Array | None
    wrong: Array
    excused: int = 0


def _combine(dtype: DType, actual: Array, expected: Array, parts: int = 1) -> Comparison:
    """Compare floating-point numbers or integers, or complex numbers as their ``parts``, one after the other."""
    absolute = relative = 0.0
    ulps = 0.0 if dtype.is_float else None
    wrong, excused, first, start = 0, 0, None, 0
    for errors in _chunks(dtype, _flat(actual), _flat(expected), parts):
        absolute = max(absolute, float(errors.absolute.max()))
        relative = max(relative, float(errors.relative.max()))
        if errors.ulps is not None and ulps is not None:
            ulps = max(ulps, float(errors.ulps.max()))
        if first is None and errors.wrong.any():
            first = start + int(errors.wrong.argmax())
        wrong += int(np.count_nonzero(errors.wrong))
        excused += errors.excused
        start += errors.wrong.size
    index = None if first is None else _index(first, actual.shape)
    return Comparison(dtype, actual.shape, absolute, relative, ulps, wrong, index, excused)


def _chunks(dtype: DType, actual: Array, expected: Array, parts: int) -> Iterator[_Errors]:
    pairs = ((actual[i : i + _CHUNK], expected[i : i + _CHUNK]) for i in range(0, actual.size, _CHUNK))
    if not dtype.is_float:
        return (_integer_errors(a, e) for a, e in pairs)
    cancelled = absolute_tolerance(dtype, expected)
    if parts == 1:
        return (_float_errors(dtype, a, e, cancelled) for a, e in pairs)
    own = ulp_tolerance(dtype) * _epsilon(dtype)
    return (_float_errors(dtype, a, e, np.maximum(cancelled, own * _complex_magnitudes(e))) for a, e in pairs)


def ulp_tolerance(dtype: DType) -> int:
    """Return how many ULPs an output of a floating-point type may be away from the reference."""
    return _ULPS.get(dtype.hlo, _NARROW_ULPS)


def absolute_tolerance(dtype: DType, expected: Array) -> float:
    """Return the absolute error that is agreement whatever the element, since cancellation explains it."""
    largest = 0.0
    for start in range(0, expected.size, _CHUNK):
        magnitudes = np.abs(_as_doubles(expected.reshape(-1)[start : start + _CHUNK]))
        largest = max(largest, float(magnitudes.max(initial=0.0, where=np.isfinite(magnitudes))))
    magnitude = max(min(largest, _CANCELLED_MAGNITUDE), _median_magnitude(expected))
    return ulp_tolerance(dtype) * _epsilon(dtype) * magnitude


def _complex_magnitudes(parts: Array) -> Array:
    """Return for each part the magnitude of its complex number, whose rounding errors both parts share."""
    with np.errstate(over="ignore", invalid="ignore"):
        magnitudes = np.hypot(*(_as_doubles(parts[start::2]) for start in (0, 1)))
    return np.repeat(np.where(np.isfinite(magnitudes), magnitudes, 0.0), 2)


def _as_doubles(array: Array) -> Array:
    """Return floats as f64, which is exact; of a signalling NaN NumPy warns, though it becomes NaN as it should."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64)


def _median_magnitude(expected: Array) -> float:
    """Return the median of the finite elements' magnitudes, of a sample if there are many."""
    sample = _as_doubles(expected.reshape(-1)[:: max(1, expected.size // _MEDIAN_SAMPLE)])
    finite = np.sort(np.abs(sample[np.isfinite(sample)]))
    # The lower of two middle elements: of a few elements, one outlier would raise the upper.
    return float(finite[(finite.size - 1) // 2]) if finite.size else 0.0


def _epsilon(dtype: DType) -> float:
    """Return an ULP of 1.0, for every type alike: np.finfo knows NumPy's own types only."""
    one = np.ones(1, dtype.numpy)
    bits = one.view(f"u{one.itemsize}")
    return float((bits + np.ones(1, bits.dtype)).view(dtype.numpy)[0]) - 1.0


def _integer_errors(actual: Array, expected: Array) -> _Errors:
    wrong = actual != expected
    wide_actual, wide_expected = (_as_wide_integers(array) for array in (actual, expected))
    # Modulo 2**64 the difference is right whatever the signs.
    difference = np.where(actual > expected, wide_actual - wide_expected, wide_expected - wide_actual)
    absolute = difference.astype(np.float64)
    return _Errors(absolute, _relative(absolute, expected.astype(np.float64)), None, wrong)


def _as_wide_integers(array: Array) -> Array:
    """Two's complement in 64 bits."""
    return array if array.dtype == np.uint64 else array.astype(np.int64).view(np.uint64)


def _float_errors(dtype: DType, actual: Array, expected: Array, cancelled: float | Array) -> _Errors:
    wide_actual, wide_expected = _as_doubles(actual), _as_doubles(expected)
    nan_actual, nan_expected = np.isnan(wide_actual), np.isnan(wide_expected)
    equal = (wide_actual == wide_expected) | (nan_actual & nan_expected)
    one_nan = nan_actual ^ nan_expected
    with np.errstate(invalid="ignore", over="ignore"):
        absolute = np.abs(wide_actual - wide_expected)
    absolute[equal], absolute[one_nan] = 0.0, np.inf
    ulps = _ulps(dtype, actual, expected).astype(np.float64)
    ulps[equal], ulps[one_nan] = 0.0, np.inf
    far = ulps > ulp_tolerance(dtype)
    wrong = far & ~(absolute <= cancelled)
    excused = int(np.count_nonzero(far)) - int(np.count_nonzero(wrong))
    return _Errors(absolute, _relative(absolute, wide_expected), ulps, wrong, excused)


def _relative(absolute: Array, expected: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        relative = absolute / np.abs(expected)
    relative[absolute == 0.0] = 0.0
    # An infinite error is one whatever it is divided by.
    relative[np.isnan(relative)] = np.inf
    return relative


def _ulps(dtype: DType, actual: Array, expected: Array) -> Array:
    """Return the number of steps between numbers of the type; infinities come after the largest finite numbers."""
    sign = 0 if dtype.hlo in _UNSIGNED_FLOATS else 1 << (dtype.bits - 1)
    bits_actual, bits_expected = (array.view(f"u{array.itemsize}").astype(np.uint64) for array in (actual, expected))
    same_sign = (bits_actual & np.uint64(sign)) == (bits_expected & np.uint64(sign))
    magnitude = np.uint64((1 << dtype.bits) - 1 - sign)
    size_actual, size_expected = bits_actual & magnitude, bits_expected & magnitude
    apart = np.maximum(size_actual, size_expected) - np.minimum(size_actual, size_expected)
    return np.where(same_sign, apart, size_actual + size_expected)
