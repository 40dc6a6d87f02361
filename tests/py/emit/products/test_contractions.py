"""Sums of products: in which type they are made, and when they are rounded."""

import numpy as np
import pytest

import xgpu
from xgpu.dtypes import dtype_named
from xgpu.frontend.mlir_text import parse_module
from xgpu.runtime.reference import Reference


def dot(left, right, result):
    types = [f"tensor<{shape}x{dtype_named(name).mlir}>" for shape, name in (("3x40", left), ("40x2", right))]
    types.append(f"tensor<3x2x{dtype_named(result).mlir}>")
    return f"""module @t {{ func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{
        %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({types[0]}, {types[1]}) -> {types[2]}
        return %0 : {types[2]}
    }} }}"""


def numbers(name, shape):
    """Numbers whose products and sums are exact in f32, and are not in 16 bits."""
    dtype = dtype_named(name)
    generator = np.random.default_rng(5)
    values = generator.integers(0 if dtype.is_unsigned else -5, 6, shape)
    if dtype.kind == "complex":
        return ((values + 1j * generator.integers(-5, 6, shape)) / 4).astype(dtype.numpy)
    return (values / 4 if dtype.is_float else values).astype(dtype.numpy)


@pytest.mark.parametrize(
    "types",
    [
        ("f32", "f32", "f32"), ("f32", "f32", "f64"), ("f32", "f32", "bf16"), ("f32", "f32", "s32"),
        ("f64", "f64", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "bf16"), ("bf16", "bf16", "f16"),
        ("f16", "f16", "f32"), ("s8", "s8", "s8"), ("s8", "s8", "s32"), ("s8", "s8", "f32"), ("u8", "u8", "s32"),
        ("u8", "u8", "u8"), ("s32", "s32", "s8"), ("pred", "pred", "pred"), ("pred", "pred", "s32"),
        ("pred", "pred", "f16"), ("c64", "c64", "f32"), ("c64", "c64", "s32"), ("c64", "c64", "f64"),
    ],
)  # fmt: skip
def test_dot_products_agree_with_xla_to_the_last_bit(types):
    left, right, _ = types
    operands = [numbers(left, (3, 40)), numbers(right, (40, 2))]
    text = dot(*types)
    (expected,) = Reference(parse_module(text, "t.mlir"))(operands)
    (result,) = xgpu.compile(text).run(*operands)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_a_sum_of_16_bit_products_is_rounded_once():
    left = np.full((3, 40), 1, np.float16)
    left[:, 0] = 2048
    (result,) = xgpu.compile(dot("f16", "f16", "f16")).run(left, np.ones((40, 2), np.float16))
    # In f16, adding 1 to 2048 gives 2048 again.
    np.testing.assert_array_equal(result, np.full((3, 2), 2088, np.float16))
