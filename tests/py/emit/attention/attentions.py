"""Attention that one kernel computes, and what it is in float64."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xgpu
from tests.py.planned import TARGET, planned

LOW = -0.7 * float(np.finfo(np.float32).max)
"""What `jax.nn.dot_product_attention` takes for logits of hidden keys."""
_ERRORS = {"bfloat16": 2**-8, "float16": 2**-11}
"""The relative error of a number rounded to these types, twice: as a weight, and as a result."""


def einsum_attention(q: Any, k: Any, v: Any, mask: Any = None, fill: float = -jnp.inf) -> Any:
    """Return attention of arrays (batch, rows, heads, width) written with einsum and softmax."""
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    s = s if mask is None else jnp.where(mask, s, fill)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v)


def causal(q: Any, k: Any, v: Any) -> Any:
    """Return attention in which no row sees keys after it."""
    rows, keys = q.shape[1], k.shape[1]
    return einsum_attention(q, k, v, jnp.tril(jnp.ones((rows, keys), bool)))


def with_gradients(attention: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the result's gradient and of attention's operands: the result, and their gradients."""

    def both(g: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        result, backward = jax.vjp(lambda q, k, v: attention(q, k, v, *rest), q, k, v)
        return (result, *backward(g))

    return both


def compiled_gradients(attention: Callable[..., Any], *specs: str, **schedule: int) -> xgpu.Compiled:
    """Return a program of attention and its gradients, both as kernels, with some numbers of these fixed."""
    options = None
    if schedule:
        kernels = planned(with_gradients(attention), specs, TARGET, xgpu.Options()).kernels
        options = xgpu.Options(schedules={each.name: schedule for each in kernels if each.emitter == "sums"})
    program = xgpu.compile(with_gradients(attention), *specs, options=options)
    emitters = [kernel.emitter for kernel in program.kernels]
    assert emitters[0] == "attention"
    assert emitters.count("sums") >= 2
    return program


def gradients_are_right(
    program: xgpu.Compiled,
    arrays: list[Any],
    mask: Any = None,
    fill: float = -np.inf,
    bias: Any = 0.0,
    factors: Any = 1.0,
) -> list[np.ndarray[Any, Any]]:
    """Run on the host, whose sanitizer finds nothing, and compare with float64 and the reference; return results.

    Errors are not much larger than those of XLA, which rounds other values.
    """
    found, reference = program.run(*arrays, sanitize=True), program.reference(*arrays)
    expected = exact_gradients(*arrays[:4], mask, fill, bias, factors)
    results = []
    for own, other, exact in zip(found, reference, expected, strict=True):
        ours, theirs = (np.asarray(each, np.float64) - exact for each in (own, other))
        assert np.array_equal(np.isnan(ours), np.isnan(exact))
        assert np.sqrt(np.nanmean(ours**2)) <= 1.5 * np.sqrt(np.nanmean(theirs**2))
        assert np.nanmax(np.abs(ours)) <= 2.5 * np.nanmax(np.abs(theirs))
        results.append(np.asarray(own, np.float64))
    return results


def exact_gradients(
    g: Any, q: Any, k: Any, v: Any, mask: Any = None, fill: float = -np.inf, bias: Any = 0.0, factors: Any = 1.0
) -> list[np.ndarray[Any, Any]]:
    """Return attention and its gradients in float64; ``factors`` multiply the weights after the softmax."""
    g, q, k, v = (np.asarray(array, np.float64) for array in (g, q, k, v))
    shared = q.shape[2] // k.shape[2]
    wide_k, wide_v = (np.repeat(each, shared, 2) for each in (k, v))
    scale = q.shape[-1] ** -0.5
    s = np.einsum("bqhd,bkhd->bhqk", q, wide_k) * scale + bias
    s = s if mask is None else np.where(mask, s, fill)
    with np.errstate(invalid="ignore"):
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
    dp = np.einsum("bqhd,bkhd->bhqk", g, wide_v) * factors
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    ds = ds if mask is None else np.where(mask, ds, 0)
    dk, dv = np.einsum("bhqk,bqhd->bkhd", ds, q), np.einsum("bhqk,bqhd->bkhd", p * factors, g)
    of_keys = [each.reshape(*k.shape[:3], shared, -1).sum(3) for each in (dk, dv)]
    return [np.einsum("bhqk,bkhd->bqhd", p * factors, wide_v), np.einsum("bhqk,bkhd->bqhd", ds, wide_k), *of_keys]


def compiled(function: Callable[..., Any], *specs: str, **schedule: int) -> xgpu.Compiled:
    """Return a program of one kernel, attention, with some numbers of its schedule fixed."""
    options = None
    if schedule:
        name = planned(function, specs, TARGET, xgpu.Options()).kernels[0].name
        options = xgpu.Options(schedules={name: schedule})
    program = xgpu.compile(function, *specs, options=options)
    assert [kernel.emitter for kernel in program.kernels] == ["attention"]
    return program


def is_right(
    program: xgpu.Compiled,
    arrays: list[Any],
    mask: Any = None,
    fill: float = -np.inf,
    bias: Any = 0.0,
    factors: Any = 1.0,
) -> np.ndarray[Any, Any]:
    """Run on the host, whose sanitizer finds nothing, and compare with float64; return the result."""
    (found,) = program.run(*arrays, sanitize=True)
    q, k, v = (np.asarray(array, np.float64) for array in arrays[:3])
    k, v = (np.repeat(each, q.shape[2] // each.shape[2], 2) for each in (k, v))
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5 + bias
    s = s if mask is None else np.where(mask, s, fill)
    with np.errstate(invalid="ignore"):
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
    p = p * factors
    expected, size = (np.einsum("bhqk,bkhd->bqhd", *each) for each in ((p, v), (np.abs(p), np.abs(v))))
    error = np.abs(np.asarray(found, np.float64) - expected)
    assert np.array_equal(np.isnan(error), np.isnan(expected))
    assert np.all(np.isnan(error) | (error <= 1.5 * _ERRORS[str(found.dtype)] * size))
    result: np.ndarray[Any, Any] = np.asarray(found, np.float64)
    return result
