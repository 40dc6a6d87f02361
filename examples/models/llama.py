"""A Llama-style decoder block: RMS norm, rotary embedding, grouped-query attention with a cache, SwiGLU.

Architecture: Touvron et al., 2023. The cache of keys and values is updated in place: donate it to ``jit``. Arrays are
in ``Config.dtype``; norms, angles and softmax are computed in f32.
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
    """Sizes of the network, its cache and a batch; the defaults are of one layer of Llama 3 8B.

    ``prompt`` positions are in the cache when decoding starts, ``context`` fit into it.
    """

    layers: int = 1
    width: int = 4096
    heads: int = 32
    groups: int = 8
    hidden: int = 14336
    context: int = 2048
    prompt: int = 1024
    batch: int = 8
    base: float = 500000.0
    dtype: Any = jnp.bfloat16

    @property
    def head(self) -> int:
        """Elements of a head's query, key or value."""
        return self.width // self.heads


TINY = Config(layers=2, width=32, heads=4, groups=2, hidden=56, context=24, prompt=11, batch=2)


def initialize(config: Config, seed: int = 0) -> Tree:
    """Return random parameters, those of all layers stacked along the first dimension."""
    shared, random = config.groups * config.head, np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        drawn = random.standard_normal((config.layers, rows, columns), np.float32)
        return (drawn / np.float32(math.sqrt(rows))).astype(config.dtype)

    return {
        "norm1": np.ones((config.layers, config.width), config.dtype),
        "query": matrix(config.width, config.width),
        "key": matrix(config.width, shared),
        "value": matrix(config.width, shared),
        "project": matrix(config.width, config.width),
        "norm2": np.ones((config.layers, config.width), config.dtype),
        "gate": matrix(config.width, config.hidden),
        "up": matrix(config.width, config.hidden),
        "down": matrix(config.hidden, config.width),
    }


def initialize_cache(config: Config) -> Tree:
    """Return an empty cache: keys and values of [layers, batch, context, groups, head]."""
    shape = (config.layers, config.batch, config.context, config.groups, config.head)
    return {"key": np.zeros(shape, config.dtype), "value": np.zeros(shape, config.dtype)}


def rms_norm(scale: jax.Array, x: jax.Array) -> jax.Array:
    """Return ``x`` with mean square 1 along its last dimension, scaled."""
    wide = x.astype(jnp.float32)
    mean = jnp.square(wide).mean(-1, keepdims=True)
    return (wide * jax.lax.rsqrt(mean + 1e-5)).astype(x.dtype) * scale


def rotate(x: jax.Array, positions: jax.Array, base: float) -> jax.Array:
    """Return ``x`` of [batch, positions, heads, head] with its halves turned by angles that grow with the position."""
    half = x.shape[-1] // 2
    frequencies = base ** -(jnp.arange(half, dtype=jnp.float32) / half)
    angles = positions[:, None, None] * frequencies
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    left, right = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([left * cosine - right * sine, right * cosine + left * sine], -1).astype(x.dtype)


def attention(config: Config, layer: Tree, cache: Tree, x: jax.Array, start: jax.Array) -> tuple[jax.Array, Tree]:
    """Return causal attention of ``x``, at positions from ``start`` on, over the cache, and the cache with it."""
    batch, count, _ = x.shape
    positions = start + jnp.arange(count)
    query = rotate((x @ layer["query"]).reshape(batch, count, config.heads, config.head), positions, config.base)
    key = rotate((x @ layer["key"]).reshape(batch, count, config.groups, config.head), positions, config.base)
    value = (x @ layer["value"]).reshape(key.shape)
    keys = jax.lax.dynamic_update_slice(cache["key"], key, (0, start, 0, 0))
    values = jax.lax.dynamic_update_slice(cache["value"], value, (0, start, 0, 0))

    # Heads of one group share its keys and values.
    query = query.reshape(batch, count, config.groups, -1, config.head)
    scores = jnp.einsum("bqghd,bkgd->bghqk", query, keys, preferred_element_type=jnp.float32)
    is_past = jnp.arange(config.context) <= positions[:, None]
    weights = jax.nn.softmax(jnp.where(is_past, scores / math.sqrt(config.head), -jnp.inf)).astype(x.dtype)
    mixed = jnp.einsum("bghqk,bkgd->bqghd", weights, values).reshape(x.shape)
    return mixed @ layer["project"], {"key": keys, "value": values}


def feed_forward(layer: Tree, x: jax.Array) -> jax.Array:
    """Return the gated feed-forward network of ``x``."""
    return (jax.nn.silu(x @ layer["gate"]) * (x @ layer["up"])) @ layer["down"]


def forward(config: Config, parameters: Tree, cache: Tree, x: jax.Array, start: jax.Array) -> tuple[jax.Array, Tree]:
    """Return what the layers make of ``x``, [batch, positions, width] at positions from ``start`` on, and the cache."""

    def step(x: jax.Array, layer_and_cache: tuple[Tree, Tree]) -> tuple[jax.Array, Tree]:
        layer, old = layer_and_cache
        mixed, new = attention(config, layer, old, rms_norm(layer["norm1"], x), start)
        x = x + mixed
        return x + feed_forward(layer, rms_norm(layer["norm2"], x)), new

    return jax.lax.scan(step, x, (parameters, cache))


def examples(size: str, dtype: Any = jnp.bfloat16) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return programs by name, with arguments, of size ``"tiny"`` or ``"full"``: a prompt, and a token after it."""
    config = replace(TINY if size == "tiny" else Config(), dtype=dtype)
    random = np.random.default_rng(1)
    prompt = random.standard_normal((config.batch, config.prompt, config.width), np.float32).astype(dtype)
    start = jax.device_put((initialize(config), initialize_cache(config), prompt))
    token = jax.device_put(prompt[:, :1])
    run = functools.partial(forward, config)
    return {
        "prefill": (run, (*start, jnp.int32(0))),
        "decode": (run, (*start[:2], token, jnp.int32(config.prompt))),
    }
