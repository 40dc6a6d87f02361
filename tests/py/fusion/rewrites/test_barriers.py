"""Optimisation barriers stay where XLA reads them, so that what is to be computed again is not kept instead."""

import jax
import jax.numpy as jnp
import numpy as np

import xgpu


@jax.checkpoint
def _layer(x, w):
    return jnp.tanh(jnp.sin(x @ w) * 2)


def _loss(ws, x):
    for w in ws:
        x = _layer(x, w)
    return (x**2).sum()


def test_checkpointed_layers_are_computed_again():
    x, ws = np.ones((64, 256), np.float32), [np.full((256, 256), 0.01, np.float32)] * 3
    step = xgpu.jit(jax.grad(_loss))
    left = [each.operation for each in step.explain(ws, x).fallbacks]
    # Of each layer the product, and its two gradients but for the first one's by x; again of each the product, though
    # the last one's result is still there when its gradient is computed.
    assert left.count("stablehlo.optimization_barrier") == 3
    assert left.count("stablehlo.dot_general") == 3 + 3 + 2 + 3
    for got, expected in zip(step(ws, x), jax.jit(jax.grad(_loss))(ws, x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


def test_barriers_in_loops():
    def function(x):
        return jax.lax.fori_loop(0, 3, lambda i, x: jnp.sort(jax.lax.optimization_barrier(jnp.sin(x) + i)), x)

    report = xgpu.jit(function).explain(np.ones(64, np.float32))
    assert "stablehlo.optimization_barrier" in {each.operation for each in report.fallbacks}
    x = np.linspace(0, 1, 64, dtype=np.float32)
    np.testing.assert_allclose(xgpu.jit(function)(x), jax.jit(function)(x), rtol=1e-6)


def test_barriers_between_scalars_are_gone():
    text = """
      func.func @main(%x: tensor<64x8xf32>) -> tensor<64xf32> {
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %zero) across dimensions = [1]
          : (tensor<64x8xf32>, tensor<f32>) -> tensor<64xf32>
          reducer(%a: tensor<f32>, %b: tensor<f32>)  {
            %1 = stablehlo.optimization_barrier %a : tensor<f32>
            %2 = stablehlo.add %1, %b : tensor<f32>
            stablehlo.return %2 : tensor<f32>
          }
        return %0 : tensor<64xf32>
      }"""
    compiled = xgpu.compile(text)
    assert compiled.main is None
    assert len(compiled.kernels) == 1
    x = np.ones((64, 8), np.float32)
    np.testing.assert_array_equal(compiled.run(x)[0], np.full(64, 8, np.float32))


def test_a_program_of_kernels_alone_stays_one():
    compiled = xgpu.compile(lambda x, y: sum(jax.lax.optimization_barrier((x * 2, y))), "f32[64]", "f32[64]")
    assert compiled.main is None
    assert len(compiled.kernels) == 1
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


def test_barriers_part_kernels_where_that_is_wanted():
    def function(x, y):
        z, y = jax.lax.optimization_barrier((x * 2, y))
        return z + y, z.sum(1)

    compiled = xgpu.compile(function, "f32[64,32]", "f32[64,32]", options=xgpu.Options(keep_barriers=True))
    assert compiled.main is None
    first, second = compiled.launches
    assert first.outputs[0] in second.inputs
    assert 1 in second.inputs
    inputs = compiled.random_inputs(1)
    for got, expected in zip(compiled.run(*inputs, sanitize=True), compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-5)


def test_a_barrier_around_what_is_updated_in_place():
    def function(x, i):
        kept = jax.lax.optimization_barrier(x * 2)
        return jax.lax.dynamic_update_slice(kept, kept[:4] + 1, (i,)), kept

    compiled = xgpu.compile(function, "f32[64]", "s32[]", options=xgpu.Options(keep_barriers=True))
    x = np.arange(64, dtype=np.float32)
    got = compiled.run(x, np.int32(3))
    for result, expected in zip(got, compiled.reference(x, np.int32(3)), strict=True):
        np.testing.assert_array_equal(result, expected)
