"""Products of few rows with a matrix that a kernel computes of less: sums, which read what it is computed of once."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu


def _by_columns(x: Any, q: Any, s: Any) -> Any:
    return x @ (q.astype(jnp.bfloat16) * s)


def _by_rows(x: Any, q: Any, s: Any) -> Any:
    return jnp.einsum("mk,nk->mn", x, q.astype(jnp.bfloat16) * s[:, None])


def _swapped(x: Any, q: Any, s: Any) -> Any:
    return jnp.einsum("km,kn->nm", x, q.astype(jnp.bfloat16) * s)


def _of_a_batch(x: Any, q: Any, s: Any) -> Any:
    return jnp.einsum("bmk,bkn->bmn", x, q.astype(jnp.bfloat16) * s)


def _packed(x: Any, q: Any, s: Any) -> Any:
    """Two numbers of 4 bits a byte, with a scale for each 32 of a column."""
    low, high = (q & 15).astype(jnp.int8) - 8, (q >> 4).astype(jnp.int8) - 8
    k, n = 2 * q.shape[0], q.shape[1]
    w = jnp.stack([low, high], 1).reshape(k, n).astype(jnp.bfloat16)
    return x @ (w.reshape(-1, 32, n) * s[:, None]).reshape(k, n)


CASES = {
    "columns": (_by_columns, "bf16[{m},1024]", "s8[1024,4104]", "bf16[4104]"),
    "rows": (_by_rows, "bf16[{m},1024]", "s8[4104,1024]", "bf16[4104]"),
    "rows of a result": (_swapped, "bf16[1024,{m}]", "s8[1024,4104]", "bf16[4104]"),
    "a batch": (_of_a_batch, "bf16[3,{m},1024]", "s8[3,1024,2056]", "bf16[2056]"),
    "packed": (_packed, "bf16[{m},2048]", "u8[1024,4104]", "bf16[64,4104]"),
}


def _calls(program: Any) -> str:
    """Return the calls of kernels in the function ``main``."""
    main = program.ir("fusions").partition("func.func @main")[2]
    return "\n".join(line for line in main.splitlines() if "call @" in line)


@pytest.mark.parametrize(("name", "rows"), [*((name, 1) for name in CASES), ("a batch", 3), ("packed", 3)])
def test_weights_are_read_as_they_are(name: str, rows: int) -> None:
    """By sums, or by XLA, which widens several rows' weights of a batch as it multiplies."""
    function, *specs = CASES[name]
    program = xgpu.compile(function, *(spec.format(m=rows) for spec in specs))
    assert ("dot_general" in program.ir("prepared")) == ((name, rows) == ("a batch", 3))
    matrices = "1024x4104", "4104x1024", "2048x4104", "1024x2056"
    assert not re.findall(rf"-> tensor<[0-9x]*(?:{'|'.join(matrices)})xbf16>", _calls(program)), "the matrix is stored"
    generator = np.random.default_rng(rows)
    inputs = [generator.integers(-3, 4, each.shape).astype(each.dtype.numpy) for each in program.arguments]
    if name == "packed":
        inputs[1] = generator.integers(0, 256, inputs[1].shape).astype(np.uint8)
    # Sums of products of small whole numbers are exact in f32, and each rounds once.
    (found,), (expected,) = program.run(*inputs), program.reference(*inputs)
    np.testing.assert_array_equal(np.asarray(found, np.float32), np.asarray(expected, np.float32))


def _with_zeros(x: Any, q: Any, s: Any) -> Any:
    return x @ ((q.astype(jnp.bfloat16) - s[::-1]) * s)


FUSED = {name: CASES[name] for name in ("columns", "rows", "rows of a result")} | {
    "transposed": (lambda x, q, s: x @ (q.astype(jnp.bfloat16) * s[:, None]).T, *CASES["rows"][1:]),
    "zeros": (_with_zeros, *CASES["columns"][1:]),
    "4 bits": (_by_columns, "bf16[{m},1024]", "s4[1024,4104]", "bf16[4104]"),
    "f8": (_by_columns, "bf16[{m},1024]", "f8e4m3fn[1024,4104]", "bf16[4104]"),
}


@pytest.mark.parametrize("rows", [3, 64])
@pytest.mark.parametrize("name", FUSED)
def test_what_xla_computes_in_tiles_is_left_to_it(name: str, rows: int) -> None:
    """Its kernels of several rows read weights as they are, which kernels of ours would store wider for them."""
    function, *specs = FUSED[name]
    program = xgpu.compile(function, *(spec.format(m=rows) for spec in specs))
    main = program.ir("fusions").partition("func.func @main")[2]
    assert main.count("stablehlo.convert") == main.count("stablehlo.dot_general") == 1
    assert not re.findall(r"call .*-> tensor<(1024x4104|4104x1024)x", main), "a kernel stores the matrix"


def test_what_xla_would_store_is_a_kernels() -> None:
    """XLA computes nothing in tiles that is reshaped, rounded or read in another way before the product."""

    def reshaped(x: Any, q: Any, s: Any) -> Any:
        return x @ (q.reshape(8, 128, 4104).astype(jnp.bfloat16) * s).reshape(1024, 4104)

    def rounded(x: Any, q: Any, s: Any) -> Any:
        return x @ (q.astype(jnp.float32) * s).astype(jnp.bfloat16)

    def read_twice(x: Any, q: Any, s: Any) -> Any:
        w = q.astype(jnp.bfloat16) * s
        return x @ w, jnp.tanh(w)

    for function in (reshaped, rounded, read_twice):
        main = xgpu.compile(function, "bf16[64,1024]", "s8[1024,4104]", "bf16[4104]").ir("fusions")
        assert "stablehlo.convert" not in main.partition("func.func @main")[2], function.__name__


def test_matrices_that_are_stored_anyway_are_a_librarys() -> None:
    def function(x: Any, q: Any, s: Any) -> Any:
        w = q.astype(jnp.bfloat16) * s
        return x @ w, jnp.sort(w, 0)

    def transposed(x: Any, q: Any, s: Any) -> Any:
        w = q.astype(jnp.bfloat16) * s
        return x @ w.T, jnp.sort(w, 0)

    assert "dot_general" in xgpu.compile(function, "bf16[2,1024]", "s8[1024,4104]", "bf16[4104]").ir("prepared")
    assert "dot_general" in xgpu.compile(transposed, "bf16[2,4104]", "s8[1024,4104]", "bf16[4104]").ir("prepared")


def test_more_rows_are_a_librarys() -> None:
    """Their instructions take longer than memory."""
    program = xgpu.compile(_by_columns, "bf16[32,4096]", "s8[4096,4104]", "bf16[4104]")
    assert program.ir("prepared").count("dot_general") == 1


def test_what_is_read_alone_of_a_matrix_in_memory_is_a_librarys() -> None:
    program = xgpu.compile(lambda x, w: x @ w.reshape(1024, 4104).T, "bf16[2,4104]", "bf16[1024,8,513]")
    assert program.ir("prepared").count("dot_general") == 1


def _decoded(q: Any, k: Any, v: Any) -> Any:
    logits = jnp.einsum("bhgd,bthd->bhgt", q, k).astype(jnp.float32) * 128**-0.5
    return jnp.einsum("bhgt,bthd->bhgd", jax.nn.softmax(logits, -1).astype(q.dtype), v)


def _of_cache(q: Any, k: Any, v: Any, k_scale: Any, v_scale: Any) -> Any:
    return _decoded(q, k.astype(q.dtype) * k_scale, v.astype(q.dtype) * v_scale)


def test_attention_of_a_cache_of_8_bits_reads_it_once() -> None:
    """A kernel of attention would have to find keys and values in memory with 16 bits."""
    cache, scales = "s8[1,16384,4,128]", "bf16[1,16384,4,1]"
    program = xgpu.compile(_of_cache, "bf16[1,4,2,128]", cache, cache, scales, scales)
    emitters = {kernel.emitter for kernel in program.kernels}
    assert "attention" not in emitters
    assert program.ir("prepared").count("stablehlo.dot_general") == 2
    assert "-> tensor<1x16384x4x128xbf16>" not in _calls(program)
    q, _, v, *_ = inputs = program.random_inputs(1)
    inputs[3:] = [np.full((1, 16384, 4, 1), scale, q.dtype) for scale in (2**-6, 2**-7)]
    (found,), (expected,) = program.run(*inputs), program.reference(*inputs)
    size = np.abs(np.asarray(v, np.float32)).max() * 2**-7
    # Logits and weights are rounded to bf16 in either.
    np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(expected, np.float32), atol=size * 2**-6)


def test_attention_of_a_cache_in_memory_is_a_kernel() -> None:
    cache = "bf16[1,16384,4,128]"
    program = xgpu.compile(_decoded, "bf16[1,4,2,128]", cache, cache)
    assert "attention" in {kernel.emitter for kernel in program.kernels}
