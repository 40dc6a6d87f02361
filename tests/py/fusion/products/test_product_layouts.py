"""In which order products left to XLA have their dimensions, and which operands are stored in another one for them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

X, W = "f32[192,128]", "f32[128,256]"


def _read_twice(x):
    """Return what a kernel computes: XLA would make a chain of operations a part of the product."""
    return jnp.sin(x) * x


def _dot(lhs_contracting, rhs_contracting, lhs_batch=(), rhs_batch=()):
    numbers = ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))
    return lambda x, w: lax.dot_general(x, w, numbers, precision=(lax.Precision.HIGHEST, lax.Precision.DEFAULT))


@pytest.mark.parametrize(
    ("product", "permutation", "x", "w"),
    [
        (_dot((1,), (0,)), (1, 0), X, W),
        (_dot((0,), (1,)), (1, 0), "f32[128,192]", "f32[256,128]"),
        (_dot((2,), (1,), (0,), (0,)), (0, 2, 1), "f32[4,192,128]", "f32[4,128,256]"),
        (_dot((1,), (2,), (2,), (0,)), (0, 2, 1), "f32[192,128,4]", "f32[4,256,128]"),
        (_dot((2,), (0,)), (2, 0, 1), "f32[12,16,128]", W),
        (_dot((1,), (0,)), (1, 2, 0), X, "f32[128,16,16]"),
    ],
)
def test_swapped_products(product, permutation, x, w):
    compiled = xgpu.compile(lambda x, w: _read_twice(product(x, w).transpose(permutation)), x, w)
    assert "stablehlo.transpose" not in compiled.ir("fusions")
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    inputs = compiled.random_inputs(1)
    # Both are XLA's products, of 128 terms each, perhaps in another order.
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], atol=1e-4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: _read_twice(_dot((2,), (0,))(x, w).transpose(1, 0, 2)),
        lambda x, w: _read_twice(_dot((2,), (0,))(x, w).transpose(2, 1, 0)),
        lambda x, w: (_read_twice(_dot((2,), (0,))(x, w).transpose(2, 0, 1)), _dot((2,), (0,))(x, w) + 1),
    ],
    ids=["one operand's", "also one operand's", "read otherwise"],
)
def test_other_transposes_stay(function):
    assert "stablehlo.transpose" in xgpu.compile(function, "f32[12,16,128]", W).ir("fusions")


def test_a_product_stays_outside_a_loop():
    text = """
      func.func @main(%a: tensor<192x256xf32>, %b: tensor<256x128xf32>, %n: tensor<i32>) -> tensor<128x192xf32> {
        %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<192x256xf32>, tensor<256x128xf32>) -> tensor<192x128xf32>
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %start = stablehlo.constant dense<0.0> : tensor<128x192xf32>
        %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<128x192xf32>
          cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
                 stablehlo.return %c : tensor<i1> }
          do { %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<192x128xf32>) -> tensor<128x192xf32>
               %y = stablehlo.add %x, %t : tensor<128x192xf32>
               %j = stablehlo.add %i, %one : tensor<i32>
               stablehlo.return %j, %y : tensor<i32>, tensor<128x192xf32> }
        return %r#1 : tensor<128x192xf32>
      }"""
    fusions = xgpu.compile(text).ir("fusions")
    main = fusions[fusions.index("func.func @main") :]
    assert main.index("dot_general") < main.index("stablehlo.while")


def test_the_gradient_by_weights_takes_no_kernel():
    def loss(w, x):
        return (jnp.tanh(x @ w) ** 2).sum()

    report = xgpu.jit(jax.grad(loss)).explain(np.ones((256, 512), np.float32), np.ones((192, 256), np.float32))
    assert "transpose" not in {kernel.emitter for kernel in report.kernels}


def _main(function, *specs):
    compiled = xgpu.compile(function, *specs)
    text = compiled.ir("fusions")
    return compiled, text[text.index("func.func @main") :]


def _check(compiled, factor=2.0):
    """Compare results for integers, of which sums are exact in any order if they are small; ``factor`` sizes them."""
    inputs = [np.round(factor * array) if array.dtype.kind == "f" else array for array in compiled.random_inputs(1)]
    for got, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        assert 0 < np.abs(expected).max() < 2**24
        np.testing.assert_array_equal(got, expected)


QUERY, KEY = "f32[2,64,2,4,32]", "f32[2,96,2,32]"


def test_scores_of_grouped_queries():
    """The operand that a kernel makes is stored so that the result needs no transpose; the other stays as it is."""
    compiled, main = _main(lambda q, k: jnp.abs(jnp.einsum("bqghd,bkgd->bghqk", jnp.abs(q), k)), QUERY, KEY)
    assert "stablehlo.transpose" not in compiled.ir("fusions").replace(main, "").partition("fusion_1")[2]
    assert "batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [3]" in main
    assert "-> tensor<2x2x4x64x96xf32>" in main
    assert "stablehlo.transpose" not in main
    _check(compiled)


def test_scores_of_given_queries():
    """Operands that are given stay as they are; the operands' order leaves whole rows to read."""
    compiled, main = _main(lambda q, k: jnp.abs(jnp.einsum("bqghd,bkgd->bghqk", q, k)), QUERY, KEY)
    assert "-> tensor<2x2x64x4x96xf32>" in main
    assert "stablehlo.transpose" not in main
    _check(compiled)


def test_a_result_that_is_also_wanted_as_it_is_stays():
    def function(q, k):
        p = lax.dot_general(k, q, (((3,), (4,)), ((0, 2), (0, 2))))
        return jnp.abs(p), jnp.abs(p.transpose(0, 1, 4, 3, 2))

    assert "-> tensor<2x2x96x64x4xf32>" in _main(function, QUERY, KEY)[1]


def test_heads_that_kernels_make_are_stored_first():
    def attention(x, w):
        q, k, v = jnp.moveaxis(jnp.abs(x @ w).reshape(2, 128, 3, 4, 32), 2, 0)
        scores = jnp.abs(jnp.einsum("bqhd,bkhd->bhqk", q, k))
        return jnp.abs(jnp.einsum("bhqk,bkhd->bqhd", scores, v))

    compiled, main = _main(attention, "f32[2,128,128]", "f32[128,384]")
    assert "stablehlo.transpose" not in main
    assert main.count("batching_dims = [0, 1] x [0, 1]") == 2
    assert "-> tensor<2x4x128x32xf32>" in main
    _check(compiled, 0.5)


def test_gradients_share_what_is_stored():
    def attention(x, k, v):
        scores = jnp.tanh(jnp.einsum("bqhd,bkhd->bhqk", jnp.abs(x), k))
        return jnp.einsum("bhqk,bkhd->bqhd", scores, v).sum()

    compiled, main = _main(jax.grad(attention, (0, 1)), *["f32[2,128,4,32]"] * 3)
    assert [len(launch.outputs) for launch in compiled.launches] == [1, 1, 2]
    assert "stablehlo.transpose" not in main


def _emitters_of_parts(compiled):
    """Return the emitters of the parts of kernels, in their order."""
    return re.findall(r'_part_\d+\(.*xgpu\.emitter = "(\w+)"', compiled.ir("fusions"))


def test_transposes_of_what_a_loop_updates_are_left_to_xla():
    def function(x, cache, i):
        cache = lax.dynamic_update_slice(cache, jnp.abs(x), (0, i, 0, 0))
        return jnp.einsum("bqhd,bkhd->bhqk", jnp.abs(x), cache), cache

    compiled, main = _main(function, "f32[2,64,4,32]", "f32[2,256,4,32]", "s32[]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["parts"]
    assert set(_emitters_of_parts(compiled)) == {"update_slice", "loop"}
    assert "batching_dims = [0, 1] x [0, 2]" in main
    _check(compiled)


def test_a_layer_of_a_cache_is_stored_for_the_product_and_updated_in_its_stack():
    def function(x, cache, i):
        def step(x, layer):
            layer = lax.dynamic_update_slice(layer, jnp.abs(x), (0, i, 0, 0))
            scores = jnp.einsum("bqhd,bkhd->bhqk", x, layer)
            return jnp.minimum(x, scores.max()), layer

        return lax.scan(step, x, cache)

    compiled, main = _main(function, "f32[2,64,4,32]", "f32[3,2,256,4,32]", "s32[]")
    assert "-> (tensor<3x2x256x4x32xf32>, tensor<2x4x256x32xf32>)" in main
    assert _emitters_of_parts(compiled) == ["update_slice", "loop"]
    _check(compiled)


def test_halves_are_joined_and_stored_in_another_order():
    def function(x, w, y):
        left, right = jnp.split((x @ w).reshape(2, 64, 4, 128), 2, -1)
        rotated = jnp.concatenate([left * 2 - right, right * 2 + left], -1)
        return jnp.einsum("bqhd,bkhd->bhqk", rotated, y)

    compiled, _ = _main(function, "f32[2,64,128]", "f32[128,512]", "f32[2,96,4,128]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["concatenate"]
    _check(compiled)


def test_a_product_of_a_swapped_product_is_swapped_too():
    def function(x, w):
        return _read_twice(((x @ w).T @ _read_twice(x)).T)

    assert "stablehlo.transpose" not in xgpu.compile(function, "f32[192,128]", "f32[128,256]").ir("fusions")


def test_chains_as_long_as_programs_get() -> None:
    """Nothing here recurses, or walks a chain once for each of its operations."""

    def function(x, y):
        for _ in range(1200):
            x = x.transpose(1, 2, 0)
        for _ in range(1200):
            x = x.transpose(2, 0, 1)
        product = lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))))
        for _ in range(600):
            product = product.reshape(32, 2, 64, 64).reshape(64, 64, 64)
        return _read_twice(product)

    assert len(xgpu.compile(function, "f32[64,64,64]", "f32[64,64,64]").kernels) == 1
