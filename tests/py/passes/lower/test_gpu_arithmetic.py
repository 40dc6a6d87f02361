"""Functions as the GPU computes them, which no other test without a GPU sees: with its approximate instructions.

Where JAX has the function, results rounded to bf16 are as exact as they have to be on the host. In f32, where real
instructions are more exact than the PTX manual promises, errors may be some units in the last place larger; special
values are what they have to be.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xgpu.passes.lower.expand_math import EXPANSIONS, HELPERS
from xgpu.passes.math import short, special
from xgpu.tools.accuracy.formats import FORMATS, errors
from xgpu.tools.accuracy.functions import FUNCTIONS
from xgpu.tools.accuracy.samples import angles_near_quarter_turns, arguments

from .gpu_arithmetic import GpuArithmetic

type Array = np.ndarray[Any, Any]

NAMES = {"math.powf": "pow"}
MEASURED = {name: NAMES.get(name, name.partition(".")[2]) for name in EXPANSIONS}
CASES = [name for name, measured in MEASURED.items() if measured in FUNCTIONS]
PROMISED_LESS = 2.5
"""Units in the last place that the PTX manual's errors make of those that an H200's instructions have."""


@pytest.mark.parametrize("type_", ["f32", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_errors(name: str, type_: str) -> None:
    expansion, function, form = EXPANSIONS[name], FUNCTIONS[MEASURED[name]], FORMATS[type_]
    values = arguments(form, function.arity, function.inside, 1 << (12 if function.arity == 2 else 16))
    if function.is_angle and type_ == "f32":
        values = (np.concatenate([values[0], angles_near_quarter_turns(form)]),)
    build = expansion.short if expansion.short and type_ == "bf16" else expansion.build
    builder = GpuArithmetic(values[0].size, 16 if type_ == "bf16" else 32, HELPERS)
    with np.errstate(all="ignore"):
        got = build(builder, *(value.astype(np.float32) for value in values))
        wide = [value.astype(np.float64) for value in values]
        exact = function.exact(*wide)
        rounded = got.astype(ml_dtypes.bfloat16 if type_ == "bf16" else np.float32)
        found = errors(rounded, exact, form, function.floor)
        if function.domain is not None:
            found = np.where(function.domain(*wide), found, 0)
    worst = int(np.argmax(found))
    bound = (function.bounds[list(FORMATS).index(type_)] or 0.0) + (PROMISED_LESS if type_ == "f32" else 0.0)
    at = ", ".join(str(value[worst]) for value in values)
    assert found[worst] <= bound, f"{name}({at}) = {rounded[worst]}, exactly {exact[worst]}"


def test_most_functions_are_measured() -> None:
    assert set(MEASURED.values()) - set(FUNCTIONS) == {"exp2", "log2"}


def short_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return short.quotient(GpuArithmetic(x.size, 16, {}), x, y)


def float_of(sign: np.ndarray, exponent: np.ndarray, fraction: np.ndarray) -> np.ndarray:
    return (sign << 31 | exponent << 23 | fraction).astype(np.uint32).view(np.float32)


def test_short_quotients_of_all_exponents() -> None:
    """Within 2^-22 of the quotient, or one unit below the normal range; subnormal numbers are of exponent 0."""
    generator = np.random.default_rng(0)
    exponents = (each.ravel() for each in np.meshgrid(np.arange(255), np.arange(255)))
    x, y = (
        float_of(generator.integers(0, 2, each.size), each, generator.integers(1, 1 << 23, each.size))
        for each in exponents
    )
    got = short_quotient(x, y)
    exact = x.astype(np.float64) / y
    largest = float(np.finfo(np.float32).max)
    ends = np.abs(exact) >= largest * (1 - 2.0**-22)
    error = np.abs(got.astype(np.float64) - exact)
    assert (error <= np.abs(exact) * 2.0**-22 + 2.0**-149)[~ends].all()
    # What is rounded to bf16 next is infinite in any case.
    assert (np.abs(got[ends]) >= largest * (1 - 2.0**-21)).all()
    assert (np.signbit(got) == np.signbit(x) ^ np.signbit(y)).all()
    assert {np.inf, 0.0} <= set(np.abs(got).tolist())


def test_short_quotients_of_special_values() -> None:
    smallest, normal, largest = 2.0**-149, 2.0**-126, np.finfo(np.float32).max
    positive = [0.0, smallest, normal, 1.0, 2.0**64, 2.0**65, 2.0**-64, 2.0**-65, largest, np.inf]
    special = np.array([*positive, *(-each for each in positive), np.nan], np.float32)
    x, y = (each.ravel() for each in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        exact = (x / y).astype(ml_dtypes.bfloat16).astype(np.float32)
    got = short_quotient(x, y).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(got, exact)
    is_number = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(exact)[is_number])


EXPONENTS = [(0, 0), (-60, 40), (60, -50), (-133, -133), (-100, -133), (119, 119), (-20, 100), (-40, -133)]


@pytest.mark.parametrize(("first", "second"), EXPONENTS)
def test_short_quotients_of_bf16_round_correctly(first: int, second: int) -> None:
    """All pairs of significands, zero and those of subnormal numbers among them; the results are normal or extremes."""
    significands = np.arange(256, dtype=np.float64)
    x, y = (each.ravel() for each in np.meshgrid(significands * 2.0**first, significands * 2.0**second))
    got = short_quotient(x.astype(np.float32), y.astype(np.float32)).astype(ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        exact = (x / y).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got.astype(np.float32), exact.astype(np.float32))


def computed(build: Callable[..., Array], *values: Array) -> Array:
    with np.errstate(all="ignore"):
        return build(GpuArithmetic(values[0].size, 32, {}), *values)


def test_quotients_by_what_is_positive_and_normal() -> None:
    """Within 2^-22 of the quotient, or one unit below the normal range, of all exponents; infinite divisors too."""
    generator = np.random.default_rng(0)
    x_exponents, y_exponents = (each.ravel() for each in np.meshgrid(np.arange(256), np.arange(1, 256)))
    fractions = [generator.integers(0, 1 << 23, x_exponents.size) for _ in range(2)]
    x = float_of(generator.integers(0, 2, x_exponents.size), x_exponents, np.where(x_exponents == 255, 0, fractions[0]))
    y = float_of(np.zeros_like(y_exponents), y_exponents, np.where(y_exponents == 255, 0, fractions[1]))
    got = computed(special.quotient_by_normal, x, y)
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) / y
        limits = np.abs(exact.astype(np.float32)), np.finfo(np.float32).max
        error = np.abs(got - exact)
        assert (error <= np.abs(exact) * 2.0**-21.4 + 2.0**-149)[limits[0] < limits[1]].all()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    assert np.isinf(got[limits[0] == np.inf]).all()
    is_number = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(exact)[is_number])


def test_quotients_of_f16_round_correctly() -> None:
    """All pairs of significands, and of special values; numbers of f16 are far from the ends of f32."""
    significands = np.arange(1 << 10, 1 << 11, dtype=np.float32)
    special_values = np.array([0, 2.0**-24, 2.0**-14, 1, 3, 65504, np.inf, np.nan], np.float32)
    special_values = np.concatenate([special_values, -special_values])
    for values in (significands, special_values):
        x, y = (each.ravel() for each in np.meshgrid(values, values))
        got = computed(special.quotient_of_narrow, x, y)
        with np.errstate(all="ignore"):
            exact = (x.astype(np.float64) / y).astype(np.float16)
            np.testing.assert_array_equal(got.astype(np.float16), exact)
        is_number = ~np.isnan(exact)
        np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(exact)[is_number])


def test_halves_are_rounded_away_from_zero() -> None:
    near = np.float32([0.5, 1.5, 2.5, 1, 2, 2.0**21 + 0.5, 2.0**22 + 0.5, 2.0**23 - 0.5, 2.0**23, 2.0**23 + 1, 1e10])
    values = np.concatenate([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(1e30))])
    values = np.concatenate([values, [0, 2.0**-149, np.inf, np.random.default_rng(0).uniform(0, 1e6)]])
    values = np.concatenate([values, -values]).astype(np.float32)
    wide = values.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
    got = computed(special.round_away, values)
    np.testing.assert_array_equal(got, exact)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(exact))
    assert np.isnan(computed(special.round_away, np.float32([np.nan]))).all()
