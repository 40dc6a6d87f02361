"""Transposes of products are products in the other order, wherever the transpose does nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

X, W = "f32[192,128]", "f32[128,256]"


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
    compiled = xgpu.compile(lambda x, w: jnp.sin(product(x, w).transpose(permutation)), x, w)
    assert "stablehlo.transpose" not in compiled.ir("fusions")
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    inputs = compiled.random_inputs(1)
    # Both are XLA's products, of 128 terms each, perhaps in another order.
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], atol=1e-4)


def test_a_product_of_a_swapped_product_is_swapped_too():
    def function(x, w):
        return jnp.sin(((x @ w).T @ jnp.sin(x)).T)

    assert "stablehlo.transpose" not in xgpu.compile(function, X, W).ir("fusions")


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: jnp.sin(_dot((2,), (0,))(x, w).transpose(1, 0, 2)),
        lambda x, w: jnp.sin(_dot((2,), (0,))(x, w).transpose(2, 1, 0)),
        lambda x, w: (jnp.sin(_dot((2,), (0,))(x, w).transpose(2, 0, 1)), _dot((2,), (0,))(x, w) + 1),
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
