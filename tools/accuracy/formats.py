"""The formats that functions are measured in, and the distance between numbers in units in the last place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Format:
    """A binary format: ``mantissa`` bits are stored, normal numbers are 2^lowest to just below 2^(highest + 1).

    ``wide`` is the type that exact results are computed in.
    """

    name: str
    dtype: np.dtype[Any]
    mantissa: int
    lowest: int
    highest: int
    wide: np.dtype[Any]

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with all its bits of precision."""
        return 2.0**self.lowest

    @property
    def bits(self) -> int:
        """Width of a number."""
        return 8 * self.dtype.itemsize

    def from_codes(self, codes: Array) -> Array:
        """Return the numbers with these bits."""
        return codes.astype(f"uint{self.bits}").view(self.dtype)


FORMATS = {
    each.name: each
    for each in (
        Format("bf16", np.dtype(ml_dtypes.bfloat16), 7, -126, 127, np.dtype(np.float64)),
        Format("f16", np.dtype(np.float16), 10, -14, 15, np.dtype(np.float64)),
        Format("f32", np.dtype(np.float32), 23, -126, 127, np.dtype(np.float64)),
        Format("f64", np.dtype(np.float64), 52, -1022, 1023, np.dtype(np.longdouble)),
    )
}
"""By name, as in the tables."""


def is_measurable(form: Format) -> bool:
    """Whether exact results can be computed: NumPy's long double may be no wider than f64."""
    return bool(np.finfo(form.wide).nmant >= form.mantissa + 11)


def flushed_errors(got: Array, exact: Array, arguments: Sequence[Array], form: Format, floor: float = 0.0) -> Array:
    """Return what `errors` does, for an implementation that takes subnormal numbers for zero.

    There is no error at subnormal arguments, nor where result and exact result are both no larger than the smallest
    normal number.
    """
    # What is a rounding error above the smallest normal number may have been below it.
    limit = form.smallest_normal * (1 + 2.0 ** (4 - form.mantissa))
    with np.errstate(all="ignore"):
        ignored = (np.abs(exact) <= limit) & (np.abs(got.astype(exact.dtype)) <= limit)
        for argument in arguments:
            ignored |= (np.abs(argument) < form.smallest_normal) & (argument != 0)
    return np.where(ignored, 0, errors(got, exact, form, floor))


def errors(got: Array, exact: Array, form: Format, floor: float = 0.0) -> Array:
    """Return the distance of each result from the exact one, in units in the last place of the exact one.

    Infinity counts as the number after the largest one, and what rounds to it is infinity. The distance is infinite
    where only one of the two is NaN, or where a zero, or an infinity not reached by rounding, has the wrong sign or is
    a number. Where an exact result is smaller than ``floor``, the unit is that of ``floor``.
    """
    with np.errstate(all="ignore"):
        result = got.astype(exact.dtype)
        size = np.abs(exact)
        overflow = np.ldexp(exact.dtype.type(1), form.highest + 1)
        is_infinite = size >= overflow - np.ldexp(exact.dtype.type(1), form.highest - form.mantissa - 1)
        is_near_overflow = np.isinf(result) & (size >= overflow / 2) & (np.signbit(result) == np.signbit(exact))
        result = np.where(is_near_overflow, np.copysign(overflow, exact), result)
        _, exponent = np.frexp(np.maximum(np.where(np.isfinite(size), size, overflow), floor))
        exponent = np.where(np.maximum(size, floor) == 0, form.lowest, exponent)
        unit = np.ldexp(exact.dtype.type(1), np.clip(exponent - 1, form.lowest, form.highest) - form.mantissa)
        distance = np.abs(result - exact) / unit
        distance = np.where(is_infinite & is_near_overflow, 0, distance)
        wrong_zero = (exact == 0) & (result == 0) & (np.signbit(result) != np.signbit(exact))
        distance = np.where(wrong_zero, np.inf, distance)
        distance = np.where(np.isnan(exact), np.where(np.isnan(result), 0, np.inf), distance)
    return np.where(np.isnan(distance), np.inf, distance)
