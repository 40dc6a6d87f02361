"""Products are padded where rows are not aligned: kernels store padded operands and read slices of padded results."""

import random
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py import effort
from tests.py.emit.products.products import ORDERS
from xgpu.fusion import product_pads

RESULTS = {"bf16": jnp.bfloat16, "f16": jnp.float16, "f32": jnp.float32}


@pytest.fixture
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every product padded whose rows are not aligned, whatever it costs."""
    monkeypatch.setattr(product_pads, "_LEAST_GAIN", 0)


def _main(program: xgpu.Compiled) -> str:
    return program.ir("fusions").partition("func.func @main")[2]


def _kernels(program: xgpu.Compiled) -> list[str]:
    return sorted(kernel.emitter for kernel in program.kernels)


def _has_aligned_operands(program: xgpu.Compiled) -> None:
    """Check that the rows of all operands of products begin at multiples of 16 bytes."""
    products = re.findall(r"dot_general.* : \((.*)\) -> ", program.ir("prepared"))
    assert products
    for size, element in re.findall(r"tensor<(?:\d+x)*(\d+)x[a-z]+(\d+)>", str(products)):
        assert not int(size) * int(element) % 128


def _drawn(count: int) -> list[tuple[str, str, str, str, int, int, int, int]]:
    """Return products: what computes them, order in memory, types of operands and result, sizes."""
    generator = random.Random(effort.seed_of_commit() + 2)
    found = []
    for number in range(count):
        order = list(ORDERS)[number % len(ORDERS)]
        sizes = [generator.choice((8 * generator.randint(1, 12), generator.randint(2, 100))) for _ in "mn"]
        operands = generator.choice(("bf16", "f16", "f32"))
        result = generator.choice((operands, "f32"))
        products = ("library", "kernels")[number // len(ORDERS) % 2]
        # Kernels compute shorter sums by plain loops.
        found.append((products, order, operands, result, generator.choice((1, 3)), *sizes, generator.randint(33, 150)))
    return found


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize(
    ("products", "order", "operands", "result", "batch", "m", "n", "k"), _drawn(effort.by_level(8, 24, 800)), ids=str
)
def test_sums_of_whole_numbers_are_exact(
    products: str, order: str, operands: str, result: str, batch: int, m: int, n: int, k: int
) -> None:
    """Small whole numbers, whose sums any order gives right; infinities and NaN stay in their rows and columns."""
    sizes = {"m": m, "n": n, "k": k}
    left, right = ([batch, *(sizes[name] for name in names)] for names in order.split(","))
    contracted = [[1 + each] for each in ORDERS[order]]
    numbers: Any = (contracted, ((0,), (0,)))

    def function(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, numbers, preferred_element_type=RESULTS[result])

    specs = [f"{operands}[{','.join(map(str, shape))}]" for shape in (left, right)]
    program = xgpu.compile(function, *specs, options=xgpu.Options(products=products))
    _has_aligned_operands(program)
    generator = np.random.default_rng(batch + m + n + k)
    x, y = (generator.integers(-4, 5, shape).astype(np.float64) for shape in (left, right))
    x[0, 0, 0], y[-1, -1, -1] = np.inf, np.nan
    sums = {"mk,kn": "bmk,bkn", "km,kn": "bkm,bkn", "mk,nk": "bmk,bnk", "km,nk": "bkm,bnk"}[order]
    with np.errstate(invalid="ignore"):
        expected = np.einsum(f"{sums}->bmn", x, y)
    given = [each.astype(spec.dtype.numpy) for each, spec in zip((x, y), program.arguments, strict=True)]
    (found,) = program.run(*given)
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(found.dtype).astype(np.float64))


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize(
    ("numbers", "specs", "pads"),
    [
        ((((3,), (1,)), ((0,), (0,))), ("bf16[2,5,20,63]", "bf16[2,63,24]"), 2),
        ((((1, 2), (0, 1)), ((), ())), ("f16[70,7,9]", "f16[7,9,44]"), 2),
        ((((1, 2), (0, 2)), ((), ())), ("f32[70,7,9]", "f32[7,5,9]"), 0),
        ((((3,), (3,)), ((0, 1), (0, 1))), ("bf16[2,3,70,66]", "bf16[2,3,40,66]"), 2),
        ((((0,), (0,)), ((), ())), ("f16[40,31]", "f16[40,5,7]"), 2),
        ((((2,), (2,)), ((1,), (1,))), ("f16[70,3,35]", "f16[40,3,35]"), 0),
        ((((1,), (1,)), ((), ())), ("bf16[1,41]", "bf16[2,41]"), 0),
    ],
    ids=str,
)
def test_dimensions(numbers: Any, specs: tuple[str, str], pads: int) -> None:
    """Several dimensions of a kind; those that XLA transposes first, and products with a vector, are left alone."""

    def function(x: Any, y: Any, z: Any) -> Any:
        product = lax.dot_general(x, y, numbers, preferred_element_type=jnp.float32)
        return jnp.sin(z), product + jnp.sum(product)

    program = xgpu.compile(function, *specs, "f32[8]")
    assert program.ir("prepared").count("stablehlo.pad ") == pads
    generator = np.random.default_rng(0)
    given = [generator.integers(-4, 5, spec.shape).astype(spec.dtype.numpy) for spec in program.arguments]
    for found, expected in zip(program.run(*given), program.reference(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def _mean_cross_entropy(weights: Any, x: Any, labels: Any) -> Any:
    logits = (x @ weights).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - chosen)


def test_logits_and_their_gradient_are_stored_padded() -> None:
    gradient = jax.grad(_mean_cross_entropy, (0, 1))
    main = _main(xgpu.compile(gradient, "bf16[768,50257]", "bf16[8192,768]", "s32[8192]"))
    assert re.findall(r"dot_general %(\w+), %(\w+),.*-> (\S+)", main) == [
        ("arg1", "0", "tensor<8192x50264xbf16>"),
        ("arg1", "5", "tensor<768x50264xbf16>"),
        ("5", "0", "tensor<8192x768xbf16>"),
    ]
    assert "8192x50257xbf16" not in main


def test_a_network_of_odd_widths_copies_what_it_is_given_alone() -> None:
    def network(x: Any, v: Any, w: Any) -> Any:
        return jax.nn.relu(jax.nn.relu(x @ v) @ w)

    program = xgpu.compile(network, "bf16[8192,1001]", "bf16[1001,3003]", "bf16[3003,2001]")
    main = _main(program)
    assert len(re.findall(r"call @\w+\(%arg\d\)", main)) == 3
    assert len(program.kernels) == 5
    assert re.findall(r"-> (tensor<8192\S+)", main.partition("{")[2]) == [
        "tensor<8192x1008xbf16>",
        "tensor<8192x3008xbf16>",
        "tensor<8192x3008xbf16>",
        "tensor<8192x2008xbf16>",
        "tensor<8192x2001xbf16>",
    ]


def test_kernels_of_products_copy_aligned_rows_by_boxes() -> None:
    options = xgpu.Options(products="kernels")
    program = xgpu.compile(lambda x, w: x @ w, "bf16[2047,2049]", "bf16[2049,2047]", options=options)
    assert _kernels(program) == ["loop", "loop", "loop", "product"]


def test_rows_that_a_kernel_holds_are_not_read_again_for_a_pad() -> None:
    def attention(query: Any, key: Any, value: Any) -> Any:
        scores = jnp.einsum("bqd,bkd->bqk", query, key).astype(jnp.float32)
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores).astype(query.dtype), value)

    options = xgpu.Options(fuse_attention=False)
    program = xgpu.compile(attention, *["f32[96,1023,64]"] * 3, options=options)
    assert _kernels(program) == ["rows"]


def test_a_constant_is_padded_by_xla() -> None:
    weights = np.arange(1025 * 1024, dtype=np.float32).reshape(1025, 1024)
    program = xgpu.compile(lambda x: x @ jnp.asarray(weights), "f32[1024,1025]")
    kernels, _, main = program.ir("fusions").partition("func.func @main")
    assert main.count("stablehlo.pad ") == 1
    assert len(kernels) < 1000 < weights.nbytes < len(main)


def test_weights_of_a_loop_are_padded_once() -> None:
    def run(w: Any, x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, x: jnp.tanh(x @ w), x)

    before, _, loop = _main(xgpu.compile(run, "f32[1023,1023]", "f32[1024,1023]")).partition("stablehlo.while")
    assert before.count("call @") == 1
    # A step pads its state for the product, and computes the next of it.
    assert loop.count("call @") == 2


def test_products_on_a_cpu_stay_as_they_are() -> None:
    def function(x: Any, w: Any) -> Any:
        return jax.nn.softmax(x @ w)

    specs = (jax.ShapeDtypeStruct((2047, 2049), jnp.float32), jax.ShapeDtypeStruct((2049, 2047), jnp.float32))
    as_asked = xgpu.Options(pad_products=False)
    assert jax.default_backend() == "cpu"
    assert len(xgpu.compile(function, *specs).kernels) == 3
    assert len(xgpu.compile(function, *specs, options=as_asked).kernels) == 1
    assert len(xgpu.jit(function).explain(*specs).kernels) == 1
    assert "2048" not in xgpu.jit(function).lower(*specs).as_text()


def test_an_epilogue_that_xla_computes_counts_as_a_copy() -> None:
    def rectified(x: Any, w: Any) -> Any:
        return jax.nn.relu(x @ w.T), jnp.sin(x)

    def normalised(x: Any, w: Any) -> Any:
        return jax.nn.softmax(x @ w.T), jnp.sin(x)

    specs = ("bf16[8192,768]", "bf16[50257,768]")
    assert "50264" not in xgpu.compile(rectified, *specs).ir("prepared")
    assert "50264" in xgpu.compile(normalised, *specs).ir("prepared")
