"""Slices of one value in one kernel, under the checks of the host executor, against NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.dtypes import parse_spec


def run(function, spec):
    """Run on the host executor; return the compiled program, its results, and those of JAX's NumPy."""
    compiled = xgpu.compile(function, spec)
    dtype, shape = parse_spec(spec)
    x = np.random.default_rng(0).integers(0, 2 if dtype.kind == "bool" else 8, shape).astype(dtype.numpy)
    return compiled, compiled.run(x, sanitize=True), x


def emitters(compiled):
    return [kernel.emitter for kernel in compiled.kernels]


@pytest.mark.parametrize(
    "spec",
    [
        "f32[33,64]", "bf16[1,1023]", "f16[1025,31]", "f64[31,33]", "s8[37,64]", "u16[3,33]", "s64[5,40]", "u32[2,50]",
        "pred[17,100]", "c64[9,32]", "c128[9,33]", "f8e4m3fn[9,130]", "s4[33,50]", "u2[7,64]",
    ],
)  # fmt: skip
def test_split(spec):
    compiled, results, x = run(lambda x: jnp.split(x, [3, 16, 30], 1), spec)
    assert emitters(compiled) == ["input_slices"]
    for result, expected in zip(results, np.split(x, [3, 16, 30], 1), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_every_rank():
    def function(x):
        return x[:, 1:, :, :, :, :2], x[:, :1, :, :, :, 2:], x[..., 1:]

    compiled, results, x = run(function, "s32[2,3,1,2,1,5,1,2]")
    assert emitters(compiled) == ["input_slices"]
    for result, expected in zip(results, function(x), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("spec", ["f32[1025]", "f32[64]", "bf16[331]", "s8[40]"])
def test_slices_that_share_elements(spec):
    compiled, results, x = run(lambda x: (x[:-1], x[2:], x[1:-2], x[10:20]), spec)
    assert emitters(compiled) == ["input_slices"]
    for result, expected in zip(results, (x[:-1], x[2:], x[1:-2], x[10:20]), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("spec", ["s4[7,9]", "u2[33,65]"])
def test_slices_that_share_elements_of_which_several_are_in_a_byte(spec):
    compiled, results, x = run(lambda x: (x[:, 1:4], x[1:3], x[2:, 5:], x[:, 2:7]), spec)
    assert emitters(compiled) == ["input_slices"]
    for result, expected in zip(results, (x[:, 1:4], x[1:3], x[2:, 5:], x[:, 2:7]), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_slices_that_skip_elements():
    compiled, results, x = run(lambda x: (x[:, ::2], x[1:, 1::2], x[:, :3]), "s32[33,65]")
    assert emitters(compiled) == ["input_slices"]
    for result, expected in zip(results, (x[:, ::2], x[1:, 1::2], x[:, :3]), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_prologue_and_what_follows():
    def function(x):
        y = x * x
        return y[:, :10] + y[:, 10:20], y[:, 20:] * 3, -y[:, 20:], y[:, 5:8] == 4

    compiled, results, x = run(function, "s32[33,65]")
    assert emitters(compiled) == ["input_slices"]
    for result, expected in zip(results, function(x), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_the_value_is_computed_by_one_function():
    def function(x):
        for _ in range(100):
            x = lax.sin(x)
        return jnp.split(x, [3, 16, 30], 1)

    (kernel,) = xgpu.compile(function, "f32[33,64]").kernels
    assert kernel.text("emitted").count("math.sin") == 100


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x[:, :10], x[:, 10:20]),
        lambda x, y: (x[:, :10], y[:, 10:30]),
        lambda x, y: (x[:, :10], x[:, 10:30] + x[:, 20:40][:, ::-1]),
        lambda x, y: (x[:, :10], x[:, 10:30] * y[:, 10:30]),
        lambda x, y: (x[:, :10].T, x[:, 10:30]),
    ],
    ids=["one-shape", "two-values", "reversed", "with-another", "transposed"],
)
def test_others_are_loops(function):
    spec = "s32[33,65]"
    compiled = xgpu.compile(function, spec, spec)
    assert "input_slices" not in emitters(compiled)
    arrays = [np.random.default_rng(i).integers(0, 8, (33, 65)).astype(np.int32) for i in range(2)]
    for result, expected in zip(compiled.run(*arrays), function(*arrays), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_more_slices_than_one_kernel_stores():
    sizes = list(range(1, 40))
    compiled, results, x = run(lambda x: jnp.split(x, np.cumsum(sizes)), "f32[1000]")
    assert emitters(compiled) == ["input_slices"] * 3
    for result, expected in zip(results, np.split(x, np.cumsum(sizes)), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_slices_of_what_an_earlier_kernel_stores():
    def function(x):
        total = jnp.cumsum(x, 0)
        return total, total[:3], total[3:]

    spec = "s32[33,65]"
    compiled = xgpu.compile(function, spec)
    (x,) = [np.random.default_rng(0).integers(0, 8, (33, 65)).astype(np.int32)]
    total = np.cumsum(x, 0)
    for result, expected in zip(compiled.run(x), (total, total[:3], total[3:]), strict=True):
        np.testing.assert_array_equal(result, expected)
