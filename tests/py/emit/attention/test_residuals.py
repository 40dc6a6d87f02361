"""Attention that returns what it computes of each row: its largest logit, its sum of weights, or the logarithm of both."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.planned import TARGET, planned

_SPECS = ["bf16[2,150,4,64]", *["bf16[2,150,2,64]"] * 2]


def _library(**options: Any) -> Callable[..., Any]:
    return lambda q, k, v, *rest: jax.nn.dot_product_attention(
        q, k, v, return_residual=True, **options, **({"key_value_seq_lengths": rest[0]} if rest else {})
    )


def _by_hand(q: Any, k: Any, v: Any) -> Any:
    """The logarithm of the sum, of values that the softmax has, before its product."""
    k, v = (jnp.repeat(each, q.shape[2] // each.shape[2], 2) for each in (k, v))
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    m = s.max(-1, keepdims=True)
    e = jnp.exp(s - m)
    total = e.sum(-1, keepdims=True)
    logs = (m + jnp.log(total))[..., 0].transpose(0, 2, 1)
    return jnp.einsum("bhqk,bkhd->bqhd", (e / total).astype(v.dtype), v), logs


def _exact(q: Any, k: Any, v: Any, mask: Any = True) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    q, k, v = (np.asarray(each, np.float64) for each in (q, k, v))
    k, v = (np.repeat(each, q.shape[2] // each.shape[2], 2) for each in (k, v))
    s = np.where(mask, np.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    logs = s.max(-1) + np.log(p.sum(-1))
    return np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), v), logs.transpose(0, 2, 1)


def _is_right(program: xgpu.Compiled, arrays: list[Any], expected: Any) -> None:
    found = program.run(*arrays, sanitize=True)
    for own, exact in zip(found, expected, strict=True):
        rounding = 2.0**-8 if own.dtype != np.float32 else 2.0**-18
        assert np.abs(np.asarray(own, np.float64) - exact).max() <= 2 * rounding * np.abs(exact).max()


@pytest.mark.parametrize("function", [_library(), _by_hand])
def test_residuals(function: Callable[..., Any]) -> None:
    """One kernel of attention, and one of the rows."""
    program = xgpu.compile(function, *_SPECS)
    assert [kernel.emitter for kernel in program.kernels].count("attention") == 1
    assert len(program.kernels) == 2
    arrays = program.random_inputs(1)
    _is_right(program, arrays, _exact(*arrays))


def test_residuals_under_a_causal_mask() -> None:
    program = xgpu.compile(_library(is_causal=True), *_SPECS)
    assert [kernel.emitter for kernel in program.kernels].count("attention") == 1
    arrays = program.random_inputs(2)
    _is_right(program, arrays, _exact(*arrays, np.tri(150, dtype=bool)))


def test_residuals_of_keys_in_parts() -> None:
    """Logarithms are of all parts together."""
    specs = ["bf16[2,1,8,64]", *["bf16[2,601,2,64]"] * 2, "s32[2]"]
    program = xgpu.compile(_library(), *specs, options=xgpu.Options(attention_parts=3))
    assert "x3xf32>" in program.ir("fusions")
    q, k, v, lengths = program.random_inputs(3)
    for each in ((601, 1), (300, 129)):
        lengths[:] = each
        mask = np.arange(601) < np.asarray(each)[:, None, None, None]
        _is_right(program, [q, k, v, lengths], _exact(q, k, v, mask))


def test_sums_relative_to_something_else_are_left() -> None:
    """A sum of other powers is no number of the softmax."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("qd,kd->qk", q, k, preferred_element_type=jnp.float32)
        return jax.nn.softmax(s, axis=-1).astype(q.dtype) @ v, jnp.exp(s - s.mean(-1, keepdims=True)).sum(-1)

    kernels = planned(function, ["bf16[256,64]"] * 3, TARGET, xgpu.Options()).kernels
    assert "attention" not in [each.emitter for each in kernels]
