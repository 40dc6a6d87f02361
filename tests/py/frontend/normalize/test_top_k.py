"""The largest elements of rows: one operation that XLA makes, of all types that it takes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s8", "u32"])
def test_top_k_is_left_to_xla(dtype):
    compiled = xgpu.compile(lambda x: jax.lax.top_k(x + x, 3), f"{dtype}[4,100]")
    assert compiled.ir("stablehlo").count("chlo.top_k") == 1
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["f8e4m3fn", "s4"])
def test_what_xla_cannot_rank_is_sorted(dtype):
    compiled = xgpu.compile(lambda x: jax.lax.top_k(x + x, 3), f"{dtype}[4,100]")
    assert "chlo.top_k" not in compiled.ir("stablehlo")
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_a_custom_call_of_that_name_stays_one():
    text = """func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.custom_call @chlo.top_k(%x) : (tensor<8xf32>) -> tensor<8xf32>
      %1 = stablehlo.add %0, %0 : tensor<8xf32>
      return %1 : tensor<8xf32>
    }"""
    assert "stablehlo.custom_call @chlo.top_k" in xgpu.compile(text).ir("stablehlo")


def test_ties_and_nan_are_ranked_as_jax_does():
    x = jnp.array([[1.0, jnp.nan, 3.0, -0.0, 0.0, 3.0, -jnp.inf, jnp.nan]])

    def function(x):
        return jax.lax.top_k(x * 1, 8)

    for result, expected in zip(xgpu.jit(function)(x), jax.jit(function)(x), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_approximately_largest_elements_are_sorted_as_xla_does_where_it_knows_no_others():
    def function(x):
        least = jax.vmap(lambda rows: jax.lax.approx_min_k(rows, 1, 0))(x)
        return jax.lax.approx_max_k(x * 2, 3, 1), jax.lax.approx_max_k(x[0, 0].astype("bfloat16"), 2), least

    x = jax.random.normal(jax.random.key(0), (3, 40, 5))
    expected = jax.tree.leaves(jax.jit(function)(x))
    for result, each in zip(xgpu.compile(function, x).run(x), expected, strict=True):
        np.testing.assert_array_equal(result, each)


def test_calls_that_take_functions_are_refused():
    with pytest.raises(xgpu.Unsupported, match=r"custom calls that take functions.*not supported"):
        xgpu.compile(lambda x: jax.lax.approx_max_k(x, 3, aggregate_to_topk=False), "f32[4,200]")
