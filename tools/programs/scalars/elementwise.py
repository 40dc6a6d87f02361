"""One program per elementwise operation and type."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from xgpu.dtypes import dtype_named
from xgpu.tools.programs.base import ALL, FLOATS, INTEGERS, REALS, SIGNED, SIZE, TestProgram, pairs

UNARY: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "abs": (lax.abs, (*FLOATS, *SIGNED)),
    "acos": (lax.acos, FLOATS),
    "acosh": (lax.acosh, FLOATS),
    "asin": (lax.asin, FLOATS),
    "asinh": (lax.asinh, FLOATS),
    "atan": (lax.atan, FLOATS),
    "atanh": (lax.atanh, FLOATS),
    "bessel_i0e": (lax.bessel_i0e, FLOATS),
    "bessel_i1e": (lax.bessel_i1e, FLOATS),
    "cbrt": (lax.cbrt, FLOATS),
    "ceil": (lax.ceil, FLOATS),
    "clz": (lax.clz, INTEGERS),
    "cos": (lax.cos, FLOATS),
    "cosh": (lax.cosh, FLOATS),
    "digamma": (lax.digamma, FLOATS),
    "erf": (lax.erf, FLOATS),
    "erf_inv": (lax.erf_inv, FLOATS),
    "erfc": (lax.erfc, FLOATS),
    "exp": (lax.exp, FLOATS),
    "expm1": (lax.expm1, FLOATS),
    "floor": (lax.floor, FLOATS),
    "is_finite": (lax.is_finite, FLOATS),
    "lgamma": (lax.lgamma, FLOATS),
    "log": (lax.log, FLOATS),
    "log1p": (lax.log1p, FLOATS),
    "logistic": (lax.logistic, FLOATS),
    "neg": (lax.neg, REALS),
    "not": (lax.bitwise_not, (*INTEGERS, "pred")),
    "population_count": (lax.population_count, INTEGERS),
    "round_away": (partial(lax.round, rounding_method=lax.RoundingMethod.AWAY_FROM_ZERO), FLOATS),
    "round_even": (partial(lax.round, rounding_method=lax.RoundingMethod.TO_NEAREST_EVEN), FLOATS),
    "rsqrt": (lax.rsqrt, FLOATS),
    "sign": (lax.sign, REALS),
    "sin": (lax.sin, FLOATS),
    "sinh": (lax.sinh, FLOATS),
    "sqrt": (lax.sqrt, FLOATS),
    "tan": (lax.tan, FLOATS),
    "tanh": (lax.tanh, FLOATS),
}
"""Functions of one array, each with the types it is defined for."""

BINARY: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "add": (lax.add, REALS),
    "and": (lax.bitwise_and, (*INTEGERS, "pred")),
    "atan2": (lax.atan2, FLOATS),
    "div": (lax.div, REALS),
    "eq": (lax.eq, ALL),
    "ge": (lax.ge, ALL),
    "gt": (lax.gt, ALL),
    "le": (lax.le, ALL),
    "lt": (lax.lt, ALL),
    "max": (lax.max, ALL),
    "min": (lax.min, ALL),
    "mul": (lax.mul, REALS),
    "ne": (lax.ne, ALL),
    "nextafter": (lax.nextafter, FLOATS),
    "or": (lax.bitwise_or, (*INTEGERS, "pred")),
    "pow": (lax.pow, FLOATS),
    "rem": (lax.rem, REALS),
    "shift_left": (lax.shift_left, INTEGERS),
    "shift_right_arithmetic": (lax.shift_right_arithmetic, INTEGERS),
    "shift_right_logical": (lax.shift_right_logical, INTEGERS),
    "sub": (lax.sub, REALS),
    "xor": (lax.bitwise_xor, (*INTEGERS, "pred")),
}
"""Functions of two arrays, each with the types it is defined for."""


def _clamp(value: Any, low: Any, high: Any) -> Any:
    return lax.clamp(low, value, high)


def _select(left: Any, right: Any) -> Any:
    return lax.select(left > right, left, right)


def _reduce_precision(value: Any) -> tuple[Any, ...]:
    return tuple(lax.reduce_precision(value, *bits) for bits in ((5, 10), (8, 7), (4, 3), (3, 1)))


def programs() -> Iterator[TestProgram]:
    """Yield the programs: special values against each other, then random values, in a prime number of elements."""
    for arity, table in ((1, UNARY), (2, BINARY)):
        for name, (function, dtypes) in table.items():
            for dtype in dtypes:
                yield _program(f"{name}-{dtype}", function, dtype, arity)
    for dtype in REALS:
        yield _program(f"clamp-{dtype}", _clamp, dtype, 3)
        yield _program(f"select-{dtype}", _select, dtype, 2)
    for dtype in FLOATS:
        yield _program(f"reduce_precision-{dtype}", _reduce_precision, dtype, 1)
        width = dtype_named(dtype).bits
        yield _program(f"bitcast-{dtype}", partial(_bitcast, target=f"uint{width}"), dtype, 1)
    for source in ALL:
        yield _program(f"convert-{source}", partial(_convert_to_all, source=source), source, 1)


def _bitcast(value: Any, target: str) -> Any:
    return lax.bitcast_convert_type(value, jnp.dtype(target))


def _convert_to_all(value: Any, source: str) -> tuple[Any, ...]:
    with jax.enable_x64(True):
        return tuple(lax.convert_element_type(value, dtype_named(target).numpy) for target in ALL if target != source)


def _program(name: str, function: Callable[..., Any], dtype: str, arity: int) -> TestProgram:
    return TestProgram(name, function, (f"{dtype}[{SIZE}]",) * arity, partial(pairs, dtype, arity))
