"""Fusions as they come from models: several operations, outputs and types, and sizes large enough to vectorise."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from xgpu.tools.programs.base import TestProgram


def _adam(w: Any, g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def _rotary(x: Any, cos: Any, sin: Any) -> Any:
    left, right = jnp.split(x, 2, -1)
    return x * cos + jnp.concatenate([-right, left], -1) * sin


def _batch_norm(x: Any, mean: Any, variance: Any, scale: Any, shift: Any, gain: Any, offset: Any) -> Any:
    normal = (x.astype(jnp.float32) - mean) * lax.rsqrt(variance * variance + 1e-5) * scale + shift
    return (normal * gain + offset).astype(x.dtype)


def pad_slice_chain(links: int) -> Callable[[Any], Any]:
    """Return a function of ``links`` pads, slices and concatenations whose every value is used twice."""

    def chain(x: Any) -> Any:
        for i in range(links):
            if i % 3 == 0:
                x = lax.pad(x, jnp.float32(i), ((1, 0, 0),))[:-1] + x
            elif i % 3 == 1:
                x = jnp.concatenate([x[1:], x[:1]]) * 0.5
            else:
                x = x[::-1] + x
        return x

    return chain


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "gelu-bias-residual": (lambda x, b, r: r + jax.nn.gelu(x + b), ("bf16[517,1024]", "bf16[1024]", "bf16[517,1024]")),
    "gelu-large": (lambda x, y: jax.nn.gelu(x + y), ("f32[1024,1024]", "f32[1024,1024]")),
    "gelu-odd": (lambda x, y: jax.nn.gelu(x + y), ("f32[1023,1021]", "f32[1023,1021]")),
    "gelu-exact": (lambda x: jax.nn.gelu(x, approximate=False), ("f32[257,1025]",)),
    "silu-gate-f16": (lambda x, y: jax.nn.silu(x) * y, ("f16[1031,1024]", "f16[1031,1024]")),
    "adam": (_adam, ("f32[700,1000]",) * 4),
    "rotary": (_rotary, ("bf16[64,129,64]", "bf16[129,64]", "bf16[129,64]")),
    "outputs-of-several-shapes": (lambda x, y: (x + 1, y.T * 2, x - 1), ("f32[300,7]", "f32[11,500]")),
    "outputs-of-several-types": (lambda x: (x > 0, x.astype(jnp.bfloat16), x), ("f32[1000,301]",)),
    "input-as-output": (lambda x, y: (x, y + x, x), ("f32[300]", "f32[300]")),
    "one-hot": (lambda i: jax.nn.one_hot(i, 1001), ("s32[301]",)),
    "causal-mask": (lambda x: jnp.where(jnp.tril(jnp.ones((511, 511), bool)), x, -jnp.inf), ("f32[3,511,511]",)),
    "int8-dequantize": (lambda q, s: q.astype(jnp.bfloat16) * s[:, None], ("s8[1027,512]", "bf16[1027]")),
    # A thread takes the same columns of two rows, but for the others, which have an odd number of rows or of columns.
    "batch-norm": (_batch_norm, ("bf16[8,130,272]", *["f32[272]"] * 6)),
    "batch-norm-odd": (_batch_norm, ("bf16[1041,272]", *["f32[272]"] * 6)),
    "batch-norm-odd-columns": (_batch_norm, ("bf16[1040,271]", *["f32[271]"] * 6)),
    # Its work doubles with every other link: each value is computed again for each of its two uses.
    "chain-of-26": (pad_slice_chain(26), ("f32[97]",)),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for name, (function, specs) in _PROGRAMS.items():
        yield TestProgram(name, function, specs)
