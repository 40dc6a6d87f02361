"""Quotients of f32 are marked as only rounded to bf16 if that is all that the whole program does with them."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import xgpu

MARKED = "stablehlo.divide %arg0, %arg1 {xgpu.grade = 16 : i64}"
PAIR = ("f32[64,40]", "f32[64,40]")


def rounded(x: Any, y: Any) -> Any:
    return (x / y).astype(jnp.bfloat16)


def rounded_twice(x: Any, y: Any) -> Any:
    quotient = x / y
    return rounded(x, y), quotient.astype(jnp.bfloat16) * 2


def rounded_for_sums(x: Any, y: Any) -> Any:
    return jnp.sum(rounded(x, y), 0), rounded(x, y).T


def a_result_too(x: Any, y: Any) -> Any:
    return rounded(x, y), x / y


def computed_with(x: Any, y: Any) -> Any:
    quotient = x / y
    return quotient.astype(jnp.bfloat16), quotient.T + 1


def rounded_to_f16(x: Any, y: Any) -> Any:
    return (x / y).astype(jnp.float16)


def rounded_to_both(x: Any, y: Any) -> Any:
    quotient = x / y
    return quotient.astype(jnp.float16), quotient.astype(jnp.bfloat16)


def left_to_xla(x: Any, y: Any) -> Any:
    quotient = x / y
    return quotient.astype(jnp.bfloat16), jnp.sort(quotient)


@pytest.mark.parametrize("function", [rounded, rounded_twice, rounded_for_sums])
def test_rounded_alone(function: Callable[..., Any]) -> None:
    text = xgpu.compile(function, *PAIR).ir("fusions")
    assert text.count("stablehlo.divide") == text.count(MARKED) > 0


@pytest.mark.parametrize("function", [a_result_too, computed_with, rounded_to_f16, rounded_to_both, left_to_xla])
def test_used_otherwise(function: Callable[..., Any]) -> None:
    """Though one of its kernels may do nothing but round it: kernels must agree on the number."""
    text = xgpu.compile(function, *PAIR).ir("fusions")
    assert "stablehlo.divide" in text
    assert "xgpu.grade" not in text


def test_f64_is_not_marked() -> None:
    text = xgpu.compile(rounded, "f64[64,40]", "f64[64,40]").ir("fusions")
    assert "stablehlo.divide" in text
    assert "xgpu.grade" not in text


def test_the_mark_reaches_the_gpu_alone() -> None:
    compiled = xgpu.compile(rounded, *PAIR)
    assert "div" not in compiled.ir("ptx")
    assert compiled.ir("ptx").count("rcp.approx.ftz.f32") > 0
    inputs = compiled.random_inputs(1)
    assert (compiled.run(*inputs)[0] == compiled.reference(*inputs)[0]).all()
