"""Small programs that kernels on tiles compute, and what they have to return."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xgpu
from xgpu import block
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.interface.api import compile_to
from xgpu.tools.timing.side_by_side import difference

_ALL = xgpu.Options(products="all")
_TOLERANCE = 0.05
"""Of the largest result: weights of 16 bits are rounded, and gradients are computed from them."""


def _dot(x: Any, y: Any, result: Any = jnp.float32) -> Any:
    return lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=result)


def _attention(q: Any, k: Any, v: Any) -> Any:
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    s = jnp.where(jnp.tril(jnp.ones(s.shape[2:], bool), s.shape[3] - s.shape[2]), s, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v)


def _in_pages(q: Any, k: Any, v: Any, table: Any) -> Any:
    """Keys and values are gathered, in pages of a cache."""
    taken = (jnp.take(each, table, axis=0, mode="clip") for each in (k, v))
    return _attention(q, *(each.reshape(table.shape[0], -1, *each.shape[3:]) for each in taken))


def _gradients(g: Any, q: Any, k: Any, v: Any) -> Any:
    result, backward = jax.vjp(_attention, q, k, v)
    return (result, *backward(g))


def _retention(q: Any, k: Any, v: Any) -> Any:
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    s = jnp.where(jnp.tril(jnp.ones(s.shape[2:], bool)), s, 0.0)
    return jnp.einsum("bhqk,bkhd->bqhd", s.astype(q.dtype), v)


def _linear(x: Any, w: Any) -> Any:
    (m, k), (_, n) = x.shape, w.shape
    i, j = block.grid(block.cdiv(m, 64), block.cdiv(n, 64))
    total = block.accumulate(block.cdiv(k, 32), lambda s: block.dot(x.tile((64, 32), (i, s)), w.tile((32, 64), (s, j))))
    return block.store(jax.nn.silu(total).astype(x.dtype), (m, n), (i, j))


def _weighted(x: Any, scale: Any, w: Any) -> Any:
    """Products of rows that are scaled where they are multiplied, and divided by their root mean squares."""
    (m, k), (_, n) = x.shape, w.shape
    i, j = block.grid(block.cdiv(m, 64), block.cdiv(n, 64))

    def step(s: Any, carried: Any) -> Any:
        tile = x.tile((64, 32), (i, s)).astype(jnp.float32)
        left = (tile * scale.tile(32, (s,))).astype(x.dtype)
        return carried[0] + block.dot(left, w.tile((32, 64), (s, j))), carried[1] + (tile * tile).sum(1)

    total, squares = block.steps(block.cdiv(k, 32), step, (jnp.zeros((64, 64)), jnp.zeros(64)))
    return block.store((total * lax.rsqrt(squares / k + 1e-6)[:, None]).astype(x.dtype), (m, n), (i, j))


def _keys_ahead(q: Any, k: Any, v: Any) -> Any:
    """Attention of which a step multiplies the next step's keys before it computes weights."""
    (rows, width), (keys, _) = q.shape, k.shape
    (i,) = block.grid(rows // 64)
    queries = q.tile((64, width), (i, 0))

    def step(s: Any, carried: Any) -> Any:
        logits, largest, total, out = carried
        following = block.dot(queries, k.tile((64, width), (s + 1, 0)).T)
        new = jnp.maximum(largest, jnp.max(logits, axis=1))
        weights, old = jnp.exp(logits - new[:, None]), jnp.exp(largest - new)
        added = block.dot(weights.astype(v.dtype), v.tile((64, width), (s, 0)))
        return following, new, total * old + jnp.sum(weights, axis=1), out * old[:, None] + added

    first = block.dot(queries, k.tile((64, width), (0, 0)).T)
    start = first, jnp.full(64, -1e30), jnp.zeros(64), jnp.zeros((64, width))
    _, _, total, out = block.steps(keys // 64, step, start)
    return block.store((out / total[:, None]).astype(q.dtype), q.shape, (i, 0))


@dataclass(frozen=True)
class Case:
    """A program, and numbers of the schedule of its kernel; ``emitters`` are those that it has, some of them."""

    function: Any
    specs: tuple[str, ...]
    emitters: tuple[str, ...] = ("product",)
    schedule: Mapping[str, int] = field(default_factory=dict)
    options: xgpu.Options = _ALL

    def planned(self) -> xgpu.Compiled:
        """Return the program; no kernel is compiled yet."""
        options = self.options
        if self.schedule:
            (kernel,) = compile_to(None, self.function, self.specs, device(DEFAULT_DEVICE), options).kernels
            options = replace(options, schedules={kernel.name: dict(self.schedule)})
        return compile_to(None, self.function, self.specs, device(DEFAULT_DEVICE), options)


_KEYS = "bf16[2,200,2,64]"
CASES = {
    "product": Case(jnp.matmul, ("bf16[300,264]", "bf16[264,520]")),
    "product, clusters": Case(jnp.matmul, ("bf16[512,264]", "bf16[264,512]"), schedule={"cluster": 2}),
    "product, sums split": Case(jnp.matmul, ("bf16[70,1024]", "bf16[1024,136]"), schedule={"split": 2}),
    "product, gated": Case(
        lambda x, w, v: jax.nn.silu(x @ w) * (x @ v), ("bf16[200,136]", "bf16[136,72]", "bf16[136,72]")
    ),
    "product of bytes": Case(lambda x, y: _dot(x, y, jnp.int32), ("s8[130,160]", "s8[72,160]")),
    "product of f32": Case(_dot, ("f32[130,72]", "f32[72,72]")),
    "product of groups": Case(lax.ragged_dot, ("bf16[300,72]", "bf16[5,72,136]", "s32[5]")),
    "product by warps": Case(jnp.matmul, ("bf16[67,65]", "bf16[65,91]"), ("warp_product",)),
    "attention": Case(_attention, (_KEYS,) * 3, ("attention",)),
    "attention, f32": Case(_attention, ("f32[2,200,2,64]",) * 3, ("attention",)),
    "attention of a query": Case(
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, implementation="xla"),
        ("bf16[2,1,8,64]", *["bf16[2,600,2,64]"] * 2),
        ("attention",),
        options=xgpu.Options(attention_parts=4),
    ),
    "attention, gathered": Case(
        _in_pages, ("bf16[2,100,4,64]", *["bf16[20,16,4,64]"] * 2, "s32[2,13]"), ("attention",)
    ),
    "attention's gradients": Case(_gradients, (_KEYS,) * 4, ("attention", "sums")),
    "sums": Case(_retention, (_KEYS,) * 3, ("sums",)),
    "block program": Case(block.kernel(_linear, threads=128, stages=3), ("bf16[130,200]", "bf16[200,72]"), ("block",)),
    "block program, left": Case(
        block.kernel(_weighted, threads=128), ("bf16[130,200]", "f32[200]", "bf16[200,72]"), ("block",)
    ),
    "block program, rows": Case(
        block.kernel(_keys_ahead, threads=128), ("bf16[128,64]", *["bf16[320,64]"] * 2), ("block",)
    ),
}


def run_one(name: str, on: str) -> str:
    """Run a case on the host or on the GPU; returns what is said of its results."""
    program = CASES[name].planned()
    arrays = program.random_inputs(seed=1)
    if name == "product of groups":
        arrays[2] = np.array([40, 0, 130, 1, 100], np.int32)
    found, wanted = program.run(*arrays, on=on), program.reference(*arrays)
    error = max(difference(*each) for each in zip(found, wanted, strict=True))
    return f"results {'ok' if error <= _TOLERANCE else 'WRONG'} {error:.1e}"
