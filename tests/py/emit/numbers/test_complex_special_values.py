"""Functions of complex numbers at zeros, infinities, NaN and the ends of the range, part by part.

They are XLA's, where that keeps to its own formulas. On the CPU it does not in three ways, which the tests say:

- It takes subnormal numbers for zero. So zero, of any sign, is expected where a part of a result is subnormal, and what
  becomes of subnormal arguments is tested against the exact results.
- It rounds a product and the sum after it at once. So products are exact here.
- The small part of a reciprocal root or a power is what the rounding of an angle leaves of it. The sign of that means
  nothing; ours has the exact one of reciprocal roots.

On an H200, XLA gives the results of the tests, subnormal ones too, but for those that docs/decisions.md lists.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import xgpu

Array = np.ndarray[Any, Any]

PARTS: dict[str, type[np.floating[Any]]] = {"c64": np.float32, "c128": np.float64}
SMALL = {"c64": 2.0**-60, "c128": 2.0**-500}
"""Numbers whose squares are normal."""
SUBNORMAL = {"c64": 2.0**-130, "c128": 2.0**-1026}
CIRCULAR = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh")
UNARY = (*CIRCULAR, "abs", "exp", "expm1", "log", "log1p", "logistic", "neg", "rsqrt", "sign", "sqrt", "square")


def grid(name: str, positive: list[float], *others: float) -> Array:
    """Return every number whose parts are ``positive``, negative as well, or ``others``."""
    values = np.array([*positive, *(-each for each in positive), *others], PARTS[name])
    found = np.empty(values.size**2, name.replace("c", "complex"))
    found.real, found.imag = np.repeat(values, values.size), np.tile(values, values.size)
    return found


def parts(values: Array) -> Array:
    return values.view(f"f{values.itemsize // 2}") if values.dtype.kind == "c" else values


def run(function: Callable[..., Any], name: str, *inputs: Array) -> tuple[Array, Array]:
    """Return the parts of ours and of XLA's results."""
    compiled = xgpu.compile(function, *[f"{name}[{each.size}]" for each in inputs])
    (ours,), (xla,) = compiled.run(*inputs, on="host"), compiled.reference(*inputs)
    return parts(ours), parts(xla)


def assert_same_kinds(ours: Array, xla: Array) -> None:
    """Expect NaN, signed infinities, signed zeros and normal numbers of either sign in the same places."""
    is_subnormal = (np.abs(ours) < np.finfo(ours.dtype).tiny) & (ours != 0)
    assert not xla[is_subnormal].any()
    ours, xla = (np.where(is_subnormal, 0, each) for each in (ours, xla))
    ours, xla = (np.where(np.isfinite(each) & (each != 0), np.sign(each), each) for each in (ours, xla))
    np.testing.assert_array_equal(ours, xla)
    is_number = ~np.isnan(ours)
    np.testing.assert_array_equal(np.signbit(ours[is_number]), np.signbit(xla[is_number]))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("function", UNARY)
def test_functions_are_xlas(function: str, name: str) -> None:
    largest, small = float(np.finfo(PARTS[name]).max), SMALL[name]
    ends = [0.0, small, 0.5, 1.0, 1.5, 3.7, 100.0, 1 / small, largest, np.inf]
    inputs = grid(name, ends, np.nan)
    ours, xla = run(getattr(lax, function), name, inputs)
    if function == "rsqrt":
        meaningful = np.repeat(~np.isfinite(inputs) | (inputs == 0) | (inputs.real > 0), 2)
        ours, xla = ours[meaningful], xla[meaningful]
    assert_same_kinds(ours, xla)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("function", ["add", "div", "mul", "sub"])
def test_arithmetic_is_xlas(function: str, name: str) -> None:
    values = grid(name, [0.0, SMALL[name], 1.0, 2.0, np.inf], np.nan)
    assert_same_kinds(*run(getattr(lax, function), name, np.repeat(values, values.size), np.tile(values, values.size)))


@pytest.mark.parametrize("name", PARTS)
def test_powers_are_xlas(name: str) -> None:
    """But for the signs of finite parts."""
    values = grid(name, [0.0, SMALL[name], 1.0, 2.0, np.inf], np.nan)
    ours, xla = run(lax.pow, name, np.repeat(values, values.size), np.tile(values, values.size))
    assert_same_kinds(*(np.where(np.isfinite(each), 0.0, each) for each in (ours, xla)))


@pytest.mark.parametrize("name", PARTS)
def test_small_parts_of_reciprocal_roots_are_exact(name: str) -> None:
    """XLA's is -3.6e-8 of the first in c64, and 5e-17 in c128."""
    small = SMALL[name]
    inputs = np.array([complex(-1.5, small), complex(-1 / small, -0.5), complex(-4, 0.0), complex(-4, -0.0)])
    ours, _ = run(lax.rsqrt, name, inputs.astype(name.replace("c", "complex")))
    exact = [small / 2 / 1.5**1.5, -(1.5**-0.5), 0.25 * small**1.5, small**0.5, 0.0, -0.5, 0.0, 0.5]
    np.testing.assert_allclose(ours, exact, rtol=8 * np.finfo(PARTS[name]).eps)


@pytest.mark.parametrize("name", PARTS)
def test_logarithms_of_numbers_straight_up_and_down(name: str) -> None:
    """Their angle is the number nearest to pi/2, whatever the sign of the real part's zero."""
    inputs = np.array([complex(0.0, 2), complex(-0.0, 2), complex(0.0, -2), complex(-0.0, -2), complex(-0.0, np.inf)])
    ours, _ = run(lax.log, name, inputs.astype(name.replace("c", "complex")))
    np.testing.assert_array_equal(ours[1::2], np.array([1, 1, -1, -1, 1], ours.dtype) * ours.dtype.type(np.pi / 2))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("function", ["asin", "asinh", "atan", "atanh", "expm1", "log1p", "sin", "tan", "tanh"])
def test_subnormal_arguments_stay_what_they_are(function: str, name: str) -> None:
    inputs = grid(name, [SUBNORMAL[name], SUBNORMAL[name] * 1.5, float(np.finfo(PARTS[name]).smallest_subnormal)])
    ours, _ = run(getattr(lax, function), name, inputs)
    np.testing.assert_array_equal(ours, parts(inputs))


SCALED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "abs": (lax.abs, 1),
    "sqrt": (lax.sqrt, 0.5),
    "rsqrt": (lax.rsqrt, -0.5),
    "sign": (lax.sign, 0),
}
"""Functions of a number and the powers of its size that they grow with."""


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("function", SCALED)
def test_subnormal_arguments_are_as_exact_as_larger_ones(function: str, name: str) -> None:
    smaller, normal = (grid(name, [size, size * 1.5]) for size in (SUBNORMAL[name], 1.0))
    ours, _ = run(SCALED[function][0], name, smaller)
    larger, _ = run(SCALED[function][0], name, normal)
    np.testing.assert_allclose(ours, larger * SUBNORMAL[name] ** SCALED[function][1], rtol=4 * np.finfo(ours.dtype).eps)


@pytest.mark.parametrize("name", PARTS)
def test_products_and_quotients_reach_and_leave_the_subnormal_range(name: str) -> None:
    larger = grid(name, [1.0, 1.5])
    smaller = (larger * SUBNORMAL[name]).astype(larger.dtype)
    scale = np.full_like(larger, SMALL[name] ** 2)
    factor = SUBNORMAL[name] / SMALL[name] ** 2
    for function, left, right, exact in (
        (lax.mul, (larger * factor).astype(larger.dtype), scale, smaller),
        (lax.div, smaller, scale, (larger * factor).astype(larger.dtype)),
    ):
        ours, _ = run(function, name, left, right)
        np.testing.assert_array_equal(ours, parts(exact))


@pytest.mark.skipif(
    jax.__version_info__ < (0, 12), reason="this JAX leaves lengths to StableHLO's abs: NaN there, as XLA's on the GPU"
)
def test_the_longest_part_decides_the_length() -> None:
    """An infinite part makes the length infinite whatever the other, as in C; XLA on the GPU gives NaN beside NaN."""
    inputs = np.array([complex(np.inf, np.nan), complex(np.nan, -np.inf)], np.complex64)
    np.testing.assert_array_equal(run(lax.abs, "c64", inputs)[0], [np.inf, np.inf])
