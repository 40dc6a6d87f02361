"""Branches that cost little are all computed, and give what a branch that is taken gives."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def _nested(x: Any, i: Any) -> Any:
    inner = lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda x: -x, x)  # noqa: E731
    return lax.cond(i % 2 == 0, lambda x: x * 0.5 + 1, inner, x)


def _in_a_loop(x: Any, i: Any) -> Any:
    return lax.scan(lambda c, j: (_nested(c, i + j), c[0]), x, jnp.arange(6))


def _infinite_elsewhere(x: Any, i: Any) -> Any:
    """What is not taken divides by zero and overflows."""
    return lax.cond(i > 0, lambda x: (x / i, i // i), lambda x: (x * 2, i), x)


PROGRAMS = {
    "two": lambda x, i: lax.cond(i > 0, jnp.sin, lambda x: x * 2, x),
    "three": lambda x, i: lax.switch(i, [lambda x: (x, x + 1), lambda x: (x * 2, x), lambda x: (jnp.cos(x), x)], x),
    "a reduction": lambda x, i: lax.cond(i > 0, lambda x: x - x.max(), lambda x: x[::-1], x),
    "nested": _nested,
    "in a loop": _in_a_loop,
    "infinite elsewhere": _infinite_elsewhere,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    function, x = PROGRAMS[name], jnp.linspace(-2, 2, 300)
    text = xgpu.compile(function, x, jnp.int32(0)).ir("fusions")
    assert "stablehlo.case" not in text
    assert "stablehlo.if" not in text
    for i in (-5, 0, 1, 2, 9):
        pairs = zip(*(jax.tree.leaves(jit(function)(x, i)) for jit in (xgpu.jit, jax.jit)), strict=True)
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def _many_kernels(x: Any) -> Any:
    for i in range(1, 20):
        x = jax.nn.softmax(x.T * i)
    return x


def _wide_window(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (128, 128), (1, 1), "SAME")


STAYING = {
    "a product": (lambda x: x @ x, "f32[64,64]"),
    "a large array": (jnp.sin, "f32[8192,8192]"),
    "many kernels": (_many_kernels, "f32[64,64]"),
    "a wide window": (_wide_window, "f32[1024,1024]"),
}


@pytest.mark.parametrize("name", STAYING)
def test_branches_with_much_work_stay(name: str) -> None:
    function, spec = STAYING[name]
    text = xgpu.compile(lambda p, x: lax.cond(p, function, lambda x: x * 2, x), "pred[]", spec).ir("fusions")
    assert "stablehlo.case" in text
