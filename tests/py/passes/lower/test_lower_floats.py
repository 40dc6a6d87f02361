"""Float arithmetic on every type, with edge values, on the host: each operation rounds its own result once."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

type Array = np.ndarray[Any, Any]
type Evaluate = Callable[..., list[Array]]

TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
EIGHT_BIT_TYPES = {
    name: getattr(ml_dtypes, numpy_name)
    for name, numpy_name in {
        "f8E4M3FN": "float8_e4m3fn",
        "f8E5M2": "float8_e5m2",
        "f8E4M3": "float8_e4m3",
        "f8E3M4": "float8_e3m4",
        "f8E4M3FNUZ": "float8_e4m3fnuz",
        "f8E5M2FNUZ": "float8_e5m2fnuz",
        "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    }.items()
}
ALL_TYPES = TYPES | EIGHT_BIT_TYPES


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def wide(array: Array) -> Array:
    """The values in a type where one operation on them can be rounded again without harm."""
    return array if array.dtype.itemsize >= 4 else array.astype(np.float32)


def maximum(x: Array, y: Array) -> Array:
    equal_zeros = (x == 0) & (y == 0)
    return np.where(equal_zeros, np.where(np.signbit(x), y, x), np.maximum(x, y))


def minimum(x: Array, y: Array) -> Array:
    return -maximum(-x, -y)


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maximumf": maximum,
    "arith.minimumf": minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "math.copysign": np.copysign,
}
UNSIGNED_ZEROS = ("arith.maxnumf", "arith.minnumf")
PREDICATES = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)


UNARY: dict[str, Callable[[Array], Array]] = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.sqrt": np.sqrt,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.round": half_away,
    "math.roundeven": np.rint,
}


@pytest.mark.parametrize("name", ALL_TYPES)
def test_binary(evaluate: Evaluate, assert_same: Any, float_values: Any, name: str) -> None:
    dtype = ALL_TYPES[name]
    values = float_values(dtype, 64)
    left, right = (np.array(side, dtype) for side in zip(*itertools.product(values, values), strict=True))
    lines = [f"%r{number} = {op} %x0, %x1 : {name}" for number, op in enumerate(BINARY)]
    outputs = [(f"%r{number}", dtype) for number in range(len(BINARY))]
    results = evaluate("\n".join(lines), [left, right], outputs)
    for (op, reference), result in zip(BINARY.items(), results, strict=True):
        expected = reference(wide(left), wide(right)).astype(dtype)
        assert_same(result, expected, f"{op} on {name}", signed_zeros=op not in UNSIGNED_ZEROS)


@pytest.mark.parametrize("name", ALL_TYPES)
def test_unary(evaluate: Evaluate, assert_same: Any, float_values: Any, name: str) -> None:
    dtype = ALL_TYPES[name]
    values = float_values(dtype, 2000)
    lines = [f"%r{number} = {op} %x0 : {name}" for number, op in enumerate(UNARY)]
    results = evaluate("\n".join(lines), [values], [(f"%r{number}", dtype) for number in range(len(UNARY))])
    for (op, reference), result in zip(UNARY.items(), results, strict=True):
        assert_same(result, reference(wide(values)).astype(dtype), f"{op} on {name}")


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64", "f8E4M3FN"])
def test_comparisons(evaluate: Evaluate, float_values: Any, name: str) -> None:
    dtype = ALL_TYPES[name]
    values = float_values(dtype, 48)
    left, right = (np.array(side, dtype) for side in zip(*itertools.product(values, values), strict=True))
    x, y = wide(left), wide(right)
    unordered = np.isnan(x) | np.isnan(y)
    expected = {"ord": ~unordered, "uno": unordered}
    for predicate, function in PREDICATES.items():
        expected[f"o{predicate}"] = function(x, y) & ~unordered
        expected[f"u{predicate}"] = function(x, y) | unordered
    lines = [f"%{predicate} = arith.cmpf {predicate}, %x0, %x1 : {name}" for predicate in expected]
    results = evaluate("\n".join(lines), [left, right], [(f"%{predicate}", np.bool_) for predicate in expected])
    for (predicate, wanted), result in zip(expected.items(), results, strict=True):
        np.testing.assert_array_equal(result, wanted, err_msg=f"{predicate} on {name}")


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_fma_is_rounded_once(evaluate: Evaluate, assert_same: Any, name: str) -> None:
    dtype = TYPES[name]
    one = dtype(1)
    eps = np.finfo(dtype).eps
    x, y, z = (np.array([value], dtype) for value in (one + eps, one - eps, -one))
    (result,) = evaluate(f"%r = math.fma %x0, %x1, %x2 : {name}", [x, y, z], [("%r", dtype)])
    assert_same(result, np.array([-eps * eps], dtype))


@pytest.mark.parametrize("name", ["f16", "bf16", "f8E4M3FN", "f8E5M2"])
def test_small_fma_is_rounded_once(
    evaluate: Evaluate, assert_same: Any, float_values: Any, exact_rounding: Any, name: str
) -> None:
    dtype = ALL_TYPES[name]
    values = float_values(dtype, 4000)
    finite = values[np.isfinite(values.astype(np.float64))]
    random = np.random.default_rng(2)
    x, y, z = (random.permutation(finite) for _ in range(3))
    # A product that lies halfway between two values, and a last operand that decides, too small for f64 to see.
    one, least = dtype(1), float(ml_dtypes.finfo(dtype).smallest_subnormal)  # type: ignore[no-untyped-call]
    half_steps = {
        "f16": (1.5, 1 + 2.0**-10),
        "bf16": (1.5, 1 + 2.0**-7),
        "f8E4M3FN": (1.5, 1.125),
        "f8E5M2": (1.5, 1.25),
    }
    for sign in (1, -1):
        x = np.append(x, dtype(half_steps[name][0]))
        y = np.append(y, dtype(half_steps[name][1]))
        z = np.append(z, dtype(sign * least))
    assert one == 1
    exact = exact_rounding(dtype)
    operands = [array.astype(np.float64).tolist() for array in (x, y, z)]
    numbers = [Fraction(a) * Fraction(b) + Fraction(c) for a, b, c in zip(*operands, strict=True)]
    expected = np.array([exact(number) for number in numbers]).astype(dtype)
    (result,) = evaluate(f"%r = math.fma %x0, %x1, %x2 : {name}", [x, y, z], [("%r", dtype)])
    assert_same(result, expected, signed_zeros=False)


def test_constants_of_every_type(evaluate: Evaluate, assert_same: Any) -> None:
    literals = ["1.5", "-0.0", "0.0", "3.0"]
    for name, dtype in ALL_TYPES.items():
        used = [literal for literal in literals if not (literal == "-0.0" and name.endswith("FNUZ"))]
        lines = [f"%c{number} = arith.constant {literal} : {name}" for number, literal in enumerate(used)]
        lines += [f"%r{number} = arith.select %x0, %c{number}, %c{number} : {name}" for number in range(len(used))]
        results = evaluate(
            "\n".join(lines), [np.array([True])], [(f"%r{number}", dtype) for number in range(len(used))]
        )
        for literal, result in zip(used, results, strict=True):
            assert_same(result, np.array([float(literal)]).astype(dtype), f"{literal} : {name}")
