"""Measures kernels against ``jax.jit`` on the same GPU, in the same process, one after the other."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import xgpu
from xgpu.errors import XgpuError
from xgpu.runtime.jax_backend import gpu_device
from xgpu.tools import kernel_timing
from xgpu.tools.benchmark_operations import measure_operations, operations, parse_bytes, parse_types


@dataclass(frozen=True)
class Benchmark:
    """A function, and the shapes and types of its arguments; integers are below ``rows``, in order if ``ascending``."""

    name: str
    function: Callable[..., Any]
    specs: tuple[tuple[tuple[int, ...], Any], ...]
    rows: int = 2
    ascending: bool = False
    options: xgpu.Options | None = None

    def arguments(self) -> list[jax.Array]:
        """Return random arguments on the GPU."""
        keys = jax.random.split(jax.random.key(0), len(self.specs))
        return [self._draw(key, shape, dtype) for key, (shape, dtype) in zip(keys, self.specs, strict=True)]

    def _draw(self, key: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
        if jnp.issubdtype(dtype, jnp.integer):
            drawn = jax.random.randint(key, shape, 0, self.rows, dtype)
            return jnp.sort(drawn) if self.ascending else drawn
        return jax.random.normal(key, shape, jnp.float32).astype(dtype)


def _benchmarks() -> list[Benchmark]:
    square, odd = (16384, 16384), (16381, 16381)
    f32, bf16 = jnp.float32, jnp.bfloat16
    gelu = jax.nn.gelu
    return [
        Benchmark("gelu(x+y) f32 1 GiB", lambda x, y: gelu(x + y), ((square, f32),) * 2),
        Benchmark("gelu(x+y) f32 odd sizes", lambda x, y: gelu(x + y), ((odd, f32),) * 2),
        Benchmark("gelu(x+y) bf16", lambda x, y: gelu(x + y), ((square, bf16),) * 2),
        Benchmark("x*2 f32", lambda x: x * 2, ((square, f32),)),
        Benchmark("x*2 bf16", lambda x: x * 2, ((square, bf16),)),
        Benchmark("exp f32", jnp.exp, ((square, f32),)),
        Benchmark("x + bias, odd rows", lambda x, b: x + b, ((odd, f32), ((16381,), f32))),
        Benchmark("pad f32", lambda x: jnp.pad(x, ((1, 1), (4, 4))), ((square, f32),)),
        Benchmark("bf16 to f32", lambda x: x.astype(f32), ((square, bf16),)),
        *[benchmark for dtype in (f32, bf16) for benchmark in _reductions(dtype)],
        *[benchmark for dtype in (f32, bf16) for benchmark in _scans(dtype)],
        *[benchmark for dtype in (f32, bf16) for benchmark in _rows(dtype)],
        *[benchmark for dtype in (f32, bf16) for benchmark in _transposes(dtype)],
        *[benchmark for dtype in (f32, bf16) for benchmark in _joins(dtype)],
        *[benchmark for dtype in (f32, bf16) for benchmark in _scatters(dtype)],
        *[benchmark for dtype in (f32, bf16) for benchmark in _products(dtype)],
        *_tiles(),
    ]


def _reductions(dtype: Any) -> list[Benchmark]:
    """Sums over rows, columns and everything, long and short, and what else is found by looking at every element."""
    name = "f32" if dtype == jnp.float32 else "bf16"
    square = (16384, 16384)

    def total(*axes: int) -> Callable[[jax.Array], jax.Array]:
        return lambda x: jnp.sum(x, axes)

    def argmax(axis: int) -> Callable[[jax.Array], jax.Array]:
        return lambda x: jnp.argmax(x, axis)

    def moments(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        wide = x.astype(jnp.float32)
        return jnp.sum(wide, 1), jnp.sum(wide * wide, 1)

    def exponentials(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = jnp.exp(x)
        return found, jnp.sum(found, 1)

    cases: list[tuple[str, Callable[..., Any], tuple[int, ...]]] = [
        ("row sum", total(1), square),
        ("row sum, odd", total(1), (16381, 16381)),
        ("row sum, 4096", total(1), (65536, 4096)),
        ("row sum, 100", total(1), (1 << 21, 100)),
        ("row sum, 33", total(1), (1 << 22, 33)),
        ("row sum, 16", total(1), (1 << 23, 16)),
        ("row sum, 16 long rows", total(1), (16, 1 << 24)),
        ("column sum", total(0), square),
        ("column sum, odd", total(0), (16381, 16381)),
        ("column sum, 4096", total(0), (65536, 4096)),
        ("column sum, 256", total(0), (1 << 20, 256)),
        ("column sum, 16", total(0), (1 << 24, 16)),
        ("column sum, 3", total(0), (1 << 26, 3)),
        ("sum over the middle", total(1), (64, 512, 8192)),
        ("sum over the middle, 16", total(1), (2048, 16, 8192)),
        ("sum over the ends", total(0, 2), (64, 512, 8192)),
        ("sum of images", total(0, 2, 3), (256, 256, 56, 56)),
        ("sum over the ends, 8", total(0, 2), (1 << 18, 64, 16)),
        ("full sum", total(0, 1), square),
        ("full sum, prime", total(0), (268435399,)),
        ("row max", lambda x: jnp.max(x, 1), square),
        ("argmax", argmax(1), square),
        ("argmax of columns", argmax(0), square),
        ("sum and sum of squares", moments, square),
        ("exp, stored and summed", exponentials, square),
        ("sum of a transposed array", lambda x: jnp.sum(x.T, 0), square),
    ]
    return [Benchmark(f"{what} {name}", function, ((shape, dtype),)) for what, function, shape in cases]


def _scans(dtype: Any) -> list[Benchmark]:
    """Sums up to each element along rows, columns and everything, and linear recurrences."""
    name = "f32" if dtype == jnp.float32 else "bf16"

    def sums(axis: int, reverse: bool = False) -> Callable[[jax.Array], jax.Array]:
        return lambda x: lax.cumsum(x, axis, reverse=reverse)

    def recurrence(a: jax.Array, b: jax.Array) -> jax.Array:
        def combine(left: Any, right: Any) -> Any:
            return left[0] * right[0], right[0] * left[1] + right[1]

        return lax.associative_scan(combine, (jnp.tanh(a), b), axis=1)[1]

    cases: list[tuple[str, Callable[..., Any], tuple[int, ...]]] = [
        ("row scan", sums(1), (16384, 16384)),
        ("row scan, 4096", sums(1), (4096, 4096)),
        ("row scan, odd, reverse", sums(1, reverse=True), (4095, 4097)),
        ("row scan, 100", sums(1), (1 << 18, 100)),
        ("column scan", sums(0), (16384, 16384)),
        ("column scan, 4096", sums(0), (4096, 4096)),
        ("column scan, 2048, reverse", sums(0, reverse=True), (2048, 2048)),
        ("column scan, 8", sums(0), (1 << 21, 8)),
        *((f"scan, 2^{power}", sums(0), (1 << power,)) for power in (16, 20, 24, 28)),
        ("row maximum scan", lambda x: lax.cummax(x, 1), (4096, 4096)),
        ("row logsumexp scan", lambda x: lax.cumlogsumexp(x, 1), (4096, 4096)),
    ]
    scans = [Benchmark(f"{what} {name}", function, ((shape, dtype),)) for what, function, shape in cases]
    shapes = ((16, 2048, 1024), (1, 1 << 22), (64, 1 << 16))
    return scans + [
        Benchmark(f"recurrence {'x'.join(map(str, shape))} {name}", recurrence, ((shape, dtype),) * 2)
        for shape in shapes
    ]


def _rows(dtype: Any) -> list[Benchmark]:
    """Softmax and norms, computed in f32, gradients, and a softmax that needs a sum over all rows."""
    name = "f32" if dtype == jnp.float32 else "bf16"

    def softmax(x: jax.Array) -> jax.Array:
        return jax.nn.softmax(x.astype(jnp.float32)).astype(x.dtype)

    def causal(x: jax.Array) -> jax.Array:
        is_past = jnp.tri(x.shape[1], x.shape[2], dtype=bool)
        return softmax(jnp.where(is_past, x, -jnp.inf))

    def gradient(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.vjp(softmax, x)[1](y)[0]

    def layer_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        centred = wide - jnp.mean(wide, -1, keepdims=True)
        variance = jnp.mean(centred * centred, -1, keepdims=True)
        return (centred * jax.lax.rsqrt(variance + 1e-5) * scale + bias).astype(x.dtype)

    def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-5) * scale).astype(x.dtype)

    def centred(x: jax.Array) -> jax.Array:
        return softmax(x) - jnp.mean(x.astype(jnp.float32)).astype(x.dtype)

    def loss(x: jax.Array, labels: jax.Array) -> jax.Array:
        chosen = jnp.take_along_axis(jax.nn.log_softmax(x.astype(jnp.float32)), labels[:, None], 1)
        return -jnp.mean(chosen)

    wide, weights = ((65536, 4096), dtype), ((4096,), dtype)
    return [
        *[
            Benchmark(f"softmax, {width} {name}", softmax, ((((1 << 28) // width, width), dtype),))
            for width in (128, 1024, 4096, 16384)
        ],
        Benchmark(f"softmax, 1000 {name}", softmax, (((1 << 18, 1000), dtype),)),
        Benchmark(f"causal softmax {name}", causal, (((256, 1024, 1024), dtype),)),
        Benchmark(f"gradient of softmax {name}", gradient, (((1 << 17, 1024), dtype),) * 2),
        Benchmark(f"layer norm {name}", layer_norm, (wide, weights, weights)),
        Benchmark(f"layer norm, 768 {name}", layer_norm, (((1 << 18, 768), dtype), ((768,), dtype), ((768,), dtype))),
        Benchmark(f"RMS norm {name}", rms_norm, (wide, weights)),
        Benchmark(f"softmax - mean of all {name}", centred, (wide,)),
        Benchmark(f"gradient of cross-entropy {name}", jax.grad(loss), (wide, ((65536,), jnp.int32)), 4096),
    ]


def _transposes(dtype: Any) -> list[Benchmark]:
    """Dimensions exchanged: both, the minor two, and the major two."""
    name = "f32" if dtype == jnp.float32 else "bf16"

    def transpose(*order: int) -> Callable[[jax.Array], jax.Array]:
        return lambda x: jnp.transpose(x, order)

    cubic = (64, 512, 8192)
    return [
        Benchmark(f"transpose 10 {name}", transpose(1, 0), (((16384, 16384), dtype),)),
        Benchmark(f"transpose 021 {name}", transpose(0, 2, 1), ((cubic, dtype),)),
        Benchmark(f"transpose 102 {name}", transpose(1, 0, 2), ((cubic, dtype),)),
        Benchmark(f"transpose 210 {name}", transpose(2, 1, 0), ((cubic, dtype),)),
    ]


def _joins(dtype: Any) -> list[Benchmark]:
    """Arrays put together: long and short pieces, at even and odd places; and arrays taken apart."""
    name = "f32" if dtype == jnp.float32 else "bf16"

    def join(*arrays: jax.Array) -> jax.Array:
        return jax.lax.concatenate(arrays, 1)

    def rotate(x: jax.Array, y: jax.Array, angle: jax.Array) -> jax.Array:
        return jnp.concatenate([x * angle - y, y * angle + x], 1)

    def split(*at: int) -> Callable[[jax.Array], list[jax.Array]]:
        return lambda x: jnp.split(x, at, 1)

    def specs(rows: int, *widths: int) -> tuple[tuple[tuple[int, ...], Any], ...]:
        return tuple(((rows, width), dtype) for width in widths)

    return [
        Benchmark(f"concatenate {name}", lambda x, y: jnp.concatenate([x, y]), specs(8192, 16384, 16384)),
        Benchmark(f"join halves {name}", join, specs(16384, 8192, 8192)),
        Benchmark(f"join odd halves {name}", join, specs(16384, 8191, 8193)),
        Benchmark(f"join 511 + 513 {name}", join, specs(1 << 18, 511, 513)),
        Benchmark(f"join 64 + 64, rotated {name}", rotate, specs(1 << 20, 64, 64, 64)),
        Benchmark(f"join 100 + 63 {name}", join, specs(1 << 20, 100, 63)),
        Benchmark(f"join 100 times 3 {name}", join, specs(1 << 19, *[3] * 100)),
        Benchmark(f"split 4096+1024+1024 {name}", split(4096, 5120), specs(32768, 6144)),
        Benchmark(f"split 4001+1025+1023 {name}", split(4001, 5026), specs(32768, 6049)),
    ]


def _scatters(dtype: Any) -> list[Benchmark]:
    """Additions to random elements and rows, and to sorted ones, then an update of a slice in place."""
    name, s32 = "f32" if dtype == jnp.float32 else "bf16", jnp.int32
    elements, rows, edges = 1 << 24, 32768, 1 << 20
    vocabulary, width, nodes = 50304, 4096, 1 << 16

    def add(x: jax.Array, y: jax.Array, i: jax.Array) -> jax.Array:
        return x.at[i].add(y)

    def add_rows(y: jax.Array, i: jax.Array) -> jax.Array:
        return jnp.zeros((vocabulary, width), y.dtype).at[i].add(y)

    def add_sorted(y: jax.Array, i: jax.Array) -> jax.Array:
        return jax.ops.segment_sum(y, i, nodes, indices_are_sorted=True)

    def update(x: jax.Array, y: jax.Array, i: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(x, y, (i[0], 0))

    many, in_order = ((elements,), s32), xgpu.Options(deterministic=True)
    single = (((1 << 20,), dtype), ((elements,), dtype), many)
    wide = (((rows, width), dtype), ((rows,), s32))
    return [
        Benchmark(f"scatter-add 16M {name}", add, single, 1 << 20),
        Benchmark(f"same, deterministic {name}", add, single, 1 << 20, options=in_order),
        Benchmark(f"scatter-add to 4096 {name}", add, (((4096,), dtype), *single[1:]), 4096),
        Benchmark(f"embedding gradient {name}", add_rows, wide, vocabulary),
        Benchmark(f"same, deterministic {name}", add_rows, wide, vocabulary, options=in_order),
        Benchmark(f"gradient, 100 words {name}", add_rows, wide, 100),
        Benchmark(f"segment_sum, wide {name}", add_sorted, (((edges, 128), dtype), ((edges,), s32)), nodes, True),
        Benchmark(f"segment_sum, single {name}", add_sorted, (((elements,), dtype), many), nodes, True),
        Benchmark(f"update slice {name}", update, (((8192, 8192), dtype), ((512, 8192), dtype), ((1,), s32)), 7680),
    ]


def _tiles() -> list[Benchmark]:
    """Matrix products that kernels compute by tiles, with what follows them, instead of a library."""
    kernels = xgpu.Options(products="kernels")

    def product(
        name: str, function: Callable[..., Any], *shapes: tuple[int, ...], dtype: Any = jnp.bfloat16
    ) -> Benchmark:
        return Benchmark(f"tiles, {name}", function, tuple((shape, dtype) for shape in shapes), options=kernels)

    def matrices(m: int, n: int, k: int, dtype: Any = jnp.bfloat16) -> Benchmark:
        return product(f"{m} x {n} x {k} {jnp.dtype(dtype).name}", jnp.matmul, (m, k), (k, n), dtype=dtype)

    def contracted(name: str, dtype: Any, result: Any) -> Benchmark:
        """Both operands contiguous along the contracted dimension, as instructions for these types have them."""

        def function(x: jax.Array, y: jax.Array) -> jax.Array:
            return lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=result)

        return product(f"8192^3 {name}", function, (8192, 8192), (8192, 8192), dtype=dtype)

    sizes = [(size, size, size) for size in (512, 1024, 2048, 4096, 8192)]
    sizes += [(8192, 1024, 8192), (4096, 14336, 4096), (4096, 4096, 14336), (64, 14336, 4096), (16, 14336, 4096)]
    square = (4096, 4096)
    return [
        *(matrices(*each) for each in sizes),
        matrices(4095, 4097, 4093),
        matrices(405, 435, 63),
        matrices(4096, 4096, 4096, jnp.float16),
        product("512 of 128^3", jnp.matmul, (512, 128, 128), (512, 128, 128)),
        product("64 of 512 x 64 x 512", jnp.matmul, (64, 512, 512), (64, 512, 64)),
        product("4096^3 + bias, gelu", lambda x, w, b: jax.nn.gelu(x @ w + b), square, square, (4096,)),
        product("4096^3 + matrix", lambda x, w, y: x @ w + y, square, square, square),
        contracted("f8", jnp.float8_e4m3fn, jnp.bfloat16),
        contracted("s8", jnp.int8, jnp.int32),
        contracted("f32, as tf32", jnp.float32, jnp.float32),
    ]


def _products(dtype: Any) -> list[Benchmark]:
    """Matrix products and convolutions, and what a library's kernel may do with their results."""
    name = "f32" if dtype == jnp.float32 else "bf16"
    gelu, relu = jax.nn.gelu, jax.nn.relu
    # The exact gelu, which cuBLASLt does not have.
    exact_gelu = partial(gelu, approximate=False)
    batch, inner, outer = 8192, 1024, 4096
    dense = (((batch, inner), dtype), ((inner, outer), dtype), ((outer,), dtype))
    whole = (*dense[:2], ((batch, outer), dtype))
    gated = (*dense[:2], ((inner, outer), dtype))
    images = (((64, 56, 56, 64), dtype), ((3, 3, 64, 64), dtype))

    def convolve(x: jax.Array, kernel: jax.Array) -> jax.Array:
        layouts = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layouts)

    return [
        Benchmark(f"product {name}", lambda x, w: x @ w, dense[:2]),
        Benchmark(f"product, scaled {name}", lambda x, w: 0.125 * (x @ w), dense[:2]),
        Benchmark(f"product + bias {name}", lambda x, w, b: x @ w + b, dense),
        Benchmark(f"product + bias, relu {name}", lambda x, w, b: relu(x @ w + b), dense),
        Benchmark(f"product, relu {name}", lambda x, w: relu(x @ w), dense[:2]),
        Benchmark(f"product + bias, gelu {name}", lambda x, w, b: gelu(x @ w + b), dense),
        Benchmark(f"product, gelu {name}", lambda x, w: gelu(x @ w), dense[:2]),
        Benchmark(f"product + bias, exact gelu {name}", lambda x, w, b: exact_gelu(x @ w + b), dense),
        Benchmark(f"product + matrix {name}", lambda x, w, y: x @ w + y, whole),
        Benchmark(f"product * matrix {name}", lambda x, w, y: (x @ w) * y, whole),
        Benchmark(f"product, tanh {name}", lambda x, w: jnp.tanh(x @ w), dense[:2]),
        Benchmark(f"product, as f32 {name}", lambda x, w: (x @ w).astype(jnp.float32), dense[:2]),
        Benchmark(f"product + matrix, relu {name}", lambda x, w, y: relu(x @ w + y), whole),
        Benchmark(f"product + bias + matrix {name}", lambda x, w, b, y: x @ w + b + y, (*dense, whole[2])),
        Benchmark(f"products, gated {name}", lambda x, w, v: jax.nn.silu(x @ w) * (x @ v), gated),
        Benchmark(f"convolution {name}", convolve, images),
        Benchmark(
            f"convolution + bias, relu {name}", lambda x, k, b: relu(convolve(x, k) + b), (*images, ((64,), dtype))
        ),
        Benchmark(f"convolution + images, relu {name}", lambda x, k, y: relu(convolve(x, k) + y), (*images, images[0])),
    ]


def compare_speed(benchmark: Benchmark, repeats: int) -> kernel_timing.Speeds:
    """Return the speeds of xgpu and XLA, measured alternately."""
    ours, theirs = jax.jit(xgpu.jit(benchmark.function, options=benchmark.options)), jax.jit(benchmark.function)
    return kernel_timing.compare(ours, theirs, benchmark.arguments(), repeats)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("benchmark", description=__doc__)
    parser.add_argument("words", nargs="*", help="run only benchmarks whose name contains one of these")
    parser.add_argument("--repeats", type=int, metavar="N", help="measurements of each; 9, or 5 with --all-ops")
    every = parser.add_argument_group("every elementwise operation")
    every.add_argument("--all-ops", action="store_true", help="measure them, and end with a table, the slowest last")
    every.add_argument("--types", default="f32,bf16", metavar="TYPE,...", help="f32,bf16 if left out")
    every.add_argument("--bytes", default="256MiB", metavar="SIZE", help="of each operand; 256MiB if left out")
    every.add_argument("--seconds", type=float, default=220.0, help="start no operation after this time; 220")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per benchmark: the speed of both in TB/s of useful bytes, and ours over XLA's."""
    arguments = _parser().parse_args(argv)
    try:
        size, types = parse_bytes(arguments.bytes), parse_types(arguments.types)
        print(f"device: {gpu_device().device_kind}")
    except XgpuError as error:
        print(f"benchmark: error: {error}", file=sys.stderr)
        return 1
    if arguments.all_ops:
        chosen = [each for dtype in types for each in operations(dtype) if _is_chosen(each.title, arguments.words)]
        measure = partial(kernel_timing.compare, repeats=arguments.repeats or 5)
        report = measure_operations(
            chosen, size, arguments.seconds, measure, partial(print, file=sys.stderr, flush=True)
        )
        print(report.text())
        return 0
    print(kernel_timing.HEAD)
    for benchmark in _benchmarks():
        if _is_chosen(benchmark.name, arguments.words):
            print(compare_speed(benchmark, arguments.repeats or 9).line(benchmark.name), flush=True)
    return 0


def _is_chosen(name: str, words: Sequence[str]) -> bool:
    return not words or any(word in name for word in words)


if __name__ == "__main__":
    sys.exit(main())
