"""Epilogues that libraries fuse into products fall back to XLA unless a kernel reads the product; others stay."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from xgpu.interface.explanation import explain
from xgpu.runtime.compare import compare

LIBRARY = xgpu.Options(products="library")
PRODUCT = ("{0}[256,512]", "{0}[512,384]")
BIAS, ARRAY = "{0}[384]", "{0}[256,384]"
BATCHED = ("{0}[4,64,256]", "{0}[4,256,64]")
CONVOLUTION = ("{0}[4,16,16,32]", "{0}[3,3,32,32]")
IMAGES = CONVOLUTION[0]


def convolve(x: Any, k: Any, groups: int = 1) -> Any:
    layouts = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=layouts, feature_group_count=groups)


LEFT = {
    "scaled": (lambda x, w: 0.125 * (x @ w), PRODUCT),
    "bias": (lambda x, w, b: x @ w + b, (*PRODUCT, BIAS)),
    "bias and relu": (lambda x, w, b: jax.nn.relu(x @ w + b), (*PRODUCT, BIAS)),
    "relu": (lambda x, w: jnp.maximum(0, x @ w), PRODUCT),
    "array": (lambda x, w, y: y + x @ w, (*PRODUCT, ARRAY)),
    "scaled, array, bias, relu": (lambda x, w, b, y: jax.nn.relu(2 * (x @ w) + y + b), (*PRODUCT, BIAS, ARRAY)),
    "of a reshaped product": (
        lambda x, w, b: (x @ w).reshape(4, 64, 384) + b,
        (*PRODUCT, BIAS),
    ),
    "of three dimensions": (
        lambda x, w, b: jnp.einsum("bsi,io->bso", x.reshape(4, 64, 512), w) + b,
        (*PRODUCT, BIAS),
    ),
    "array of a batch": (lambda x, y, z: x @ y + z, (*BATCHED, "{0}[4,64,64]")),
    "of a convolution": (
        lambda x, k, b, y: jax.nn.relu(0.5 * convolve(x, k) + b + y),
        (*CONVOLUTION, "{0}[32]", IMAGES),
    ),
    "read by another product": (lambda x, w, b, v: (x @ w + b) @ v, (*PRODUCT, BIAS, "{0}[384,512]")),
    "read by a product of it reshaped": (
        lambda x, w, b, v: (x @ w + b).reshape(512, 192) @ v,
        (*PRODUCT, BIAS, "{0}[192,512]"),
    ),
}
CHAINS = {
    "no number below zero": (lambda x, w: jnp.maximum((x @ w).astype(jnp.int32), 0), PRODUCT),
    "whether it is positive": (lambda x, w: jnp.maximum(x @ w > 0, False), PRODUCT),
    "bias along one of two dimensions of columns": (
        lambda x, w, b: jnp.einsum("bi,ihd->bhd", x, w) + b,
        ("{0}[256,512]", "{0}[512,24,16]", "{0}[16]"),
    ),
    "bias along a part of the columns": (lambda x, w, b: (x @ w).reshape(256, 24, 16) + b, (*PRODUCT, "{0}[16]")),
    "maximum with another number": (lambda x, w, b: jnp.maximum(x @ w + b, 1), (*PRODUCT, BIAS)),
    "bias of a batch": (lambda x, y, b: jnp.sin(x @ y + b), (*BATCHED, "{0}[64]")),
    "a function of a sum": (lambda x, w, b: jnp.sin(x @ w + b), (*PRODUCT, BIAS)),
    "scaled late": (lambda x, w, b: 2 * (x @ w + b), (*PRODUCT, BIAS)),
    "times an array": (lambda x, w, y: (x @ w) * y, (*PRODUCT, ARRAY)),
    "less a row": (lambda x, w, b: x @ w - b, (*PRODUCT, BIAS)),
    "converted": (lambda x, w: (x @ w).astype(jnp.float64), PRODUCT),
    "a function": (lambda x, w: jnp.tanh(x @ w), PRODUCT),
    "plus a number": (lambda x, w: x @ w + 1, PRODUCT),
    "plus a column": (lambda x, w, b: (w.T @ x.T) + b[:, None], (*PRODUCT, BIAS)),
}
KEPT = {
    "gelu": (lambda x, w, b: jax.nn.gelu(x @ w + b), (*PRODUCT, BIAS)),
    "product read twice": (lambda x, w, b: (jnp.sin(p := x @ w), p + b), (*PRODUCT, BIAS)),
    "plus what a kernel computes": (lambda x, w, y: x @ w + jnp.sin(y), (*PRODUCT, ARRAY)),
    "two biases": (lambda x, w, b: x @ w + b - b[::-1], (*PRODUCT, BIAS)),
    "summed": (lambda x, w, b: jnp.sum(x @ w + b, 1), (*PRODUCT, BIAS)),
    "array that kernels compute again": (
        lambda x, w, y: (lambda z: (x @ w + z, jax.nn.softmax(z)))(2 * y),
        (*PRODUCT, ARRAY),
    ),
}

LIBRARIES_HAVE_NONE = {
    "of 8-bit integers": (
        lambda x, w, b: lax.dot(x, w, preferred_element_type=jnp.float32) + b,
        ("s8[256,512]", "s8[512,384]", "f32[384]"),
    ),
    "of 8-bit floats": (
        lambda x, w, b: lax.dot(x, w, preferred_element_type=jnp.float32) + b,
        ("f8e4m3fn[256,512]", "f8e4m3fn[512,384]", "f32[384]"),
    ),
    "gradient by the images": (
        lambda x, k, y: jax.vjp(lambda x: convolve(x, k), x)[1](y)[0] + x,
        (*CONVOLUTION, IMAGES),
    ),
    "gradient by the kernel": (
        lambda x, k, y: jax.vjp(lambda k: convolve(x, k), k)[1](y)[0] + k,
        (*CONVOLUTION, IMAGES),
    ),
    "transposed convolution": (
        lambda x, k, y: lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + y,
        (*CONVOLUTION, "f32[4,32,32,32]"),
    ),
    "depthwise convolution": (
        lambda x, k, y: convolve(x, k, 64) + y,
        ("f32[4,32,32,64]", "f32[3,3,1,64]", "f32[4,32,32,64]"),
    ),
}


def compiled(function: Any, specs: tuple[str, ...], element: str) -> xgpu.Compiled:
    with jax.enable_x64(True):
        return xgpu.compile(function, *(spec.format(element) for spec in specs), options=LIBRARY)


def check(program: xgpu.Compiled) -> None:
    inputs = program.random_inputs(0)
    for found, wanted in zip(program.run(*inputs), program.reference(*inputs), strict=True):
        assert compare(found, wanted).agrees


@pytest.mark.parametrize("element", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("case", LEFT)
def test_epilogues_of_libraries_are_left(case: str, element: str) -> None:
    program = compiled(*LEFT[case], element)
    assert not program.kernels
    reasons = {
        each.reason for each in explain(program).fallbacks if each.operation in ("stablehlo.add", "stablehlo.maximum")
    }
    kind = "convolution" if "convolution" in case else "matrix product"
    assert reasons <= {f"XLA computes it as part of the {kind}"}
    check(program)


@pytest.mark.parametrize("case", LEFT)
def test_other_types_have_no_epilogues(case: str) -> None:
    program = compiled(*LEFT[case], "f64")
    assert program.kernels
    check(program)


@pytest.mark.parametrize("element", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("case", CHAINS)
def test_chains_of_elementwise_operations_are_left(case: str, element: str) -> None:
    program = compiled(*CHAINS[case], element)
    assert not program.kernels
    check(program)


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("case", KEPT)
def test_what_a_kernel_reads_anyway_is_kept(case: str, element: str) -> None:
    program = compiled(*KEPT[case], element)
    assert len(program.kernels) == 1
    assert "xgpu.fallback" not in program.ir("fusions")
    check(program)


@pytest.mark.parametrize("case", LIBRARIES_HAVE_NONE)
def test_what_no_library_has_is_kept(case: str) -> None:
    program = compiled(*LIBRARIES_HAVE_NONE[case], "f32")
    assert len(program.kernels) == 1
    assert "xgpu.fallback" not in program.ir("fusions")
    check(program)


def test_a_grouped_convolution_has_an_epilogue() -> None:
    program = compiled(lambda x, k, y: convolve(x, k, 2) + y, (IMAGES, "{0}[3,3,16,32]", IMAGES), "f32")
    assert not program.kernels
    check(program)


def test_an_array_that_several_epilogues_add_is_stored_for_them() -> None:
    def function(x: Any, w: Any, y: Any) -> Any:
        z = jnp.exp(y)
        return jnp.sin(x @ w + z) @ w + z

    program = compiled(function, ("f32[256,512]", "f32[512,512]", "f32[256,512]"), "f32")
    assert program.ir("fusions").count("xgpu.fallback") == 3
    assert len(program.kernels) == 1
    check(program)


def test_a_residual_stream_is_left_where_it_is_added_to_again() -> None:
    def layer(x: Any, w: Any, v: Any) -> Any:
        return x + jnp.sin((x @ w) / 4096) @ v

    program = compiled(
        lambda x, w, v: jnp.sum(layer(layer(x, w, v), w, v) ** 2, 1),
        ("{0}[256,512]", "{0}[512,512]", "{0}[512,512]"),
        "f32",
    )
    # Of each layer a quotient and a sine, and the first one's sum: only the kernel of the norm reads the second's.
    assert [kernel.emitter for kernel in program.kernels] == ["reduce_row"]
    assert program.ir("fusions").count("xgpu.fallback") == 5
    check(program)


def test_xla_does_not_see_the_reasons() -> None:
    function, specs = LEFT["bias"]
    shapes = [jnp.ones([int(n) for n in spec[4:-1].split(",")], jnp.float32) for spec in specs]
    text = jax.jit(xgpu.jit(lambda x, w, b: (function(x, w, b), jnp.sin(b)))).lower(*shapes).as_text()
    assert "stablehlo.dot_general" in text
    assert "xgpu.fallback" not in text


def test_an_attribute_of_that_name_that_is_no_reason_is_refused() -> None:
    text = """
        func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
          %y = stablehlo.sine %x {xgpu.fallback = 5 : i32} : tensor<8xf32>
          return %y : tensor<8xf32>
        }"""
    with pytest.raises(xgpu.InvalidInput, match=r"xgpu\.fallback': expected a string"):
        xgpu.compile(text)


@pytest.mark.parametrize(
    "reader",
    [
        "stablehlo.custom_call @anything(%2) : (tensor<256x384xbf16>) -> tensor<256x384xbf16>",
        '"stablehlo.all_reduce"(%2) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n'
        "^bb0(%a: tensor<bf16>, %b: tensor<bf16>):\n%s = stablehlo.add %a, %b : tensor<bf16>\n"
        "stablehlo.return %s : tensor<bf16>\n}) : (tensor<256x384xbf16>) -> tensor<256x384xbf16>",
    ],
    ids=["custom call", "sum over devices"],
)
def test_what_no_kernel_can_make_may_read_a_product(reader: str) -> None:
    text = f"""
    func.func @main(%x: tensor<256x512xbf16>, %w: tensor<512x384xbf16>) -> tensor<256x384xbf16> {{
      %1 = stablehlo.sine %x : tensor<256x512xbf16>
      %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
        : (tensor<256x512xbf16>, tensor<512x384xbf16>) -> tensor<256x384xbf16>
      %3 = {reader}
      return %3 : tensor<256x384xbf16>
    }}
    """
    assert len(xgpu.compile(text, options=LIBRARY).kernels) == 1
