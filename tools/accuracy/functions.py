"""The functions that are measured: what computes them, the exact function, and the errors known and allowed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
from jax import lax

from xgpu.tools.accuracy import exact
from xgpu.tools.accuracy.exact import Exact, by_width, odd

Bounds = tuple[float | None, float | None, float | None, float | None]
"""A number for each of bf16, f16, f32 and f64; None where there is none."""
_ROUNDED: Bounds = (0.5, 0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Function:
    """A function of one or two floats.

    ``compute`` is a JAX function, or the name of a StableHLO operation that JAX itself composes of others. ``bounds``
    are the largest errors allowed, in units in the last place. ``published`` are those that JAX's documentation
    ("Numerical accuracy", on docs.jax.dev) gives for its code on GPUs. ``inside`` is where most of what is of interest
    happens. Below ``floor``, errors count in units of ``floor``: near its zeros, the function is no more exact than
    that. ``domain`` says which arguments count. A function that JAX or CHLO composes of operations of StableHLO may
    take subnormal numbers for zero in between: it ``flushes``.
    """

    compute: Callable[..., Any] | str
    exact: Exact
    inside: tuple[float, float]
    bounds: Bounds
    published: Bounds = (None, None, None, None)
    arity: int = 1
    floor: float = 0.0
    is_angle: bool = False
    domain: Callable[..., Any] | None = None
    flushes: bool = False


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _lgamma(x: Any) -> Any:
    return np.where(x == -np.inf, np.inf, scipy.special.gammaln(x))


def _order_and_positive(n: Any, x: Any) -> Any:
    return (n >= 1) & (n <= 8) & (n == np.floor(n)) & (x >= 1e-2) & (x <= 100)


def _ordinary_zeta(x: Any, q: Any) -> Any:
    return (x >= 1.01) & (x <= 30) & (q >= 0.1) & (q <= 100)


_SPECIAL = {
    "bessel_i0e": Function(
        lax.bessel_i0e,
        by_width(scipy.special.i0e, exact.bessel_i0e),
        (-20, 20),
        (0.501, 0.501, 7.5, 6),
        (0.5, 0.5, 8.0, 7.5),
    ),
    "bessel_i1e": Function(
        lax.bessel_i1e,
        by_width(odd(scipy.special.i1e), exact.bessel_i1e),
        (-20, 20),
        (0.501, 0.501, 9.5, 6),
        (0.5, 1.0, 15.5, 7.5),
    ),
    "digamma": Function(
        lax.digamma,
        by_width(scipy.special.psi, exact.digamma),
        (-9, 9),
        (0.501, 0.501, 16, 16),
        floor=1.0,
        domain=lambda x: x != 0,
    ),
    "erf_inv": Function(
        lax.erf_inv,
        by_width(odd(scipy.special.erfinv), exact.erf_inv),
        (-1, 1),
        (0.501, 0.501, 2.7, 3.3),
        (0.5, 1.0, 65.0, 500000.0),
    ),
    "lgamma": Function(lax.lgamma, by_width(_lgamma, exact.lgamma), (-9, 9), (0.501, 0.501, 6, 6.5), floor=1.0),
}
"""Functions that `expand-math` writes as one, and XLA computes as JAX or CHLO writes them, operation by operation."""

_COMPOSED = {
    "polygamma": Function(
        lax.polygamma,
        exact.polygamma,
        (0, 9),
        # Computed in f32 and rounded: 27.7 units in the last place of f32 are 0.0034 of f16.
        (0.501, 0.5034, 27.7, None),
        arity=2,
        domain=_order_and_positive,
        flushes=True,
    ),
    "zeta": Function(
        lax.zeta, exact.zeta, (1, 20), (0.501, 0.501, 9.6, None), arity=2, domain=_ordinary_zeta, flushes=True
    ),
}
"""Functions that CHLO writes out in StableHLO, operation by operation, so that they are as exact as in XLA."""

_ELEMENTARY = {
    "acos": Function(lax.acos, np.arccos, (-1, 1), (0.501, 0.501, 1.2, 1.1), (0.5, 1.0, 1.5, 1.5)),
    "acosh": Function(lax.acosh, np.arccosh, (1, 9), (0.501, 0.501, 2.1, 1.8), (0.5, 1.0, 2.5, 2.5)),
    "asin": Function(lax.asin, np.arcsin, (-1, 1), (0.501, 0.501, 0.8, 0.7), (0.5, 1.0, 1.5, 2.5)),
    "asinh": Function(lax.asinh, np.arcsinh, (-9, 9), (0.501, 0.501, 2, 1.8), (0.5, 1.0, 2.0, 2.5)),
    "atan": Function(lax.atan, np.arctan, (-9, 9), (0.501, 0.501, 1.5, 1.1), (0.5, 1.0, 1.5, 2.5)),
    "atan2": Function(lax.atan2, np.arctan2, (-9, 9), (0.501, 0.501, 2.9, 1.5), (1.0, 1.0, 3.0, 1.5), arity=2),
    "atanh": Function(lax.atanh, np.arctanh, (-1, 1), (0.501, 0.501, 3.2, 2), (0.5, 0.5, 3.5, 3.5)),
    "cbrt": Function(lax.cbrt, np.cbrt, (-9, 9), (0.501, 0.501, 0.9, 0.8), (0.5, 1.0, 1.5, 1.5)),
    "cos": Function(lax.cos, np.cos, (-100, 100), (0.501, 0.501, 1, 1), (0.5, 1.0, 2.0, 1.5), is_angle=True),
    "cosh": Function(lax.cosh, np.cosh, (-90, 90), (0.501, 0.501, 2.4, 1.4), (0.5, 1.0, 2.5, 2.5)),
    "erf": Function(
        lax.erf, by_width(scipy.special.erf, exact.erf), (-6, 6), (0.501, 0.501, 1.3, 1.1), (0.5, 1.0, 6.5, 2.5)
    ),
    "erfc": Function(
        lax.erfc, by_width(scipy.special.erfc, exact.erfc), (-6, 27), (0.501, 0.501, 4.8, 4.3), (0.5, 1.0, 66.5, 350.0)
    ),
    "exp": Function(lax.exp, np.exp, (-104, 89), (0.501, 0.501, 2, 1.1), (1.0, 1.0, 2.0, 1.5)),
    "expm1": Function(lax.expm1, np.expm1, (-20, 89), (0.501, 0.501, 1.4, 1.4), (0.5, 1.0, 1.5, 1.5)),
    "log": Function(lax.log, np.log, (0, 4), (0.501, 0.501, 0.95, 0.9), (0.5, 1.0, 1.0, 1.5)),
    "log1p": Function(lax.log1p, np.log1p, (-1, 4), (0.501, 0.501, 1, 1), (0.5, 1.0, 1.0, 1.5)),
    "logistic": Function("logistic", exact.logistic, (-20, 20), (0.501, 0.501, 3.3, 2.1), (2.5, 2.0, 4.0, 4.5)),
    "pow": Function(lax.pow, exact.power, (-9, 9), (0.501, 0.501, 1.1, 1.2), arity=2),
    "rsqrt": Function(lax.rsqrt, _rsqrt, (0, 4), (0.501, 0.501, 1.7, 1.5), (0.5, 0.5, 2.0, 1.5)),
    "sin": Function(lax.sin, np.sin, (-100, 100), (0.501, 0.501, 1, 1), (0.5, 1.0, 1.5, 2.5), is_angle=True),
    "sinh": Function(lax.sinh, np.sinh, (-90, 90), (0.501, 0.501, 3, 1.7), (0.5, 0.5, 3.0, 2.5)),
    "tan": Function(lax.tan, np.tan, (-9, 9), (0.501, 0.501, 3.2, 2.4), (0.5, 1.0, 3.5, 2.5), is_angle=True),
    "tanh": Function(lax.tanh, np.tanh, (-10, 10), (0.501, 0.501, 1.9, 1.1), (0.5, 0.5, 5.5, 3.5)),
}
"""Common functions that `expand-math` writes."""

_EXACT = {
    "add": Function(lax.add, np.add, (-9, 9), _ROUNDED, arity=2),
    "div": Function(lax.div, np.divide, (-9, 9), (0.5, 0.5, 2.1, 0.5), arity=2),
    "mul": Function(lax.mul, np.multiply, (-9, 9), _ROUNDED, arity=2),
    "rem": Function(lax.rem, np.fmod, (-9, 9), (0, 0, 0, 0), arity=2),
    "sqrt": Function(lax.sqrt, np.sqrt, (0, 4), (0.5, 0.5, 1, 0.5), (0.5, 0.5, 1.0, 0.5)),
    "square": Function(lax.square, np.square, (-4, 4), _ROUNDED, (0.5, 0.5, 0.5, 0.5)),
    "sub": Function(lax.sub, np.subtract, (-9, 9), _ROUNDED, arity=2),
}
"""Functions that are exact to the last bit, but for what GPUs compute of f32 with instructions that XLA takes too."""

FUNCTIONS: dict[str, Function] = dict(sorted((_ELEMENTARY | _SPECIAL | _COMPOSED | _EXACT).items()))
"""Every function by name."""
