"""Convolutions read and write images as libraries have them, and what lies between them is computed that way."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax, nn

import xgpu

_TRANSPOSE = "stablehlo.transpose"


def _convolved(x: Any, w: Any, layout: tuple[str, str, str], **more: Any) -> Any:
    options = {"window_strides": (1,) * (x.ndim - 2), "padding": "SAME", **more}
    return lax.conv_general_dilated(x, w, dimension_numbers=layout, **options)


def _normalised(x: Any, axes: tuple[int, ...]) -> Any:
    mean = x.mean(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(axes, keepdims=True) + 1e-5)


def _block(x: Any, w: Any) -> Any:
    """Return what a residual network computes, on images with their channels before the space."""
    layout = "NCHW", "OIHW", "NCHW"
    y = nn.relu(_normalised(_convolved(x, w, layout), (0, 2, 3)))
    x = nn.relu(x + _normalised(_convolved(y, w, layout), (0, 2, 3)))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return _convolved(x, w, layout).mean((2, 3))


def _layouts(text: str) -> list[str]:
    return [line.split("dim_numbers = ")[1].split(", window")[0] for line in text.splitlines() if "dim_numbers" in line]


def test_images_are_transposed_where_they_come_in() -> None:
    program = xgpu.compile(_block, "f32[8,64,32,32]", "f32[64,64,3,3]", target="sm_90a")
    assert _layouts(program.ir("prepared")) == ["[b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f]"] * 3
    assert program.ir("prepared").count(f"{_TRANSPOSE} %arg0") == 1
    assert "transpose" not in {kernel.emitter for kernel in program.kernels}


def test_older_gpus_have_channels_before_the_space() -> None:
    text = xgpu.compile(_block, "f32[8,64,32,32]", "f32[64,64,3,3]", target="sm_80").ir("prepared")
    assert _layouts(text) == ["[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"] * 3
    assert _TRANSPOSE not in text


FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[str, str, str], dict[str, Any]]] = {
    "channels first": ((2, 32, 14, 15), (40, 32, 3, 3), ("NCHW", "OIHW", "NCHW"), {}),
    "channels last": ((2, 14, 15, 32), (3, 3, 32, 40), ("NHWC", "HWIO", "NHWC"), {}),
    "batch last": ((32, 14, 15, 2), (32, 3, 5, 40), ("CHWN", "IHWO", "CHWN"), {}),
    "turned": ((2, 15, 32, 14), (40, 3, 3, 32), ("NWCH", "OWHI", "HWNC"), {}),
    "one dimension": ((4, 32, 60), (40, 32, 5), ("NCH", "OIH", "NCH"), {}),
    "three dimensions": ((2, 6, 7, 8, 32), (3, 3, 3, 32, 33), ("NDHWC", "DHWIO", "NDHWC"), {}),
    "stride": ((2, 32, 14, 15), (40, 32, 3, 3), ("NCHW", "OIHW", "NCHW"), {"window_strides": (2, 3)}),
    "groups": ((2, 64, 14, 15), (40, 32, 3, 3), ("NCHW", "OIHW", "NCHW"), {"feature_group_count": 2}),
    "dilated": (
        (2, 32, 14, 15),
        (40, 32, 3, 3),
        ("NCHW", "OIHW", "NCHW"),
        {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2), "padding": ((1, 2), (2, 0))},
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_values_and_gradients_are_those_of_jax(form: Any) -> None:
    images, kernel, layout, more = form
    random = np.random.default_rng(0)
    x, w = (jnp.asarray(random.standard_normal(shape, np.float32)) for shape in (images, kernel))

    def loss(x: Any, w: Any) -> Any:
        y = jnp.tanh(_convolved(jnp.sin(x), w, layout, **more))
        return (y * jnp.cos(y)).sum(), y

    function = jax.value_and_grad(loss, (0, 1), has_aux=True)
    for found, expected in zip(
        jax.tree.leaves(xgpu.jit(function)(x, w)), jax.tree.leaves(jax.jit(function)(x, w)), strict=True
    ):
        # Sums of some hundred products of f32, which libraries may add up in another order.
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * float(jnp.abs(expected).max()))


def _grouped(x: Any, w: Any, scale: Any) -> Any:
    """Return groups of channels, normalised, and put together with what they were made of."""
    layout = "NCHW", "OIHW", "NCHW"
    y = _convolved(x, w, layout)
    groups = _normalised(y.reshape(y.shape[0], 8, 8, *y.shape[2:]), (2, 3, 4)).reshape(y.shape)
    both = jnp.concatenate([y, groups * scale[:, None, None]], 1)
    return _convolved(nn.relu(_normalised(both, (0, 2, 3))), jnp.concatenate([w, w], 1), layout)


def test_reshapes_and_concatenations_are_of_the_librarys_order() -> None:
    program = xgpu.compile(_grouped, "f32[8,64,32,32]", "f32[64,64,3,3]", "f32[64]", target="sm_90a")
    moved = [line for line in program.ir("prepared").splitlines() if _TRANSPOSE in line and "32x32" in line]
    assert len(moved) == 2 and "%arg0" in moved[0] and "-> tensor<8x64x32x32xf32>" in moved[1]
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(each, np.float32) for each in ((2, 64, 9, 7), (64, 64, 3, 3), (64,))]
    found, expected = xgpu.jit(_grouped)(*arrays), jax.jit(_grouped)(*arrays)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * float(jnp.abs(expected).max()))
