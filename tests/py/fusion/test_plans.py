"""The plans of programs that everybody runs: which kernels, built around what, and what is left to XLA."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from xgpu.compiler import plan_program
from xgpu.frontend import from_jax


def _layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def _cross_entropy(logits: Any, labels: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1, mode="clip")
    return -chosen.mean()


def _adam(parameters: Any, gradients: Any, moments: Any) -> Any:
    def update(p: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    return jax.tree.map(update, parameters, gradients, *moments)


def _rotary(x: Any) -> Any:
    position, half = jnp.arange(x.shape[0]), x.shape[-1] // 2
    angle = position[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    sine, cosine = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def _batch_norm(x: Any, scale: Any, shift: Any, running: Any) -> Any:
    mean, square = x.mean((0, 1, 2)), (x * x).mean((0, 1, 2))
    variance = square - mean * mean
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift, 0.9 * running + 0.1 * mean


_TREE = {"a": "f32[64,128]", "b": "f32[128]", "c": "f32[64,128]"}

PLANS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
    "softmax": (jax.nn.softmax, ("f32[256,1000]",), ["rows"]),
    "layer norm": (
        _layer_norm,
        ("f32[256,1000]", "f32[1000]", "f32[1000]"),
        ["rows"],
    ),
    "layer norm, gradient": (
        jax.grad(lambda *a: (_layer_norm(*a) ** 2).sum(), argnums=(0, 1, 2)),
        ("f32[256,1000]", "f32[1000]", "f32[1000]"),
        ["rows", "reduce_column"],
    ),
    "cross-entropy": (_cross_entropy, ("f32[256,1000]", "s32[256]"), ["rows", "reduce_row"]),
    "cross-entropy, gradient": (
        jax.grad(_cross_entropy),
        ("f32[256,1000]", "s32[256]"),
        ["loop", "scatter", "rows"],
    ),
    "adam": (_adam, (_TREE, _TREE, (_TREE, _TREE)), ["loop", "loop"]),
    "rotary embedding": (_rotary, ("f32[128,8,64]",), ["concatenate"]),
    "batch norm": (_batch_norm, ("f32[8,16,16,64]", *["f32[64]"] * 3), ["reduce_column", "reduce_column", "loop"]),
}


@pytest.mark.parametrize("name", PLANS)
def test_kernels(name: str) -> None:
    function, specs, expected = PLANS[name]
    text = str(plan_program(from_jax(function, specs).module)["fusions"])
    emitters = re.findall(r'func\.func private @\w*fusion_\d+\(.*xgpu\.emitter = "(\w+)"', text)
    assert emitters == expected
    main = text[text.index("func.func @main") :]
    assert "stablehlo." not in main
