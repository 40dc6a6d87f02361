"""Functions that NumPy lacks, in the type of their arguments: f64, or long double, whose results are exact for f64.

They are slow and plain: series with positive terms, continued fractions, recurrences to where an asymptotic series
holds. In f64, SciPy has them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

Array = np.ndarray[Any, Any]
Exact = Callable[..., Array]

_BERNOULLI = [
    (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798), (-174611, 330),
]  # fmt: skip
"""B2, B4, ..., B20."""
_ASYMPTOTIC = 25
"""From here on, series of Bernoulli numbers are exact to 64 bits."""
_PI = np.arctan2(np.longdouble(0), np.longdouble(-1))


def by_width(double: Exact, wide: Exact) -> Exact:
    """Return a function that is ``double`` for arguments in f64 and ``wide`` for wider ones."""

    def choose(*arguments: Array) -> Array:
        with np.errstate(all="ignore"):
            return (double if arguments[0].dtype == np.float64 else wide)(*arguments)

    return choose


def _by_parts(x: Array, *parts: tuple[Array, Exact]) -> Array:
    """Evaluate each function where its condition holds, the first that does; elsewhere NaN."""
    result = np.full_like(x, np.nan)
    done = np.zeros(x.shape, bool)
    for condition, function in parts:
        where = condition & ~done
        if where.any():
            result[where] = function(x[where])
        done |= where
    return result


def odd(function: Exact) -> Exact:
    """Return an odd function with the sign of every argument, zero included; SciPy's lose that of zero."""
    return lambda x: np.copysign(function(np.abs(x)), x)


def erf(x: Array) -> Array:
    """The error function: 2 / sqrt(pi) e^(-x^2) times a series of positive terms; 1 less erfc where that is small."""
    size = np.abs(x)
    value = _by_parts(size, (size < 2, _erf_series), (size >= 2, lambda z: 1 - _erfc_fraction(z)))
    return np.copysign(value, x)


def _erf_series(x: Array) -> Array:
    term, total = x.copy(), x.copy()
    for n in range(1, 60):
        term = term * (2 * x * x / (2 * n + 1))
        total += term
    return 2 / np.sqrt(_PI) * np.exp(-x * x) * total


def erfc(x: Array) -> Array:
    """1 - erf(x), by a continued fraction where it is small."""
    return _by_parts(x, (x < 1.5, lambda z: 1 - erf(z)), (x >= 1.5, _erfc_fraction))


def _erfc_fraction(x: Array) -> Array:
    value = np.zeros_like(x)
    for n in range(400, 0, -1):
        value = (n / np.longdouble(2)) / (x + value)
    return _exp_of_minus_square(x) / np.sqrt(_PI) / (x + value)


def _exp_of_minus_square(x: Array) -> Array:
    """e^(-x^2) with the square's lower bits: the upper part of x has few enough that its square is exact."""
    size = np.minimum(x, 200)
    upper = np.round(size * 2**20) / 2**20
    return np.exp(-upper * upper) * np.exp(-(size - upper) * (size + upper))


def erf_inv(x: Array) -> Array:
    """The inverse of erf: a step of Newton's from the result in f64, with erfc where x is near 1."""
    size = np.abs(x)
    start = np.asarray(scipy.special.erfinv(size.astype(np.float64)), x.dtype)
    beyond = size > 0.5
    start = np.where(beyond, np.asarray(scipy.special.erfcinv((1 - size).astype(np.float64)), x.dtype), start)
    error = np.where(beyond, (1 - size) - erfc(start), erf(start) - size)
    step = error * np.sqrt(_PI) / 2 * np.exp(start * start)
    value = np.where(np.isfinite(start) & (start != 0), start - step, start)
    # The smallest results are subnormal numbers of f64, in which the start loses bits.
    value = np.where(size < 1e-10, size * np.sqrt(_PI) / 2, value)
    return np.copysign(np.where(size > 1, np.nan, value), x)


def lgamma(x: Array) -> Array:
    """log |gamma(x)|; for negative arguments from pi / (sin(pi x) gamma(1 - x))."""
    return _by_parts(
        x, (x == -np.inf, np.abs), (x >= 0.5, _lgamma_positive), (x == np.floor(x), lambda z: np.full_like(z, np.inf)),
        (np.abs(x) < 1e-30, lambda z: -np.log(np.abs(z))),
        (x < 0.5, lambda z: np.log(_PI / np.abs(_sin_of_pi(z))) - _lgamma_positive(1 - z)),
    )  # fmt: skip


def _lgamma_positive(x: Array) -> Array:
    shifted, product = x.copy(), np.ones_like(x)
    for _ in range(_ASYMPTOTIC):
        low = shifted < _ASYMPTOTIC
        product = np.where(low, product * shifted, product)
        shifted = np.where(low, shifted + 1, shifted)
    series = np.zeros_like(x)
    for k, (over, under) in reversed(list(enumerate(_BERNOULLI, 1))):
        series = series / (shifted * shifted) + np.longdouble(over) / (under * 2 * k * (2 * k - 1))
    main = (shifted - 0.5) * (np.log(shifted) - 1) - 0.5 + np.log(2 * _PI) / 2
    value = main + series / shifted - np.log(product)
    return np.where(np.isinf(x), x, value)


def _sin_of_pi(x: Array) -> Array:
    return np.sin(_PI * (x - np.round(x)))


def digamma(x: Array) -> Array:
    """The derivative of lgamma; for negative arguments by reflection, NaN at negative integers."""
    return _by_parts(
        x, (x == -np.inf, lambda z: np.full_like(z, np.nan)), (x == 0, lambda z: -1 / z),
        (x >= 0.5, _digamma_positive), (x == np.floor(x), lambda z: np.full_like(z, np.nan)),
        (x < 0.5, lambda z: _digamma_positive(1 - z) - _PI / np.tan(_PI * (z - np.round(z)))),
    )  # fmt: skip


def _digamma_positive(x: Array) -> Array:
    shifted, total = x.copy(), np.zeros_like(x)
    for _ in range(_ASYMPTOTIC):
        low = shifted < _ASYMPTOTIC
        total = np.where(low, total - 1 / shifted, total)
        shifted = np.where(low, shifted + 1, shifted)
    series = np.zeros_like(x)
    square = shifted * shifted
    for k, (over, under) in reversed(list(enumerate(_BERNOULLI, 1))):
        series = (series + np.longdouble(over) / (under * 2 * k)) / square
    return np.log(shifted) - 0.5 / shifted - series + total


def bessel_i0e(x: Array) -> Array:
    """The modified Bessel function of order 0, times e^-|x|."""
    return _bessel(np.abs(x), 0)


def bessel_i1e(x: Array) -> Array:
    """The modified Bessel function of order 1, times e^-|x|."""
    return np.copysign(_bessel(np.abs(x), 1), x)


def _bessel(x: Array, order: int) -> Array:
    """Order 0 or 1: the power series, and Hankel's asymptotic one from 40 on."""

    def near(z: Array) -> Array:
        quarter = z * z / 4
        term = np.exp(-z) * (z / 2) ** order
        total = term.copy()
        for k in range(1, 100):
            term = term * quarter / (k * (k + order))
            total += term
        return total

    def far(z: Array) -> Array:
        term, total = np.ones_like(z), np.ones_like(z)
        for k in range(1, 30):
            term = -term * ((4 * order * order - (2 * k - 1) ** 2) / (8 * z * k))
            total += term
        return total / np.sqrt(2 * _PI) / np.sqrt(z)

    return _by_parts(x, (x == np.inf, np.zeros_like), (x < 40, near), (x >= 40, far))


def logistic(x: Array) -> Array:
    """1 / (1 + e^-x)."""
    return 1 / (1 + np.exp(-x))


def power(x: Array, y: Array) -> Array:
    """x^y, where x^0 and 1^y are 1, NaN included: NumPy gives NaN for some NaNs, and other ones on other machines."""
    return np.where((x == 1) | (y == 0), x.dtype.type(1), np.power(x, y))


def zeta(x: Array, q: Array) -> Array:
    """Hurwitz's zeta function, as SciPy has it."""
    return np.asarray(scipy.special.zeta(x, q))


def polygamma(n: Array, x: Array) -> Array:
    """The derivative of order n of digamma, for orders up to 8 and positive arguments as SciPy has it."""
    return np.asarray(scipy.special.polygamma(n, x))
