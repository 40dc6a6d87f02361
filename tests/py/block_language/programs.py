"""Block programs that tests run, each beside what it computes of whole arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from xgpu import block

Array = np.ndarray[Any, Any]


@block.kernel
def linear_silu(x: Any, w: Any) -> Any:
    (m, k), (_, n) = x.shape, w.shape
    i, j = block.grid(block.cdiv(m, 32), block.cdiv(n, 32))
    total = block.accumulate(
        block.cdiv(k, 32), lambda step: block.dot(x.tile((32, 32), (i, step)), w.tile((32, 32), (step, j)))
    )
    return block.store(jax.nn.silu(total).astype(x.dtype), (m, n), (i, j))


def silu_of_product(x: Any, w: Any) -> Any:
    return jax.nn.silu(jnp.matmul(x, w, preferred_element_type=jnp.float32)).astype(x.dtype)


@block.kernel(threads=64)
def normalized_linear(x: Any, weight: Any, w: Any, *, eps: float = 1e-6) -> Any:
    (m, k), (_, n) = x.shape, w.shape
    i, j = block.grid(block.cdiv(m, 16), block.cdiv(n, 32))

    def step(number: Any, carried: Any) -> Any:
        rows = x.tile((16, 32), (i, number)).astype(jnp.float32)
        scaled = (rows * weight.tile(32, (number,))).astype(x.dtype)
        product = block.dot(scaled, w.tile((32, 32), (number, j)))
        return {"total": carried["total"] + product, "squares": carried["squares"] + jnp.sum(rows * rows, axis=1)}

    found = block.steps(block.cdiv(k, 32), step, {"total": jnp.zeros((16, 32)), "squares": jnp.zeros(16)})
    result = found["total"] * lax.rsqrt(found["squares"] / k + eps)[:, None]
    return block.store(result.astype(x.dtype), (m, n), (i, j))


def linear_of_normalized(x: Any, weight: Any, w: Any) -> Any:
    wide = x.astype(jnp.float32)
    scaled = (wide * weight).astype(x.dtype)
    total = jnp.matmul(scaled, w, preferred_element_type=jnp.float32)
    return (total * lax.rsqrt(jnp.mean(wide * wide, axis=1, keepdims=True) + 1e-6)).astype(x.dtype)


@block.kernel(threads=64)
def attention(q: Any, k: Any, v: Any, *, causal: bool = True) -> Any:
    (batch, heads, rows, depth), keys = q.shape, k.shape[2]
    number, i = block.grid(batch * heads, block.cdiv(rows, 16))
    head = (number // heads, number % heads)
    queries = q.tile((16, depth), (*head, i, 0))

    def step(number: Any, carried: Any) -> Any:
        largest, total, out = carried
        logits = block.dot(queries, k.tile((16, depth), (*head, number, 0)).T) / np.sqrt(depth)
        column = block.index((16, 16), lambda row, column: number * 16 + column)
        seen = column < keys
        if causal:
            seen = seen & (column <= block.index((16, 16), lambda row, column: i * 16 + row))
        logits = jnp.where(seen, logits, -1e30)
        new = jnp.maximum(largest, jnp.max(logits, axis=1))
        weights, old = jnp.exp(logits - new[:, None]), jnp.exp(largest - new)
        product = block.dot(weights.astype(v.dtype), v.tile((16, depth), (*head, number, 0)))
        return new, total * old + jnp.sum(weights, axis=1), out * old[:, None] + product

    start = jnp.full(16, -1e30), jnp.zeros(16), jnp.zeros((16, depth))
    _, total, out = block.steps(block.cdiv(keys, 16), step, start)
    return block.store((out / total[:, None]).astype(q.dtype), q.shape, (*head, i, 0))


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    logits = jnp.einsum("bhnd,bhkd->bhnk", q, k, preferred_element_type=jnp.float32) / np.sqrt(q.shape[3])
    logits = jnp.where(np.tril(np.ones(logits.shape[2:], bool)), logits, -1e30)
    weights = jax.nn.softmax(logits).astype(q.dtype).astype(jnp.float32)
    return jnp.einsum("bhnk,bhkd->bhnd", weights, v.astype(jnp.float32)).astype(q.dtype)


@block.kernel(threads=32)
def blurred(x: Any) -> Any:
    """Return the mean of each element and its neighbours, of which there are none outside."""
    (i,) = block.grid(block.cdiv(x.shape[0], 16))
    parts = [x.tile(16, offset=(i * 16 + shift,)) for shift in (-1, 0, 1)]
    counts = [x.inside(16, offset=(i * 16 + shift,)).astype(jnp.float32) for shift in (-1, 0, 1)]
    return block.store(sum(parts) / sum(counts), x.shape, (i,))


def mean_of_neighbours(x: Any) -> Any:
    padded, ones = jnp.pad(x, 1), jnp.pad(jnp.ones_like(x), 1)
    count = len(x)
    return sum(padded[s : s + count] for s in range(3)) / sum(ones[s : s + count] for s in range(3))


@block.kernel(threads=32)
def row_statistics(x: Any) -> Any:
    """Return a tree of results: largest elements of rows, which may be -inf, and how many are not zero."""
    m, n = x.shape
    (i,) = block.grid(block.cdiv(m, 8))

    def step(number: Any, carried: Any) -> Any:
        tile = x.tile((8, 16), (i, number), fill=-np.inf)
        inside = x.inside((8, 16), (i, number))
        return jnp.maximum(carried[0], tile.max(1)), carried[1] + jnp.sum((tile != 0) & inside, axis=1, dtype=np.int32)

    start = jnp.full(8, -jnp.inf), jnp.zeros(8, jnp.int32)
    largest, count = block.steps(block.cdiv(n, 16), step, start)
    return {
        "count": block.output(m, jnp.uint8, "count").store(count, (i,)),
        "largest": block.store(largest, m, (i,), name="largest"),
    }


def statistics_of_rows(x: Any) -> Any:
    return {"count": jnp.sum(x != 0, axis=1).astype(jnp.uint8), "largest": x.max(1)}


@block.kernel(threads=32)
def rotated(x: Any, y: Any) -> Any:
    """Return halves that change places, of elements read backwards, with another array of bytes transposed."""
    m, n = x.shape
    i, j = block.grid(m // 8, 2)
    half = n // 2
    out = block.output((m, n), jnp.int32)
    tile = x.elements((8, half), lambda row, column: (i * 8 + row, (1 - j) * half + half - 1 - column))
    other = y.elements((8, half), lambda row, column: (j * half + column, i * 8 + row))
    return out.store(tile + other.astype(jnp.int32), (i, j))


def rotation(x: Any, y: Any) -> Any:
    half = x.shape[1] // 2
    return jnp.concatenate([x[:, half:][:, ::-1], x[:, :half][:, ::-1]], axis=1) + y.T.astype(jnp.int32)


@block.kernel(threads=32)
def two_parts(x: Any, scale: Any) -> Any:
    """Write an output by two tiles of a block; a number without dimensions is read as a tile of none."""
    (i,) = block.grid(block.cdiv(x.shape[1], 16))
    out = block.output((2 * x.shape[0], x.shape[1]), x.dtype)
    tile = x.tile((x.shape[0], 16), (0, i))
    out.store(tile * scale.tile(()), (0, i))
    return out.store(jnp.where(tile > 0, tile, jnp.expm1(tile)), (1, i))


def both_parts(x: Any, scale: Any) -> Any:
    return jnp.concatenate([x * scale, jnp.where(x > 0, x, jnp.expm1(x))])


@dataclass(frozen=True)
class Case:
    """A kernel, arguments, and the function of whole arrays that it computes; ``atol`` and ``rtol`` as of NumPy."""

    kernel: block.Kernel
    function: Callable[..., Any]
    shapes: tuple[tuple[tuple[int, ...], Any], ...]
    atol: float = 0
    rtol: float = 0

    @property
    def arguments(self) -> list[Array]:
        """Arrays for the arguments, the same each time."""
        generator = np.random.default_rng(7)
        return [_array(generator, shape, np.dtype(dtype)) for shape, dtype in self.shapes]


def _array(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "iu":
        return generator.integers(0, 100, shape).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


_F32, _BF16 = np.float32, ml_dtypes.bfloat16
# Results are rounded to bf16, whose numbers lie 2^-8 apart: sums in another order, and weights that are rounded, may
# be one or two of them off. Functions of f32 are off by a few of its roundings.
_BF16_ERRORS = {"atol": 0.01, "rtol": 2 * 2.0**-8}
_F32_ERRORS = {"atol": 1e-6, "rtol": 1e-6}
CASES = {
    "linear_silu": Case(linear_silu, silu_of_product, (((45, 70), _BF16), ((70, 50), _BF16)), **_BF16_ERRORS),
    "normalized_linear": Case(
        normalized_linear,
        linear_of_normalized,
        (((20, 70), _BF16), ((70,), _F32), ((70, 40), _BF16)),
        **_BF16_ERRORS,
    ),
    "attention": Case(attention, causal_attention, (((2, 1, 40, 16), _BF16),) * 3, **_BF16_ERRORS),
    "blurred": Case(blurred, mean_of_neighbours, (((50,), _F32),), **_F32_ERRORS),
    "row_statistics": Case(row_statistics, statistics_of_rows, (((13, 37), _F32),)),
    "rotated": Case(rotated, rotation, (((16, 24), np.int32), ((24, 16), np.uint8))),
    "two_parts": Case(two_parts, both_parts, (((4, 40), _F32), ((), _F32)), **_F32_ERRORS),
}
