"""Wide windows that are close together: their results share what they have in common."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

CASES = {
    "sum": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 200), (1, 1), "SAME"), "f32[128,16384]"),
    "maximum": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 200), (1, 1), "VALID"), "f32[128,16384]"),
    "minimum of a power of two": (lambda x: lax.reduce_window(x, 9, lax.min, (256,), (1,), "SAME"), "s32[1000000]"),
    "product of two dimensions": (
        lambda x: lax.reduce_window(x, 1, lax.mul, (23, 32), (1, 1), ((3, 5), (0, 7))),
        "s32[300,700]",
    ),
    "strided": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 300), (1, 2), "VALID"), "f32[128,16384]"),
    "dilated": (
        lambda x: lax.reduce_window(x, 0, lax.add, (1, 100), (1, 1), "VALID", window_dilation=(1, 3)),
        "s32[128,16384]",
    ),
    "another start": (lambda x: lax.reduce_window(x, 5, lax.add, (1, 200), (1, 1), "VALID"), "s32[128,16384]"),
}


@pytest.mark.parametrize(("function", "spec"), CASES.values(), ids=CASES)
def test_wide_windows_share_their_work(function, spec):
    compiled = xgpu.compile(function, spec)
    assert "reduce_window" not in compiled.ir("fusions")
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        if np.issubdtype(result.dtype, np.integer):
            np.testing.assert_array_equal(result, expected)
        else:
            # Sums of up to 300 numbers of up to 1 in another order.
            np.testing.assert_allclose(result, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_sums_of_16_bit_floats_are_rounded_once(dtype):
    x = np.random.default_rng(1).uniform(-1, 1, (128, 16384)).astype(dtype)

    def function(x):
        return lax.reduce_window(x, dtype(0), lax.add, (1, 200), (1, 1), "VALID")

    (result,) = xgpu.compile(function, x).run(x)
    sums = np.cumsum(x.astype(np.float64), 1)
    exact = sums[:, 199:] - np.pad(sums, ((0, 0), (1, 0)))[:, :16185]
    # Half a unit in the last place, and the error of a sum of 200 numbers in f32.
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=jnp.finfo(dtype).eps / 2, atol=2e-5)


@pytest.mark.parametrize(
    ("function", "spec"),
    [
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME"), "f32[2048,2048]"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 256), (1, 256), "SAME"), "f32[2048,2048]"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (200,), (1,), "SAME"), "f32[4096]"),
    ],
    ids=["narrow", "apart", "few"],
)
def test_other_windows_are_one_loop(function, spec):
    assert "reduce_window" in xgpu.compile(function, spec).ir("fusions")


def test_a_maximum_of_wide_windows_keeps_nan():
    x = np.zeros((128, 16384), np.float32)
    x[3, 5000] = np.nan
    (result,) = xgpu.compile(CASES["maximum"][0], "f32[128,16384]").run(x)
    assert np.isnan(result).sum() == 200
