"""A step of denoising diffusion: a small U-Net predicts the noise, and the sampler removes a part of it.

Architecture: Ho et al., 2020; the step is the deterministic one of Song et al., 2021 (DDIM). Images are [batch, height,
width, channels] in ``Config.dtype``; norms, embeddings and softmax are computed in f32.
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
    """Sizes of the network and a batch: ``size`` is the image's side, ``widths`` the channels at each halved size."""

    batch: int = 16
    size: int = 64
    image: int = 4
    widths: tuple[int, ...] = (128, 256, 512)
    heads: int = 8
    groups: int = 32
    steps: int = 1000
    dtype: Any = jnp.bfloat16


TINY = Config(batch=2, size=8, widths=(8, 16), heads=2, groups=4)


class _Initializer:
    """Draws parameters; matrices and kernels are scaled to keep the variance."""

    def __init__(self, config: Config, seed: int):
        self._config, self._random = config, np.random.default_rng(seed)

    def linear(self, *shape: int) -> Tree:
        """Parameters of a product with a matrix, or a convolution's kernel: inputs and outputs come last."""
        weight = self._random.standard_normal(shape, np.float32) / np.float32(math.sqrt(math.prod(shape[:-1])))
        return {"weight": weight.astype(self._config.dtype), "bias": np.zeros(shape[-1], self._config.dtype)}

    def norm(self, width: int) -> Tree:
        """Parameters of a group norm."""
        return {"scale": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}

    def residual(self, inputs: int, outputs: int) -> Tree:
        """Parameters of a residual block."""
        return {
            "norm1": self.norm(inputs),
            "conv1": self.linear(3, 3, inputs, outputs),
            "time": self.linear(4 * self._config.widths[0], outputs),
            "norm2": self.norm(outputs),
            "conv2": self.linear(3, 3, outputs, outputs),
            "shortcut": self.linear(1, 1, inputs, outputs),
        }


def initialize(config: Config, seed: int = 0) -> Tree:
    """Return random parameters."""
    make, widths = _Initializer(config, seed), config.widths
    deepest = widths[-1]
    return {
        "time": [make.linear(widths[0], 4 * widths[0]), make.linear(4 * widths[0], 4 * widths[0])],
        "first": make.linear(3, 3, config.image, widths[0]),
        "down": [make.residual(before, width) for before, width in zip((widths[0], *widths), widths, strict=False)],
        "attention": {
            "norm": make.norm(deepest),
            "qkv": make.linear(deepest, 3 * deepest),
            "project": make.linear(deepest, deepest),
        },
        "middle": make.residual(deepest, deepest),
        "up": [
            make.residual(before + width, width)
            for before, width in zip((deepest, *widths[::-1]), widths[::-1], strict=False)
        ],
        "norm": make.norm(widths[0]),
        "last": make.linear(3, 3, widths[0], config.image),
    }


def linear(parameters: Tree, x: jax.Array) -> jax.Array:
    """Return ``x @ weight + bias``."""
    return x @ parameters["weight"] + parameters["bias"]


def convolve(parameters: Tree, x: jax.Array) -> jax.Array:
    """Return the convolution of ``x``, padded to keep its size, plus the bias."""
    layout = ("NHWC", "HWIO", "NHWC")
    kernel = parameters["weight"]
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout) + parameters["bias"]


def group_norm(parameters: Tree, x: jax.Array, groups: int) -> jax.Array:
    """Return ``x`` with mean 0 and variance 1 over each image and group of channels, scaled and shifted."""
    wide = x.astype(jnp.float32).reshape(*x.shape[:-1], groups, -1)
    axes = (1, 2, 4)
    centred = wide - wide.mean(axes, keepdims=True)
    normal = centred * jax.lax.rsqrt(jnp.square(centred).mean(axes, keepdims=True) + 1e-5)
    return (normal.reshape(x.shape) * parameters["scale"] + parameters["bias"]).astype(x.dtype)


def embed_time(times: jax.Array, width: int) -> jax.Array:
    """Return sines and cosines of ``times``, f32 of [batch], at ``width / 2`` frequencies."""
    half = width // 2
    frequencies = jnp.exp(-math.log(10000) * jnp.arange(half, dtype=jnp.float32) / half)
    angles = times.astype(jnp.float32)[:, None] * frequencies
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)


def residual(config: Config, parameters: Tree, x: jax.Array, time: jax.Array) -> jax.Array:
    """Return the residual block of ``x``; ``time`` is the embedding of the time step."""
    y = convolve(parameters["conv1"], jax.nn.silu(group_norm(parameters["norm1"], x, config.groups)))
    y = y + linear(parameters["time"], jax.nn.silu(time))[:, None, None, :]
    y = convolve(parameters["conv2"], jax.nn.silu(group_norm(parameters["norm2"], y, config.groups)))
    return y + convolve(parameters["shortcut"], x)


def attention(config: Config, parameters: Tree, x: jax.Array) -> jax.Array:
    """Return ``x`` plus its self-attention over all places of an image."""
    batch, height, width, channels = x.shape
    normal = group_norm(parameters["norm"], x, config.groups).reshape(batch, height * width, channels)
    qkv = linear(parameters["qkv"], normal).reshape(batch, height * width, 3, config.heads, -1)
    query, key, value = (qkv[:, :, i] for i in range(3))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key).astype(jnp.float32) / math.sqrt(channels // config.heads)
    weights = jax.nn.softmax(scores).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(normal.shape)
    return x + linear(parameters["project"], mixed).reshape(x.shape)


def halve(x: jax.Array) -> jax.Array:
    """Return the means of squares of four pixels."""
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).mean((2, 4))


def double(x: jax.Array) -> jax.Array:
    """Return ``x`` with each pixel repeated in both directions."""
    return jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)


def predict_noise(config: Config, parameters: Tree, image: jax.Array, times: jax.Array) -> jax.Array:
    """Return the noise that ``image`` is thought to hold at the steps ``times``, s32 of [batch]."""
    first, second = parameters["time"]
    time = embed_time(times, config.widths[0]).astype(config.dtype)
    time = linear(second, jax.nn.silu(linear(first, time)))
    x = convolve(parameters["first"], image)
    skipped = []
    for number, block in enumerate(parameters["down"]):
        x = residual(config, block, halve(x) if number else x, time)
        skipped.append(x)
    x = residual(config, parameters["middle"], attention(config, parameters["attention"], x), time)
    for number, block in enumerate(parameters["up"]):
        x = jnp.concatenate([double(x) if number else x, skipped.pop()], -1)
        x = residual(config, block, x, time)
    return convolve(parameters["last"], jax.nn.silu(group_norm(parameters["norm"], x, config.groups)))


def denoise(config: Config, parameters: Tree, image: jax.Array, times: jax.Array) -> jax.Array:
    """Return ``image`` as it was one step before ``times``, with less noise."""

    def kept(times: jax.Array) -> jax.Array:
        """The share of the variance that is the image's: a cosine schedule (Nichol and Dhariwal, 2021)."""
        share = jnp.cos((times / config.steps + 0.008) / 1.008 * (math.pi / 2)) ** 2
        return jnp.clip(share, 1e-4, 1.0)[:, None, None, None]

    wide = image.astype(jnp.float32)
    noise = predict_noise(config, parameters, image, times).astype(jnp.float32)
    now, before = kept(times), kept(times - 1)
    clean = jnp.clip((wide - jnp.sqrt(1 - now) * noise) / jnp.sqrt(now), -3, 3)
    return (jnp.sqrt(before) * clean + jnp.sqrt(1 - before) * noise).astype(image.dtype)


def examples(size: str, dtype: Any = jnp.bfloat16) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return programs by name, each with arguments, of size ``"tiny"`` or ``"full"``."""
    config = replace(TINY if size == "tiny" else Config(), dtype=dtype)
    shape = (config.batch, config.size, config.size, config.image)
    random = np.random.default_rng(1)
    image = random.standard_normal(shape, np.float32).astype(dtype)
    times = random.integers(1, config.steps, config.batch, np.int32)
    return {"denoise": (functools.partial(denoise, config), jax.device_put((initialize(config), image, times)))}
