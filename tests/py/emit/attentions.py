"""Attention that one kernel computes, and what it is in float64."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xgpu

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


def compiled(function: Callable[..., Any], *specs: str, **schedule: int) -> xgpu.Compiled:
    """Return a program of one kernel, attention, with some numbers of its schedule fixed."""
    program = xgpu.compile(function, *specs)
    if schedule:
        schedules = {program.kernels[0].name: schedule}
        program = xgpu.compile(function, *specs, options=xgpu.Options(schedules=schedules))
    assert [kernel.emitter for kernel in program.kernels] == ["attention"]
    return program


def is_right(
    program: xgpu.Compiled, arrays: list[Any], mask: Any = None, fill: float = -np.inf, bias: Any = 0.0
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
    expected, size = (np.einsum("bhqk,bkhd->bqhd", p, each) for each in (v, np.abs(v)))
    error = np.abs(np.asarray(found, np.float64) - expected)
    assert np.array_equal(np.isnan(error), np.isnan(expected))
    assert np.all(np.isnan(error) | (error <= 1.5 * _ERRORS[str(found.dtype)] * size))
    result: np.ndarray[Any, Any] = np.asarray(found, np.float64)
    return result
