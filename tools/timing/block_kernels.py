"""Kernels written on tiles (emitter ``block``) on a GPU: whether results are right, and times beside XLA's.

Most are text of level ``tiles``; some are block programs, of which one is computed by the emitter of products. Random
small kernels are compared by ``python -m xgpu.tools.fuzzing.blocks.fuzz --on gpu``, larger products ``--groups``.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from xgpu import block
from xgpu.tools.fuzzing.blocks.text import BlockText, DrawnTile
from xgpu.tools.timing.queued import Case, measure

_LOWEST = "0xFF800000"
"""The bits of minus infinity."""

_OF_PRODUCTS = 0.01
"""The tolerance of results of bf16: a rounding is 2^-8 of a result, and sums have other orders."""


def linear(m: int, n: int, k: int, tiles: tuple[int, int, int], threads: int, activation: bool = True) -> Case:
    """Return a product, with a bias and silu if there is an activation."""
    bm, bn, bk = tiles
    arrays = [((m, k), "bf16"), ((k, n), "bf16"), *([((n,), "f32")] if activation else [])]
    kernel = BlockText(arrays, [((m, n), "bf16")], (-(-m // bm), -(-n // bn)), threads)
    i, j = kernel.at
    with kernel.steps(-(-k // bk), [kernel.constant("0.0", (bm, bn), "f32")]) as steps:
        x, w = kernel.tile(0, (i, steps.number), (bm, bk)), kernel.tile(1, (steps.number, j), (bk, bn))
        steps.yielded = [kernel.map("add", steps.carried[0], kernel.dot(x, w))]
    total = steps.results[0]
    if activation:
        total = kernel.map("add", total, kernel.broadcast(kernel.tile(2, (j,), (bn,)), (bm, bn), (1,)))
        total = kernel.map("multiply", total, kernel.map("logistic", total))
    kernel.insert(kernel.convert(total, "bf16"), 0, (i, j))

    def reference(x: Any, w: Any, *b: Any) -> Any:
        y = jnp.dot(x, w, preferred_element_type=jnp.float32)
        return (jax.nn.silu(y + b[0]) if activation else y).astype(jnp.bfloat16)

    name = f"{'linear + silu' if activation else 'product'} {m} x {n} x {k}, {bm} x {bn} x {bk}"
    return Case(name, kernel.text(), reference, _OF_PRODUCTS, _product_work(m, n, k))


def normalized(m: int, n: int, k: int, tiles: tuple[int, int, int], threads: int) -> Case:
    """Return a product of rows that are divided by their root mean squares, which are summed in the same steps."""
    bm, bn, bk = tiles
    kernel = BlockText([((m, k), "bf16"), ((k, n), "bf16")], [((m, n), "bf16")], (-(-m // bm), -(-n // bn)), threads)
    i, j = kernel.at
    zero = kernel.constant("0.0", (), "f32")
    inits = [kernel.constant("0.0", (bm, bn), "f32"), kernel.constant("0.0", (bm,), "f32")]
    with kernel.steps(-(-k // bk), inits) as steps:
        x, w = kernel.tile(0, (i, steps.number), (bm, bk)), kernel.tile(1, (steps.number, j), (bk, bn))
        wide = kernel.convert(x, "f32")
        squares = kernel.reduce("add", kernel.map("multiply", wide, wide), zero, [1])
        product, sums = steps.carried
        steps.yielded = [kernel.map("add", product, kernel.dot(x, w)), kernel.map("add", sums, squares)]
    product, sums = steps.results
    share, least = (kernel.constant(text, (bm,), "f32") for text in (f"{1 / k:.9f}", "1.0e-5"))
    scale = kernel.map("rsqrt", kernel.map("add", kernel.map("multiply", sums, share), least))
    result = kernel.map("multiply", product, kernel.broadcast(scale, (bm, bn), (0,)))
    kernel.insert(kernel.convert(result, "bf16"), 0, (i, j))

    def reference(x: Any, w: Any) -> Any:
        wide = x.astype(jnp.float32)
        scale = lax.rsqrt((wide * wide).mean(1, keepdims=True) + 1e-5)
        return (jnp.dot(x, w, preferred_element_type=jnp.float32) * scale).astype(jnp.bfloat16)

    name = f"rms norm + linear {m} x {n} x {k}"
    return Case(name, kernel.text(), reference, _OF_PRODUCTS, _product_work(m, n, k))


def attention(heads: int, rows: int, keys: int, width: int, tiles: tuple[int, int], threads: int) -> Case:
    """Return attention of rows to all keys."""
    bm, bn = tiles
    arrays = [((heads, size, width), "bf16") for size in (rows, keys, keys)]
    kernel = BlockText(arrays, [((heads, rows, width), "bf16")], (heads, rows // bm), threads)
    h, i = kernel.at
    q = kernel.tile(0, (h, i, None), (1, bm, width), dropped=(0,))
    inits = [kernel.constant("0.0", (bm, width), "f32"), kernel.constant("-1.0e30", (bm,), "f32")]
    inits.append(kernel.constant("0.0", (bm,), "f32"))
    with kernel.steps(keys // bn, inits) as steps:
        k, v = (kernel.tile(n, (h, steps.number, None), (1, bn, width), dropped=(0,)) for n in (1, 2))
        steps.yielded = _attention_step(kernel, q, k, v, steps.carried)
    product, _, sums = steps.results
    result = kernel.map("divide", product, kernel.broadcast(sums, (bm, width), (0,)))
    kernel.insert(kernel.convert(result, "bf16"), 0, (h, i, None), dropped=(0,))

    def reference(q: Any, k: Any, v: Any) -> Any:
        logits = jnp.einsum("hqd,hkd->hqk", q, k, preferred_element_type=jnp.float32) * width**-0.5
        weights = jax.nn.softmax(logits, axis=-1).astype(jnp.bfloat16)
        return jnp.einsum("hqk,hkd->hqd", weights, v, preferred_element_type=jnp.float32).astype(jnp.bfloat16)

    # Weights are rounded to bf16 before and after they are divided by their sum.
    work = 4 * heads * rows * keys * width / 1e12
    return Case(f"attention {heads} x {rows} x {keys} x {width}", kernel.text(), reference, 2 * _OF_PRODUCTS, work)


def _attention_step(
    kernel: BlockText, q: DrawnTile, k: DrawnTile, v: DrawnTile, carried: Sequence[DrawnTile]
) -> list[DrawnTile]:
    product, largest, sums = carried
    (bm, width), bn = q.shape, k.shape[0]
    lowest, zero = kernel.constant(_LOWEST, (), "f32"), kernel.constant("0.0", (), "f32")
    logits = kernel.dot(q, k, contracted=((1,), (1,)))
    logits = kernel.map("multiply", logits, kernel.constant(f"{width**-0.5:.8f}", (bm, bn), "f32"))
    now = kernel.map("maximum", largest, kernel.reduce("maximum", logits, lowest, [1]))
    weights = kernel.map("exponential", kernel.map("subtract", logits, kernel.broadcast(now, (bm, bn), (0,))))
    kept = kernel.map("exponential", kernel.map("subtract", largest, now))
    added = kernel.dot(kernel.convert(weights, "bf16"), v)
    product = kernel.map("multiply", product, kernel.broadcast(kept, (bm, width), (0,)))
    sums = kernel.map("add", kernel.map("multiply", sums, kept), kernel.reduce("add", weights, zero, [1]))
    return [kernel.map("add", product, added), now, sums]


def softmax(m: int, n: int, rows: int, threads: int) -> Case:
    """Return the softmax of rows, some of which a block has whole."""
    kernel = BlockText([((m, n), "f32")], [((m, n), "f32")], (-(-m // rows),), threads)
    (i,) = kernel.at
    x = kernel.tile(0, (i, None), (rows, n))
    largest = kernel.reduce("maximum", x, kernel.constant(_LOWEST, (), "f32"), [1])
    weights = kernel.map("exponential", kernel.map("subtract", x, kernel.broadcast(largest, (rows, n), (0,))))
    total = kernel.reduce("add", weights, kernel.constant("0.0", (), "f32"), [1])
    kernel.insert(kernel.map("divide", weights, kernel.broadcast(total, (rows, n), (0,))), 0, (i, None))
    # Weights that sum to 1: exponentials and divisions of f32.
    reference = partial(jax.nn.softmax, axis=1)
    return Case(f"softmax {m} x {n}", kernel.text(), reference, 1e-5, 8 * m * n / 1e12, "TB/s", scaled=False)


def transpose(m: int, n: int, tile: int, threads: int) -> Case:
    """Return a transpose by square tiles."""
    kernel = BlockText([((m, n), "f32")], [((n, m), "f32")], (-(-m // tile), -(-n // tile)), threads)
    i, j = kernel.at
    kernel.insert(kernel.transpose(kernel.tile(0, (i, j), (tile, tile)), (1, 0)), 0, (j, i))
    # Without the sum XLA would hand out the argument in another layout.
    return Case(f"transpose {m} x {n}", kernel.text(), lambda x: x.T + 0, 0.0, 8 * m * n / 1e12, "TB/s")


def linear_program(size: int, tiles: tuple[int, int, int], **decisions: Any) -> Case:
    """Return the block program of a product with silu, with what is decided about its kernel."""
    rows, columns, depth = tiles

    def linear(x: Any, w: Any) -> Any:
        (m, k), (_, n) = x.shape, w.shape
        i, j = block.grid(block.cdiv(m, rows), block.cdiv(n, columns))
        total = block.accumulate(
            block.cdiv(k, depth), lambda s: block.dot(x.tile((rows, depth), (i, s)), w.tile((depth, columns), (s, j)))
        )
        return block.store(jax.nn.silu(total).astype(x.dtype), (m, n), (i, j))

    def reference(x: Any, w: Any) -> Any:
        return jax.nn.silu(jnp.matmul(x, w, preferred_element_type=jnp.float32)).astype(x.dtype)

    name = f"program: linear + silu {size}^3, {_described(tiles, decisions)}"
    specs = (f"bf16[{size},{size}]",) * 2
    kernel = block.kernel(linear, **decisions)
    return Case(name, kernel, reference, _OF_PRODUCTS, _product_work(size, size, size), specs=specs)


def normalized_program(size: int, tiles: tuple[int, int, int], **decisions: Any) -> Case:
    """Return the block program of a product of normalized rows, with a weight for each element of a row."""
    rows, columns, depth = tiles

    def normalized(x: Any, weight: Any, w: Any) -> Any:
        (m, k), (_, n) = x.shape, w.shape
        i, j = block.grid(block.cdiv(m, rows), block.cdiv(n, columns))

        def step(s: Any, carried: Any) -> Any:
            tile = x.tile((rows, depth), (i, s)).astype(jnp.float32)
            scaled = (tile * weight.tile(depth, (s,))).astype(x.dtype)
            return carried[0] + block.dot(scaled, w.tile((depth, columns), (s, j))), carried[1] + (tile * tile).sum(1)

        total, squares = block.steps(block.cdiv(k, depth), step, (jnp.zeros((rows, columns)), jnp.zeros(rows)))
        return block.store((total * lax.rsqrt(squares / k + 1e-6)[:, None]).astype(x.dtype), (m, n), (i, j))

    def reference(x: Any, weight: Any, w: Any) -> Any:
        wide = x.astype(jnp.float32)
        scale = lax.rsqrt(jnp.mean(wide * wide, 1, keepdims=True) + 1e-6)
        product = jnp.matmul((wide * weight).astype(x.dtype), w, preferred_element_type=jnp.float32)
        return (product * scale).astype(x.dtype)

    name = f"program: rms norm + linear {size}^3, {_described(tiles, decisions)}"
    specs = (f"bf16[{size},{size}]", f"f32[{size}]", f"bf16[{size},{size}]")
    kernel = block.kernel(normalized, **decisions)
    return Case(name, kernel, reference, _OF_PRODUCTS, _product_work(size, size, size), specs=specs)


def attention_program(batch: int, heads: int, keys: int, width: int, tiles: tuple[int, int], **decisions: Any) -> Case:
    """Return the block program of attention to all keys, as docs/block_programs.md has it."""
    bm, bn = tiles

    def attention(q: Any, k: Any, v: Any) -> Any:
        number, i = block.grid(batch * heads, block.cdiv(keys, bm))
        head = (number // heads, number % heads)
        queries = q.tile((bm, width), (*head, i, 0))

        def step(s: Any, carried: Any) -> Any:
            largest, total, out = carried
            logits = block.dot(queries, k.tile((bn, width), (*head, s, 0)).T) * width**-0.5
            new = jnp.maximum(largest, jnp.max(logits, axis=1))
            weights, old = jnp.exp(logits - new[:, None]), jnp.exp(largest - new)
            added = block.dot(weights.astype(v.dtype), v.tile((bn, width), (*head, s, 0)))
            return new, total * old + jnp.sum(weights, axis=1), out * old[:, None] + added

        start = jnp.full(bm, -1e30), jnp.zeros(bm), jnp.zeros((bm, width))
        _, total, out = block.steps(keys // bn, step, start)
        return block.store((out / total[:, None]).astype(q.dtype), q.shape, (*head, i, 0))

    def reference(q: Any, k: Any, v: Any) -> Any:
        logits = jnp.einsum("bhqd,bhkd->bhqk", q, k, preferred_element_type=jnp.float32) * width**-0.5
        weights = jax.nn.softmax(logits, axis=-1).astype(jnp.bfloat16)
        return jnp.einsum("bhqk,bhkd->bhqd", weights, v, preferred_element_type=jnp.float32).astype(jnp.bfloat16)

    name = f"program: attention {batch} x {heads} x {keys} x {width}, {_described(tiles, decisions)}"
    specs = (f"bf16[{batch},{heads},{keys},{width}]",) * 3
    kernel = block.kernel(attention, **decisions)
    work = 4 * batch * heads * keys * keys * width / 1e12
    return Case(name, kernel, reference, 2 * _OF_PRODUCTS, work, specs=specs)


def _described(tiles: Sequence[int], decisions: dict[str, Any]) -> str:
    return ", ".join([" x ".join(map(str, tiles)), *(f"{name} {each}" for name, each in decisions.items())])


def _product_work(m: int, n: int, k: int) -> float:
    return 2 * m * n * k / 1e12


def cases() -> list[Case]:
    """Return all cases."""
    return [
        linear(4096, 4096, 4096, (128, 128, 64), 256, activation=False),
        linear(4096, 4096, 4096, (128, 128, 32), 128, activation=False),
        linear(4096, 4096, 4096, (128, 256, 32), 256, activation=False),
        linear(4096, 4096, 4096, (128, 128, 64), 256),
        linear(4095, 4097, 4093, (128, 128, 32), 256),
        linear(405, 435, 63, (64, 64, 32), 128),
        normalized(4096, 4096, 4096, (128, 128, 64), 256),
        normalized(64, 4096, 4096, (64, 64, 64), 128),
        attention(32, 4096, 4096, 64, (128, 64), 128),
        attention(32, 4096, 4096, 128, (128, 64), 256),
        softmax(16384, 4096, 2, 256),
        softmax(16384, 1000, 8, 256),
        transpose(16384, 16384, 64, 256),
        linear_program(4096, (128, 128, 64)),
        linear_program(4096, (128, 128, 64), threads=256),
        linear_program(4096, (128, 256, 64), threads=256),
        linear_program(4096, (128, 128, 64), copy="bulk"),
        linear_program(4096, (128, 128, 64), threads=256, copy="bulk"),
        linear_program(4096, (128, 128, 64), threads=256, stages=3),
        linear_program(4096, (128, 256, 64), emitter="product"),
        normalized_program(4096, (128, 128, 32), threads=256),
        normalized_program(4096, (128, 128, 64), threads=256),
        attention_program(4, 16, 4096, 128, (128, 128), threads=256),
        attention_program(4, 16, 4096, 64, (64, 64)),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the cases whose names the words given choose, or all; returns 1 without a GPU or if one is wrong."""
    return measure("block_kernels", __doc__, cases(), argv)


if __name__ == "__main__":
    sys.exit(main())
