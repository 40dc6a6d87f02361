"""What is computed for rows, to which images are reshaped, is computed along the dimensions of the images."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from xgpu.runtime.compare import compare


def _convolved(x: Any, weights: Any) -> Any:
    """A convolution of images whose channels come second, which libraries have come last."""
    numbers = ("NCHW", "OIHW", "NCHW")
    return lax.conv_general_dilated(x, weights, (1, 1), "SAME", dimension_numbers=numbers)


def _group_norm(x: Any, groups: int) -> Any:
    rows = x.reshape(x.shape[0], groups, -1)
    rows = (rows - rows.mean(-1, keepdims=True)) * lax.rsqrt(rows.var(-1, keepdims=True) + 1e-5)
    return rows.reshape(x.shape)


def _flat_softmax(x: Any, _: int) -> Any:
    """Weights of the pixels of each channel."""
    return jax.nn.softmax(x.reshape(*x.shape[:2], -1), axis=-1).reshape(x.shape)


def _flat_pixels(x: Any, _: int) -> Any:
    """A norm of the channels of each pixel, of which images are written as lists."""
    rows = x.transpose(0, 2, 3, 1).reshape(-1, x.shape[1])
    return (rows / (1 + jnp.abs(rows).sum(-1, keepdims=True))).reshape(x.shape[0], *x.shape[2:], -1)


def _largest(x: Any, _: int) -> Any:
    """Where the largest pixel is: its position counts."""
    return jnp.argmax(x.reshape(*x.shape[:2], -1), axis=-1)


def _similarities(x: Any, _: int) -> Any:
    """Products of channels, whose pixels are summed as they lie."""
    rows = jnp.tanh(x.reshape(*x.shape[:2], -1))
    return jnp.einsum("ncp,ndp->ncd", rows, rows)


FUNCTIONS = [_group_norm, _flat_softmax, _flat_pixels, _largest, _similarities]


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results(function: Any, groups: int) -> None:
    def program(x: Any, weights: Any) -> Any:
        return function(_convolved(x, weights), groups)

    # From 256 KiB on transposes count.
    compiled = xgpu.compile(program, "f32[2,3,64,64]", "f32[8,3,3,3]")
    inputs = compiled.random_inputs()
    for pair in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        assert compare(*pair).agrees


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_norms_between_convolutions_are_not_transposed(dtype: str) -> None:
    def program(x: Any, first: Any, second: Any) -> Any:
        return _convolved(jax.nn.relu(_group_norm(_convolved(x, first), 32)), second)

    weights = f"{dtype}[128,128,3,3]"
    compiled = xgpu.compile(program, f"{dtype}[4,128,64,64]", weights, weights, target="sm_90a")
    assert compiled.ir("prepared").count("stablehlo.transpose") == 2
    assert "transpose" not in [kernel.emitter for kernel in compiled.kernels[:-1]]


def test_the_last_norm_is_transposed_by_tiles() -> None:
    def program(x: Any, weights: Any) -> Any:
        return jax.nn.relu(_group_norm(_convolved(x, weights), 32))

    compiled = xgpu.compile(program, "f32[16,128,56,56]", "f32[128,128,3,3]", target="sm_90a")
    assert compiled.kernels[-1].emitter == "transpose"
