"""Reductions over f16 and bf16 that round are those of f32; those that only pick elements stay."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def text_of(function, spec: str) -> str:
    return xgpu.compile(function, spec).ir("stablehlo")


@pytest.mark.parametrize("element", ["bf16", "f16"])
@pytest.mark.parametrize("operation", [lax.add, lax.mul], ids=["add", "multiply"])
def test_sums_and_products(element: str, operation) -> None:
    text = text_of(lambda x: lax.reduce(x, np.ones((), x.dtype), operation, (1,)), f"{element}[4,100]")
    assert "tensor<4x100xf32>, tensor<f32>) -> tensor<4xf32>" in text
    assert f"(tensor<4xf32>) -> tensor<4x{element}>" in text


@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_picking_stays(element: str) -> None:
    text = text_of(lambda x: (jnp.max(x, 1), jnp.argmin(x, 1)), f"{element}[4,100]")
    assert "xf32" not in text


def test_other_types_stay() -> None:
    assert "stablehlo.convert" not in text_of(lambda x: jnp.sum(x, 1), "f32[4,100]")


def test_several_operands_are_widened_together() -> None:
    def function(x, y):
        zero = np.zeros((), x.dtype)
        return lax.reduce((x, y), (zero, zero), lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])), (1,))

    text = xgpu.compile(function, "bf16[4,100]", "bf16[4,100]").ir("stablehlo")
    assert "-> (tensor<4xf32>, tensor<4xf32>)" in text
