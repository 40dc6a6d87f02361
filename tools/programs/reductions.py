"""Reductions: any combiner, several results, empty and odd shapes, for parts of a warp up to several kernels."""

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
from jax import lax, nn

from xgpu.tools.programs.base import TestProgram


def _argmax(x: Any) -> tuple[Any, Any]:
    return jnp.max(x, 1), jnp.argmax(x, 1)


def _several(x: Any, y: Any) -> Any:
    return lax.reduce(
        (x, y), (jnp.float32(0), jnp.int32(1)), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (0, 2)
    )


def _shifted(x: Any) -> Any:
    p = jnp.pad(x, 1)
    return jnp.stack([p[i : i + x.shape[0], j : j + x.shape[1]] for i in range(3) for j in range(3)])


def _clipped(*arrays: Any) -> list[Any]:
    norm = jnp.sqrt(sum(jnp.sum(x * x) for x in arrays))
    return [x / jnp.maximum(norm, 1) for x in arrays]


def _autocorrelations(x: Any) -> Any:
    return jnp.stack([jnp.sum(x[:, : x.shape[1] - lag] * x[:, lag:], 1) for lag in range(5)], 1)


def _side_by_side(x: Any, y: Any, z: Any) -> tuple[Any, ...]:
    return jnp.sum(x, 1), jnp.max(y, 0) * 2, jnp.argmin(y, 0), nn.softmax(z), jnp.prod(z, 1), jnp.tanh(x[:3])


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "sum-rows": (lambda x: jnp.sum(x, 1), ("f32[33,65]",)),
    "sum-columns": (lambda x: jnp.sum(x, 0), ("f32[33,65]",)),
    "sum-all": (jnp.sum, ("f32[7,9,5]",)),
    "sum-bf16": (lambda x: jnp.sum(x, 1), ("bf16[33,65]",)),
    "sum-s8": (lambda x: jnp.sum(x, 1), ("s8[33,65]",)),
    "sum-empty": (lambda x: jnp.sum(x, 1), ("f32[5,0]",)),
    "product": (lambda x: jnp.prod(x, (0, 2)), ("f64[3,5,4]",)),
    "max-f16": (lambda x: jnp.max(x, 0), ("f16[65,33]",)),
    "any-all": (lambda x: (jnp.any(x, 0), jnp.all(x, 0)), ("pred[9,129]",)),
    "argmax": (_argmax, ("f32[33,65]",)),
    "argmin-s32": (lambda x: jnp.argmin(x, 0), ("s32[33,65]",)),
    "several-operands": (_several, ("f32[5,6,7]", "s32[5,6,7]")),
    "of-a-computed-operand": (lambda x: jnp.sum(jnp.exp(x.T) * 2, 0), ("f32[33,17]",)),
    "then-broadcast": (lambda x: x - jnp.max(x, 1, keepdims=True), ("f32[9,130]",)),
    "softmax": (lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x), 1, keepdims=True), ("f32[9,130]",)),
    "then-functions": (lambda x: (lax.lgamma(jnp.max(x, 0) + 9), lax.erf_inv(jnp.mean(x, 1))), ("f32[33,65]",)),
    "mean-and-variance": (lambda x: (jnp.mean(x, 1), jnp.var(x, 1)), ("f32[9,130]",)),
    "of-a-reduction": (lambda x: jnp.max(jnp.sum(x, 2), 1), ("f32[5,6,7]",)),
    "rows-of-several-warps": (lambda x: jnp.sum(x, 1), ("f32[17,16384]",)),
    "short-rows": (lambda x: jnp.sum(x, 1), ("bf16[3001,16]",)),
    "odd-rows": (lambda x: jnp.max(x, 1), ("bf16[31,1023]",)),
    "rows-and-outer": (lambda x: jnp.sum(x, (0, 2)), ("f32[31,9,132]",)),
    "rows-and-outer-narrow": (lambda x: jnp.sum(x, (0, 2)), ("s32[70001,3,5]",)),
    "columns-of-one-warp": (lambda x: jnp.sum(x, 1), ("f32[33,12,132]",)),
    "columns-of-several-warps": (lambda x: jnp.sum(x, 0), ("bf16[1025,264]",)),
    "few-columns": (lambda x: jnp.sum(x, 0), ("u32[70001,3]",)),
    "all-of-a-million": (jnp.sum, ("s32[1009,1013]",)),
    "argmax-of-a-million": (lambda x: (jnp.argmax(x), jnp.argmin(x, 0)), ("bf16[1009,1013]",)),
    "stored-and-summed": (lambda x: (jnp.exp(x), jnp.sum(jnp.exp(x), 1), jnp.max(x, 0)), ("f32[65,132]",)),
    "complex": (lambda x: (jnp.sum(x, 0), jnp.prod(x, 1)), ("c64[33,17]",)),
    "rank-8": (lambda x: jnp.sum(x, (1, 3, 5, 7)), ("f32[2,3,2,3,2,3,2,3]",)),
    "of-stacked-arrays": (lambda x: jnp.max(_shifted(x), 0), ("f32[19,66]",)),
    "of-stacked-arrays-first": (lambda x: (jnp.argmax(_shifted(x), 0), jnp.argmin(_shifted(x), 0)), ("bf16[9,66]",)),
    "of-stacked-arrays-softmax": (lambda *xs: nn.softmax(jnp.stack(xs, 1) * 0.5, 1), ("f32[33,7]",) * 3),
    "of-stacked-arrays-and-rows": (lambda *xs: jnp.mean(jnp.stack(xs, 2), (1, 2)), ("bf16[33,65]",) * 4),
    "of-stacked-numbers": (lambda *xs: jnp.prod(jnp.stack(xs)), ("f32[]",) * 5),
    "clipped-by-the-norm-of-all": (_clipped, ("f32[33,65]", "f32[129]", "f32[3,5,7]", "f32[]", "f32[600,333]")),
    "autocorrelations": (_autocorrelations, ("f32[33,130]",)),
    "side-by-side": (_side_by_side, ("f32[9,300]", "bf16[65,33]", "f32[5,1025]")),
    "padded-operand": (lambda x: jnp.sum(jnp.pad(x, ((1, 2), (3, 1))), 0), ("f32[9,14]",)),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for name, (function, specs) in _PROGRAMS.items():
        yield TestProgram(name, function, specs)
