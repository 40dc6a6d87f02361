"""Scans of few elements: computed where they are read, as reductions of few elements are."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from xgpu.runtime.compare import compare


def pieces(x: Any) -> Any:
    return jnp.piecewise(x, [x < 0, x >= 1], [lambda x: -x, lambda x: x * 2, lambda x: x**2])


def drawn(logits: Any, u: Any) -> Any:
    return (jnp.cumsum(jax.nn.softmax(logits), 1) < u[:, None]).sum(1)


def arm(q: Any, lengths: Any) -> Any:
    turned = jnp.cumsum(q, -1)
    return jnp.stack([(lengths * jnp.cos(turned)).sum(-1), (lengths * jnp.sin(turned)).sum(-1)], -1)


def gradient(x: Any) -> Any:
    return jax.grad(lambda x: (jnp.sin(jnp.cumsum(x, 1)) ** 2).sum())(x)


def positions(experts: Any) -> Any:
    chosen = jax.nn.one_hot(experts, 8, dtype=jnp.int32)
    return (jnp.cumsum(chosen, 1) * chosen).sum(-1)


def linear(a: Any, b: Any) -> Any:
    """A linear recurrence of three steps, from the last one on."""
    return lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, b), reverse=True, axis=1)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "pieces": (pieces, ["f32[33,65]"]),
    "drawn": (drawn, ["f32[1000,6]", "f32[1000]"]),
    "arm": (arm, ["f32[500,6]", "f32[6]"]),
    "gradient": (gradient, ["f32[1000,4]"]),
    "positions": (positions, ["s32[400,2]"]),
    "linear": (linear, ["f32[300,3]", "f32[300,3]"]),
    "largest": (lambda x: lax.cummax(x, 1, reverse=True), ["bf16[100,8]"]),
    "any": (lambda x: lax.associative_scan(jnp.logical_or, x, axis=1), ["pred[77,5]"]),
    "of small integers": (lambda x: jnp.cumsum(x, 1), ["s8[77,5]"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name: str) -> None:
    function, specs = PROGRAMS[name]
    program = xgpu.compile(function, *specs)
    assert not any("scan" in kernel.emitter for kernel in program.kernels)
    inputs = program.random_inputs(1)
    for found, expected in zip(program.run(*inputs, sanitize=True), program.reference(*inputs), strict=True):
        assert compare(found, expected).agrees


def test_longer_ones_have_a_kernel() -> None:
    program = xgpu.compile(lambda x: jnp.cumsum(x, 1), "f32[1000,9]")
    assert [kernel.emitter for kernel in program.kernels] == ["scan_row"]
    program = xgpu.compile(lambda x: jnp.cumsum(x, 0), "f32[4,100000]")
    assert [kernel.emitter for kernel in program.kernels] == ["scan_column"]
