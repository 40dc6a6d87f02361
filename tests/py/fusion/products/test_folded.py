"""Operations that XLA folds into a convolution or a matrix product fall back to it, if they read an array in memory."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
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


def test_conversions_of_what_is_in_memory():
    """A convolution's weights are converted where cuDNN needs them in another layout; what a kernel makes is not."""

    def function(x, w):
        made, given = (jnp.maximum(x, 0).astype(jnp.bfloat16), w.astype(jnp.bfloat16))
        return lax.conv_general_dilated(made, given, (1, 1), "VALID", dimension_numbers=LAYOUT)

    random = np.random.default_rng(1)
    x, w = random.integers(-2, 3, (4, 16, 16, 32)), random.integers(-2, 3, (3, 3, 32, 64))
    arrays = [np.float32(each) for each in (x, w)]
    report = xgpu.jit(function).explain(*arrays)
    assert [kernel.operation for kernel in report.kernels] == ["convert"]
    np.testing.assert_array_equal(xgpu.jit(function)(*arrays), jax.jit(function)(*arrays))


@pytest.mark.parametrize("weights", ["s8", "f8e4m3fn", "bf16"])
@pytest.mark.parametrize("products", ["auto", "library"])
def test_widened_weights_are_converted_by_xla_as_it_multiplies(weights: str, products: Any) -> None:
    """Also where they are transposed, and where two products read the same. Narrower ones XLA would convert apart."""
    wide = jnp.float32 if weights == "bf16" else jnp.bfloat16

    def function(x: Any, w: Any, scale: Any) -> Any:
        y = jnp.tanh(x @ w.astype(wide)) * scale
        return y @ w.astype(wide).T

    name = "f32" if wide == jnp.float32 else "bf16"
    specs = f"{name}[64,512]", f"{weights}[512,1024]", f"{name}[1024]"
    program = xgpu.compile(function, *specs, options=xgpu.Options(products=products))
    kernels, _, main = program.ir("fusions").partition("func.func @main")
    assert "stablehlo.convert" not in kernels
    assert "stablehlo.convert" in main
    arrays = program.random_inputs(1)
    (found,), (expected,) = (
        np.asarray(each, np.float32) for each in (program.run(*arrays), program.reference(*arrays))
    )
    # Both sum 1,024 products in orders of their own, of bf16 unless the weights are.
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=np.abs(expected).max() * (1e-5 if weights == "bf16" else 0.02)
    )


def test_weights_that_a_kernel_makes_are_converted_by_it() -> None:
    def function(x: Any, w: Any) -> Any:
        return x @ jnp.maximum(w, 0).astype(jnp.bfloat16)

    program = xgpu.compile(function, "bf16[64,512]", "s8[512,1024]", options=xgpu.Options(products="library"))
    assert "stablehlo.convert" not in program.ir("fusions").partition("func.func @main")[2]


@pytest.mark.parametrize(("scalings", "are_of_xla"), [(4, True), (40, False)])
def test_few_scalings_of_widened_weights_are_of_xla(scalings: int, are_of_xla: bool) -> None:
    """As many as are looked at: the rest of a long function is not what XLA computes in the tiles of a product."""

    def function(x: Any, w: Any) -> Any:
        wide = w.astype(jnp.bfloat16)
        for _ in range(scalings):
            wide = wide * 0.5
        return x @ wide

    program = xgpu.compile(function, "bf16[64,512]", "s8[512,1024]", options=xgpu.Options(products="library"))
    assert ("stablehlo.convert" in program.ir("fusions").partition("func.func @main")[2]) == are_of_xla


def test_other_reverses_are_kernels():
    report = xgpu.jit(lambda x: jnp.sort(x[::-1])).explain(np.ones(100, np.float32))
    assert [kernel.operation for kernel in report.kernels] == ["reverse"]


def test_scalars_for_xla_take_no_kernel():
    looped = xgpu.compile(lambda x, s: lax.fori_loop(0, s * 2 + 1, lambda i, x: jnp.sort(x), x), "f32[100]", "s32[]")
    assert not looped.kernels
    inputs = looped.random_inputs(1)
    inputs[1] = np.int32(2)
    np.testing.assert_array_equal(looped.run(*inputs)[0], np.sort(inputs[0]))


def _left_to_xla(function: Any, *specs: str) -> bool:
    """Return whether XLA slices, and check the results, of sums of integers, if so."""
    compiled = xgpu.compile(function, *specs)
    text = compiled.ir("fusions")
    inputs = [np.int32(2) if array.ndim == 0 else np.round(array) for array in compiled.random_inputs(1)]
    for got, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(got, expected)
    return "slice" in text[text.index("func.func @main") :]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, i: jnp.maximum(x, 0) @ lax.dynamic_index_in_dim(w, i, keepdims=False),
        lambda x, w, i: jnp.maximum(x, 0) @ lax.dynamic_slice_in_dim(w.reshape(384, 128), i, 128),
        lambda x, w, i: jnp.maximum(x, 0) @ w[1].T,
        # A kernel that reads the slice too reads the array behind.
        lambda x, w, i: jnp.maximum(x, 0) @ w[2] + w[2, 0] * 2,
    ],
    ids=["one layer", "rows", "static", "read by a kernel"],
)
def test_addresses_in_memory(function: Any) -> None:
    assert _left_to_xla(function, "f32[128,128]", "f32[3,128,128]", "s32[]")


@pytest.mark.parametrize(
    "function",
    [
        # Columns, every other row, what does not begin where arrays may, and part of what a kernel computes.
        lambda x, w, i: jnp.maximum(x, 0) @ lax.dynamic_slice_in_dim(w[0], i, 100, axis=1),
        lambda x, w, i: jnp.maximum(x, 0)[:64] @ w.reshape(-1, 128)[:256:2][:128],
        lambda x, w, i: lax.dynamic_slice_in_dim(w.reshape(-1, 12), i, 4000) @ jnp.maximum(x[:12], 0),
        lambda x, w, i: jnp.maximum(x, 0) @ jnp.sin(w)[1],
    ],
    ids=["columns", "strided", "not aligned", "computed"],
)
def test_other_slices_are_kernels(function: Any) -> None:
    compiled = xgpu.compile(function, "f32[128,128]", "f32[3,128,128]", "s32[]")
    text = compiled.ir("fusions")
    assert "slice" not in text[text.index("func.func @main") :]


def test_layers_in_a_loop_are_not_copied() -> None:
    compiled = xgpu.compile(
        lambda x, w: lax.scan(lambda x, w: (jax.nn.silu(x @ w), None), x, w)[0], "f32[64,256]", "f32[3,256,256]"
    )
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    assert "slice" not in compiled.ir("fusions").partition("func.func @main")[0]


def test_a_kernel_that_multiplies_reads_the_layer_in_place() -> None:
    compiled = xgpu.compile(lambda x, w, i: x @ w[i], "f32[8,16]", "f32[3,16,16]", "s32[]")
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
