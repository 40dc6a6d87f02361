"""Arithmetic on floats of 8 and 4 bits, for every pair of values, is what XLA makes of it to the bit."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.dtypes import DTYPES, DType
from xgpu.runtime.compare import compare, difference
from xgpu.tools.programs.scalars.conversions import all_values

NARROW = [dtype for dtype in DTYPES if dtype.is_float and dtype.bits <= 8]
OPTIONS = {"xla_allow_excess_precision": False}

EXACT: list[Callable[..., Any]] = [lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.max, lax.min, lax.lt, lax.eq]
EXACT_UNARY: list[Callable[..., Any]] = [
    lax.neg,
    lax.abs,
    lax.sign,
    lax.sqrt,
    lax.floor,
    lax.is_finite,
    lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
]
# These go by f16, whose values two libraries may round differently.
APPROXIMATE: list[Callable[..., Any]] = [lax.exp, lax.log, lax.tanh, lax.sin, lax.rsqrt, lax.cbrt, lax.expm1, lax.log1p]


def values_of(dtype: DType) -> np.ndarray:
    values = all_values(dtype)
    # XLA on the CPU takes denormals for zero, also those of f32, in which it computes with these.
    return values[64:190] if dtype.hlo == "f8e8m0fnu" else values


def both(functions: list[Callable[..., Any]], arrays: list[np.ndarray], dtype: DType) -> list[tuple[Any, Any]]:
    """The results of xgpu on the host, and of XLA given the program as JAX traces it."""

    def program(*operands: Any) -> list[Any]:
        return [function(*operands) for function in functions]

    compiled = xgpu.compile(program, *[f"{dtype}[{arrays[0].size}]"] * len(arrays))
    with jax.default_device(jax.devices("cpu")[0]):
        expected = jax.jit(program, compiler_options=OPTIONS)(*arrays)
    return list(zip(compiled.run(*arrays, on="host"), [np.asarray(each) for each in expected], strict=True))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_pair(dtype: DType) -> None:
    values = values_of(dtype)
    pairs = [np.repeat(values, values.size), np.tile(values, values.size)]
    for function, (got, expected) in zip(EXACT, both(EXACT, pairs, dtype), strict=True):
        assert difference(got, expected) is None, function.__name__


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_the_total_order_of_every_pair(dtype: DType) -> None:
    """NaN is ordered by its bits too; where there are no zeros of two signs, it has the place of its f16."""
    values = all_values(dtype)
    bits = np.arange(values.size)
    assert difference(values, bits.astype(np.uint8).view(dtype.numpy)) is None
    half = values.size // 2
    order = np.where(bits < half, bits, half - 1 - bits)
    if dtype.hlo.endswith("fnuz"):
        order[half] = -values.size
    elif dtype.hlo == "f8e8m0fnu":
        order = bits
    left, right = np.repeat(bits, values.size), np.tile(bits, values.size)
    array = f"tensor<{left.size}x{dtype.mlir}>"
    lines = [
        f"%{name} = stablehlo.compare {name}, %x, %y, TOTALORDER : ({array}, {array}) -> tensor<{left.size}xi1>"
        for name in ("LT", "EQ")
    ]
    truths = ", ".join([f"tensor<{left.size}xi1>"] * 2)
    body = "\n".join([*lines, f"return %LT, %EQ : {truths}"])
    compiled = xgpu.compile(f"func.func @main(%x: {array}, %y: {array}) -> ({truths}) {{ {body} }}")
    less, equal = compiled.run(values[left], values[right], on="host")
    np.testing.assert_array_equal(less, order[left] < order[right])
    np.testing.assert_array_equal(equal, order[left] == order[right])


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_value(dtype: DType) -> None:
    values = values_of(dtype)
    for number, (got, expected) in enumerate(both(EXACT_UNARY, [values], dtype)):
        assert difference(got, expected) is None, f"function {number}"
    for function, (got, expected) in zip(APPROXIMATE, both(APPROXIMATE, [values], dtype), strict=True):
        if dtype.hlo == "f4e2m1fn":
            # NaN, which this type lacks, becomes -0, and every step is large.
            assert difference(got, expected) is None, function.__name__
        else:
            assert compare(got, expected).agrees, function.__name__


def test_a_sum_is_rounded_at_its_end() -> None:
    # In f8e4m3fn itself the sum would stay at 16, where 1 is half of the last place.
    ones = np.ones(100).astype("float8_e4m3fn")
    compiled = xgpu.compile(lambda x: lax.reduce(x, np.zeros((), x.dtype), lax.add, (0,)), "f8e4m3fn[100]")
    (result,) = compiled.run(ones, on="host")
    assert float(result) == 96 and float(np.float32(100).astype("float8_e4m3fn")) == 96
