"""A residual block in training mode: batch norm with running statistics, its loss's gradient, a step of SGD.

Architecture: the bottleneck block of He et al., 2015. Images are [batch, height, width, channels]; parameters and
statistics are f32, convolutions and what lies between them are done in ``Config.dtype``.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

type Tree = Any


@dataclass(frozen=True)
class Config:
    """Sizes of the block and a batch; the defaults are of the second stage of ResNet-50."""

    batch: int = 64
    size: int = 56
    channels: int = 256
    inner: int = 128
    outer: int = 512
    stride: int = 2
    momentum: float = 0.9
    rate: float = 0.1
    dtype: Any = jnp.bfloat16


TINY = Config(batch=3, size=10, channels=8, inner=4, outer=16)


def initialize(config: Config, seed: int = 0) -> tuple[Tree, Tree]:
    """Return random parameters and the running statistics to start with."""
    random = np.random.default_rng(seed)
    shapes = {
        "reduce": (1, config.channels, config.inner),
        "spatial": (3, config.inner, config.inner),
        "expand": (1, config.inner, config.outer),
        "shortcut": (1, config.channels, config.outer),
    }
    parameters, statistics = {}, {}
    for name, (side, inputs, outputs) in shapes.items():
        drawn = random.standard_normal((side, side, inputs, outputs), np.float32)
        zeros, ones = np.zeros(outputs, np.float32), np.ones(outputs, np.float32)
        kernel = drawn * np.float32(math.sqrt(2 / (side * side * inputs)))
        parameters[name] = {"kernel": kernel, "scale": ones, "bias": zeros}
        statistics[name] = {"mean": zeros, "variance": ones}
    return parameters, statistics


def convolve(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """Return the convolution with a kernel of [height, width, inputs, outputs], padded to keep the size."""
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel.astype(x.dtype), (stride, stride), "SAME", dimension_numbers=layout)


def batch_norm(parameters: Tree, statistics: Tree, x: jax.Array, momentum: float) -> tuple[jax.Array, Tree]:
    """Return ``x`` with mean 0 and variance 1 for each channel, scaled and shifted, and the new running statistics."""
    wide = x.astype(jnp.float32)
    mean = wide.mean((0, 1, 2))
    variance = jnp.square(wide).mean((0, 1, 2)) - jnp.square(mean)
    normal = (wide - mean) * (jax.lax.rsqrt(variance + 1e-5) * parameters["scale"]) + parameters["bias"]
    new = {
        "mean": momentum * statistics["mean"] + (1 - momentum) * mean,
        "variance": momentum * statistics["variance"] + (1 - momentum) * variance,
    }
    return normal.astype(x.dtype), new


def block(config: Config, parameters: Tree, statistics: Tree, x: jax.Array) -> tuple[jax.Array, Tree]:
    """Return what the block makes of ``x``, and the new running statistics."""
    new = {}

    def layer(name: str, x: jax.Array, stride: int = 1) -> jax.Array:
        convolved = convolve(x, parameters[name]["kernel"], stride)
        normal, new[name] = batch_norm(parameters[name], statistics[name], convolved, config.momentum)
        return normal

    y = jax.nn.relu(layer("reduce", x))
    y = jax.nn.relu(layer("spatial", y, config.stride))
    return jax.nn.relu(layer("expand", y) + layer("shortcut", x, config.stride)), new


def loss(config: Config, parameters: Tree, statistics: Tree, x: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    """Return the cross-entropy of the mean over each image, its channels taken for logits, and the new statistics."""
    y, new = block(config, parameters, statistics, x)
    logits = y.astype(jnp.float32).mean((1, 2))
    chosen = jnp.take_along_axis(logits, labels[:, None], 1)
    return jnp.mean(jax.nn.logsumexp(logits, 1, keepdims=True) - chosen), new


def train_step(
    config: Config, parameters: Tree, statistics: Tree, x: jax.Array, labels: jax.Array
) -> tuple[Tree, Tree, jax.Array]:
    """Return parameters and statistics after a step of gradient descent, and the loss before it."""
    value_and_gradients = jax.value_and_grad(functools.partial(loss, config), has_aux=True)
    (value, new), gradients = value_and_gradients(parameters, statistics, x, labels)
    return jax.tree.map(lambda p, g: p - config.rate * g, parameters, gradients), new, value


def examples(size: str, dtype: Any = jnp.bfloat16) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return programs by name, each with arguments, of size ``"tiny"`` or ``"full"``."""
    config = replace(TINY if size == "tiny" else Config(), dtype=dtype)
    random = np.random.default_rng(1)
    shape = (config.batch, config.size, config.size, config.channels)
    x = random.standard_normal(shape, np.float32).astype(dtype)
    labels = random.integers(config.outer, size=config.batch, dtype=np.int32)
    start = jax.device_put((*initialize(config), x))
    return {
        "forward": (functools.partial(block, config), start),
        "train": (functools.partial(train_step, config), (*start, jax.device_put(labels))),
    }
