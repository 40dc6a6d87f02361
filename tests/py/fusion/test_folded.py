"""What XLA folds into a convolution is left to it, where the array behind is in memory."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xgpu

LAYOUT = ("NHWC", "HWIO", "NHWC")


def _loss(x, w):
    padded = jnp.pad(jnp.maximum(x, 0), ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = lax.conv_general_dilated(padded, w, (2, 2), "VALID", dimension_numbers=LAYOUT)
    return (jnp.tanh(y) ** 2).sum()


def test_padding_and_reversed_kernels():
    random = np.random.default_rng(1)
    x = random.standard_normal((4, 16, 16, 32), np.float32)
    w = random.standard_normal((3, 3, 32, 64), np.float32)
    gradient = jax.grad(_loss, (0, 1))
    report = xgpu.jit(gradient).explain(x, w)
    # What is stored: the maximum, the gradient of the tangent, and that of the maximum.
    assert [kernel.operation for kernel in report.kernels] == ["maximum", "multiply", "multiply"]
    for got, expected in zip(xgpu.jit(gradient)(x, w), jax.jit(gradient)(x, w), strict=True):
        # Sums of up to 1600 products of numbers of the size of 1.
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4)


def test_other_reverses_are_kernels():
    report = xgpu.jit(lambda x: jnp.sort(x[::-1])).explain(np.ones(100, np.float32))
    assert [kernel.operation for kernel in report.kernels] == ["reverse"]


def test_scalars_for_xla_take_no_kernel():
    looped = xgpu.compile(lambda x, s: lax.fori_loop(0, s * 2 + 1, lambda i, x: jnp.sort(x), x), "f32[100]", "s32[]")
    assert not looped.kernels
    inputs = looped.random_inputs(1)
    inputs[1] = np.int32(2)
    np.testing.assert_array_equal(looped.run(*inputs)[0], np.sort(inputs[0]))
