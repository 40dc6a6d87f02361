"""Scans: sums, products, extremes, any combiner of all elements up to each, for part of a warp to several kernels."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from xgpu.tools.programs.base import TestProgram


def _recurrence(left: Any, right: Any) -> Any:
    """Combine two steps ``y = a * x + b``."""
    return left[0] * right[0], right[0] * left[1] + right[1]


def _restarting(left: Any, right: Any) -> Any:
    """Add up to the last element whose flag is set."""
    return left[0] | right[0], jnp.where(right[0], right[1], left[1] + right[1])


def _linear(a: Any, b: Any, **options: Any) -> Any:
    return lax.associative_scan(_recurrence, (jnp.tanh(a), b), **options)


def _recurrence_gradient(a: Any, b: Any) -> Any:
    return jax.grad(lambda a, b: jnp.sum(_linear(a, b, axis=1)[1] ** 2), (0, 1))(a, b)


def _prefixes(x: Any, low: int, high: int) -> Any:
    """Return sums of windows as long as an array, moved to either side."""
    return lax.reduce_window(x, 0.0, lax.add, x.shape, (1,), ((low, high),))


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "rows": (lambda x: jnp.cumsum(x, 1), ("f32[33,65]",)),
    "rows-short": (lambda x: jnp.cumsum(x, 1), ("f32[301,8]",)),
    "rows-of-warps": (lambda x: lax.cumsum(x, 1, reverse=True), ("s32[7,1024]",)),
    "rows-odd": (lambda x: lax.cummax(x, 1), ("bf16[5,1023]",)),
    "rows-of-tiles": (lambda x: lax.cumsum(x, 1, reverse=True), ("s32[2,20000]",)),
    "rows-s8": (lambda x: lax.cummin(x, 1), ("s8[5,333]",)),
    "rows-f64": (lambda x: lax.cumprod(x, 1), ("f64[5,129]",)),
    "columns": (lambda x: jnp.cumsum(x, 0), ("f32[65,33]",)),
    "columns-aligned": (lambda x: lax.cumsum(x, 0, reverse=True), ("bf16[257,264]",)),
    "columns-few": (lambda x: lax.cummax(x, 0, reverse=True), ("s32[1001,3]",)),
    "middle": (lambda x: jnp.cumsum(x, 1), ("u32[5,70,6]",)),
    "rank-6": (lambda x: jnp.cumsum(x, 2), ("s32[2,3,5,2,3,2]",)),
    "long": (jnp.cumsum, ("s32[70001]",)),
    "long-reversed": (lambda x: lax.cumsum(x, 0, reverse=True), ("s32[2,40000]",)),
    "long-columns": (lambda x: jnp.cumsum(x, 0), ("s32[9001,5]",)),
    "long-columns-reversed": (lambda x: lax.cummin(x, 0, reverse=True), ("f32[9000,8]",)),
    "long-columns-few": (lambda x: jnp.cumsum(x, 0), ("f32[40000,4]",)),
    "product": (lambda x: lax.cumprod(x, 0), ("f32[33]",)),
    "logsumexp": (lambda x: (lax.cumlogsumexp(x, 1), lax.cumlogsumexp(x, 0)), ("f32[9,40]",)),
    "logsumexp-long": (lambda x: lax.cumlogsumexp(x, 0, reverse=True), ("f32[40000]",)),
    "complex": (lambda x: (jnp.cumsum(x, 0), lax.cumprod(jnp.tanh(x), 1)), ("c64[33,17]",)),
    "pred": (lambda x: (lax.associative_scan(jnp.logical_or, x), lax.cumsum(x.astype("int32"))), ("pred[331]",)),
    "s4": (lambda x: lax.cummax(x, 1), ("s4[5,66]",)),
    "f8": (lambda x: lax.cummax(x, 1), ("f8e4m3fn[5,66]",)),
    "exclusive": (lambda x: (jnp.cumsum(x) - x, jnp.concatenate([x[:1] * 0, jnp.cumsum(x)[:-1]])), ("s32[331]",)),
    "windows": (lambda x: [_prefixes(x, n, 96 - n) for n in (96, 97, 100, -1, 0, -3)], ("f32[97]",)),
    "windows-of-several": (
        lambda x, y: lax.reduce_window(
            (x, y),
            (jnp.float32(0), jnp.int32(-(2**31))),
            lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])),
            (1, 67),
            (1, 1),
            ((0, 0), (66, 0)),
        ),
        ("f32[5,67]", "s32[5,67]"),
    ),
    "empty": (lambda x: (jnp.cumsum(x, 1), jnp.cumsum(x, 0)), ("f32[3,0]",)),
    "one": (lambda x: jnp.cumsum(x, 1) + 1, ("f32[3,1]",)),
    "recurrence": (_linear, ("f32[1000]", "f32[1000]")),
    "recurrence-of-one-result": (lambda a, b: _linear(a, b, axis=1)[1], ("f32[3,257]", "f32[3,257]")),
    "recurrence-of-columns": (lambda a, b: _linear(a, b, reverse=True)[1] * 2, ("f32[300,7]", "f32[300,7]")),
    "recurrence-long": (_linear, ("f32[35000]", "f32[35000]")),
    "recurrence-bf16": (lambda a, b: _linear(a, b)[1], ("bf16[100,24]", "bf16[100,24]")),
    "restarting": (lambda f, x: lax.associative_scan(_restarting, (f, x)), ("pred[3000]", "s32[3000]")),
    "restarting-reversed": (
        lambda f, x: lax.associative_scan(_restarting, (f, x), reverse=True)[1],
        ("pred[40000]", "s32[40000]"),
    ),
    "associative-of-columns": (lambda x: lax.associative_scan(jnp.maximum, x, reverse=True), ("f32[130,5]",)),
    "associative-of-matrices": (lambda x: lax.associative_scan(jnp.matmul, x), ("f32[9,2,2]",)),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.cumsum(x * x, 1) ** 2)), ("f32[9,130]",)),
    "gradient-recurrence": (_recurrence_gradient, ("f32[3,257]", "f32[3,257]")),
    "gradient-restarting": (
        jax.grad(lambda x, f: jnp.sum(lax.associative_scan(_restarting, (f, x), reverse=True)[1] ** 2)),
        ("f32[300]", "pred[300]"),
    ),
    "gradient-logsumexp": (jax.grad(lambda x: jnp.sum(lax.cumlogsumexp(x, 1))), ("f32[5,65]",)),
    "nonzero": (lambda x: jnp.nonzero(x > 0, size=300, fill_value=-1)[0], ("f32[331]",)),
    "repeat": (lambda x, n: jnp.repeat(x, n % 3, total_repeat_length=500), ("f32[331]", "u32[331]")),
    "of-a-computed-operand": (lambda x, y: jnp.cumsum(jnp.exp(x.T) * y, 1), ("f32[33,17]", "f32[33]")),
    "then-functions": (lambda x: jnp.exp(jnp.cumsum(x, 1) / 9).T + 1, ("f32[33,65]",)),
    "then-shown-twice": (lambda x: (jnp.cumsum(x, 1), (jnp.cumsum(x, 1) > 3).reshape(-1)), ("s32[33,65]",)),
    "of-several": (
        lambda x: (jnp.cumsum(x * 2, 0)[::-1], jnp.cumsum(x), jnp.sum(jnp.cumsum(x, 1), 1)),
        ("f32[9,33]",),
    ),
    "beside-each-other": (lambda x, y: (jnp.cumsum(x, 1), lax.cummax(y, 1)), ("f32[9,33]", "s32[9,33]")),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for name, (function, specs) in _PROGRAMS.items():
        yield TestProgram(name, function, specs)
