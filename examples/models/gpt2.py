"""GPT-2: logits of a batch of tokens, and a training step with Adam. Architecture: Radford et al., 2019.

Parameters are a tree of f32 arrays; matrix products and what lies between them are done in ``Config.dtype``.
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
    """Sizes of the network and of a batch; the defaults are those of the smallest GPT-2, with 124 million parameters.

    The vocabulary's 50,257 tokens are rounded up to a multiple of 64, which matrix products need to be fast.
    """

    vocabulary: int = 50304
    positions: int = 1024
    layers: int = 12
    heads: int = 12
    width: int = 768
    batch: int = 8
    dtype: Any = jnp.bfloat16


TINY = Config(vocabulary=97, positions=24, layers=2, heads=2, width=32, batch=2)


@dataclass(frozen=True)
class Adam:
    """Settings of the Adam optimiser (Kingma and Ba, 2015) with decoupled weight decay."""

    rate: float = 3e-4
    decay1: float = 0.9
    decay2: float = 0.95
    epsilon: float = 1e-8
    weight_decay: float = 0.1


def initialize(config: Config, seed: int = 0) -> Tree:
    """Return random parameters: normal with deviation 0.02, smaller where a layer adds to the residual stream."""
    width, random = config.width, np.random.default_rng(seed)
    residual = 0.02 / math.sqrt(2 * config.layers)

    def matrix(rows: int, columns: int, deviation: float = 0.02) -> np.ndarray:
        return np.float32(deviation) * random.standard_normal((rows, columns), np.float32)

    def linear(rows: int, columns: int, deviation: float = 0.02) -> Tree:
        return {"weight": matrix(rows, columns, deviation), "bias": np.zeros(columns, np.float32)}

    def norm() -> Tree:
        return {"scale": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}

    def layer() -> Tree:
        return {
            "norm1": norm(),
            "qkv": linear(width, 3 * width),
            "project": linear(width, width, residual),
            "norm2": norm(),
            "expand": linear(width, 4 * width),
            "contract": linear(4 * width, width, residual),
        }

    return {
        "tokens": matrix(config.vocabulary, width),
        "positions": matrix(config.positions, width),
        "layers": [layer() for _ in range(config.layers)],
        "norm": norm(),
    }


def linear(parameters: Tree, x: jax.Array) -> jax.Array:
    """Return ``x @ weight + bias`` in the type of ``x``."""
    return x @ parameters["weight"].astype(x.dtype) + parameters["bias"].astype(x.dtype)


def layer_norm(parameters: Tree, x: jax.Array) -> jax.Array:
    """Return ``x`` with mean 0 and variance 1 along its last dimension, scaled and shifted; computed in f32."""
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    variance = jnp.square(centred).mean(-1, keepdims=True)
    return (centred * jax.lax.rsqrt(variance + 1e-5) * parameters["scale"] + parameters["bias"]).astype(x.dtype)


def attention(parameters: Tree, x: jax.Array, heads: int) -> jax.Array:
    """Return causal self-attention over ``x`` of [batch, positions, width]; the softmax is computed in f32."""
    batch, positions, width = x.shape
    qkv = linear(parameters["qkv"], x).reshape(batch, positions, 3, heads, width // heads)
    query, key, value = (qkv[:, :, i] for i in range(3))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key).astype(jnp.float32) / math.sqrt(width // heads)
    is_past = jnp.tri(positions, dtype=bool)
    weights = jax.nn.softmax(jnp.where(is_past, scores, -jnp.inf)).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(x.shape)
    return linear(parameters["project"], mixed)


def feed_forward(parameters: Tree, x: jax.Array) -> jax.Array:
    """Return the two linear layers with GELU between them."""
    return linear(parameters["contract"], jax.nn.gelu(linear(parameters["expand"], x)))


def forward(config: Config, parameters: Tree, tokens: jax.Array) -> jax.Array:
    """Return the logits of the next token after each of ``tokens``, s32 of [batch, positions]."""
    x = parameters["tokens"][tokens] + parameters["positions"][: tokens.shape[1]]
    x = x.astype(config.dtype)
    for layer in parameters["layers"]:
        x = x + attention(layer, layer_norm(layer["norm1"], x), config.heads)
        x = x + feed_forward(layer, layer_norm(layer["norm2"], x))
    return layer_norm(parameters["norm"], x) @ parameters["tokens"].T.astype(x.dtype)


def loss(config: Config, parameters: Tree, tokens: jax.Array) -> jax.Array:
    """Return the mean cross-entropy of each token given those before it; ``tokens`` has one position more."""
    logits = forward(config, parameters, tokens[:, :-1]).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - chosen)


def initialize_training(parameters: Tree) -> Tree:
    """Return the state of a training that starts: parameters, both moments of Adam, and the number of steps done."""
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return {"parameters": parameters, "first": zeros, "second": zeros, "steps": jnp.int32(0)}


def train_step(config: Config, adam: Adam, state: Tree, tokens: jax.Array) -> tuple[Tree, jax.Array]:
    """Return the state after a step of Adam, and the loss before it."""
    value, gradients = jax.value_and_grad(functools.partial(loss, config))(state["parameters"], tokens)
    steps = state["steps"] + 1
    first = jax.tree.map(lambda m, g: adam.decay1 * m + (1 - adam.decay1) * g, state["first"], gradients)
    second = jax.tree.map(lambda v, g: adam.decay2 * v + (1 - adam.decay2) * g * g, state["second"], gradients)
    correction1, correction2 = 1 - adam.decay1**steps, 1 - adam.decay2**steps

    def update(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        direction = m / correction1 / (jnp.sqrt(v / correction2) + adam.epsilon)
        # Only matrices decay: biases and scales have one dimension.
        return p - adam.rate * (direction + (adam.weight_decay * p if p.ndim > 1 else 0))

    parameters = jax.tree.map(update, state["parameters"], first, second)
    return {"parameters": parameters, "first": first, "second": second, "steps": steps}, value


def examples(size: str, dtype: Any = jnp.bfloat16) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return programs by name, each with arguments, of size ``"tiny"`` or ``"full"``."""
    config = replace(TINY if size == "tiny" else Config(), dtype=dtype)
    random = np.random.default_rng(1)
    tokens = random.integers(config.vocabulary, size=(config.batch, config.positions + 1), dtype=np.int32)
    parameters, before, whole = jax.device_put((initialize(config), tokens[:, :-1], tokens))
    return {
        "forward": (functools.partial(forward, config), (parameters, before)),
        "train": (functools.partial(train_step, config, Adam()), (initialize_training(parameters), whole)),
    }
