"""Norms and softmaxes as JAX programs have them: one kernel each where rows are contiguous, and the numbers."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu

Case = tuple[Callable[..., Any], tuple[str, ...]]


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def flax_layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean, square = x.mean(-1), (x * x).mean(-1)
    variance = jnp.maximum(0.0, square - mean * mean)
    factor = jax.lax.rsqrt(jnp.expand_dims(variance, -1) + 1e-6) * scale
    return (x - jnp.expand_dims(mean, -1)) * factor + shift


def rms_norm(x: Any, scale: Any) -> Any:
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def normalised(x: Any, axes: tuple[int, ...]) -> Any:
    return (x - x.mean(axes, keepdims=True)) * jax.lax.rsqrt(x.var(axes, keepdims=True) + 1e-5)


def group_norm(groups: int) -> Callable[..., Any]:
    """The group norm of images whose channels come before their pixels."""

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        y = normalised(x.reshape(x.shape[0], groups, -1), (2,)).reshape(x.shape)
        return y * scale[:, None, None] + shift[:, None, None]

    return norm


def group_norm_of_blocks(x: Any, scale: Any, shift: Any) -> Any:
    n, c, h, w = x.shape
    y = normalised(x.reshape(n, 8, c // 8, h, w), (2, 3, 4)).reshape(x.shape)
    return jax.nn.silu(y * scale[:, None, None] + shift[:, None, None])


def group_norm_of_last(x: Any, scale: Any, shift: Any) -> Any:
    n, h, w, c = x.shape
    return normalised(x.reshape(n, h, w, 8, c // 8), (1, 2, 4)).reshape(x.shape) * scale + shift


def flattened_layer_norm(x: Any, residual: Any, scale: Any, shift: Any) -> Any:
    return layer_norm(x.reshape(-1, x.shape[-1]), scale, shift).reshape(x.shape) + residual


D = "f32[256]"
IMAGES, CHANNELS = "f32[2,64,8,8]", "f32[64]"
ONE_KERNEL: dict[str, Case] = {
    "layer norm": (layer_norm, ("f32[24,256]", D, D)),
    "layer norm of single tokens": (layer_norm, ("f32[8,1,256]", D, D)),
    "layer norm of a batch of one": (layer_norm, ("f32[1,24,256]", D, D)),
    "layer norm of one row": (layer_norm, ("f32[1,1,256]", D, D)),
    "layer norm as flax has it, of single tokens": (flax_layer_norm, ("f32[8,1,256]", D, D)),
    "gradient of layer norm": (
        jax.grad(lambda x, scale, shift: (layer_norm(x, scale, shift) ** 2).sum()),
        ("f32[8,1,256]", D, D),
    ),
    "layer norm of flattened tokens": (flattened_layer_norm, ("f32[3,8,256]", "f32[3,8,256]", D, D)),
    "layer norm, then without the unit dimension": (
        lambda *args: layer_norm(*args)[:, 0] * 2,
        ("f32[8,1,256]", D, D),
    ),
    "layer norm, then with a unit dimension": (lambda *args: layer_norm(*args)[:, None] * 2, ("f32[8,256]", D, D)),
    "layer norm in two shapes": (
        lambda x, scale, shift: (y := layer_norm(x, scale, shift), y.reshape(4, 2, 256) * scale),
        ("f32[8,256]", D, D),
    ),
    "rms norm": (rms_norm, ("f32[2,12,256]", D)),
    "rms norm of heads that are joined": (
        lambda x, scale, w: rms_norm(x, scale).reshape(*x.shape[:-2], -1) * w,
        ("f32[2,6,4,64]", "f32[64]", D),
    ),
    "group norm": (group_norm(8), (IMAGES, CHANNELS, CHANNELS)),
    "group norm of one image": (group_norm(8), ("f32[1,64,8,8]", CHANNELS, CHANNELS)),
    "group norm of odd extents": (group_norm(3), ("f32[2,9,5,7]", "f32[9]", "f32[9]")),
    "group norm of blocks of channels": (group_norm_of_blocks, (IMAGES, CHANNELS, CHANNELS)),
    "instance norm": (lambda x: normalised(x, (2, 3)), ("f32[2,6,16,16]",)),
    "instance norm of one channel": (lambda x: normalised(x, (2, 3)), ("f32[2,1,16,16]",)),
    "softmax of rows between unit dimensions": (lambda x: jax.nn.softmax(x, 2), ("f32[8,1,256,1]",)),
    "softmax of a single element": (lambda x: jax.nn.softmax(x, 1), ("f32[8,1,256]",)),
    "log softmax of what a mask leaves": (
        lambda x, mask: jax.nn.log_softmax(x, where=mask),
        ("f32[8,1,256]", "pred[256]"),
    ),
    "attention with a mask to add": (
        lambda x, mask: jax.nn.softmax(x / 8 + mask, -1),
        ("f32[2,4,64,64]", "f32[1,1,64,64]"),
    ),
    "attention of one query": (
        lambda x, mask: jax.nn.softmax(jnp.where(mask, x / 8, -1e9), -1),
        ("f32[4,8,1,64]", "pred[1,1,1,64]"),
    ),
}
SEVERAL: dict[str, tuple[Callable[..., Any], tuple[str, ...], int]] = {
    # What is reduced into one number is no row of memory: pieces of one, or columns, which are held if they are short.
    "group norm of channels that come last": (group_norm_of_last, ("f32[2,8,8,64]", CHANNELS, CHANNELS), 3),
    "instance norm of channels that come last": (lambda x: normalised(x, (1, 2)), ("f32[2,8,8,64]",), 1),
    "instance norm of larger images": (lambda x: normalised(x, (1, 2)), ("f32[2,32,32,64]",), 1),
    "rows in another order afterwards": (
        lambda x: (x - x.max(-1, keepdims=True)).reshape(4, 2, 256)[:, ::-1] * 2,
        ("f32[8,256]",),
        2,
    ),
    "rows of another shape beside": (
        lambda x: (
            (x - x.max(-1, keepdims=True)).reshape(4, 2, 256) + x.reshape(4, 2, 256)[:, ::-1].max(-1, keepdims=True)
        ),
        ("f32[8,256]",),
        2,
    ),
}
CASES = {name: (*case, 1) for name, case in ONE_KERNEL.items()} | SEVERAL


@pytest.mark.parametrize("name", CASES)
def test_kernels_and_numbers(name: str) -> None:
    function, specs, count = CASES[name]
    compiled = xgpu.compile(function, *specs)
    assert compiled.main is None
    assert len(compiled.launches) == count
    inputs = compiled.random_inputs(1)
    for result, wanted in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        # Functions of two libraries, and sums of a few hundred numbers in another order.
        np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["group norm of odd extents", "layer norm in two shapes"])
def test_no_access_is_wrong(name: str) -> None:
    function, specs, _ = CASES[name]
    compiled = xgpu.compile(function, *specs)
    compiled.run(*compiled.random_inputs(1), sanitize=True)


def test_an_element_is_read_once_and_vectors_stay() -> None:
    (kernel,) = xgpu.compile(group_norm(8), IMAGES, CHANNELS, CHANNELS).kernels
    assert kernel.ptx.count("ld.global.nc.v4.b32") == 1
    assert kernel.ptx.count("st.global.v4.b32") == 1
