"""A graph network: messages along edges, summed at their receivers with ``segment_sum``, and a training step.

Architecture: the message passing of Gilmer et al., 2017, with residual updates. Edges come sorted by receiver.
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
    """Sizes of the network and of a graph."""

    nodes: int = 1 << 15
    edges: int = 1 << 18
    width: int = 128
    rounds: int = 3
    rate: float = 0.01
    dtype: Any = jnp.float32


TINY = Config(nodes=37, edges=151, width=16, rounds=2)


def initialize(config: Config, seed: int = 0) -> Tree:
    """Return random parameters of the rounds, and of the readout of one number."""
    width, random = config.width, np.random.default_rng(seed)

    def linear(rows: int, columns: int) -> Tree:
        weight = random.standard_normal((rows, columns), np.float32) / np.float32(math.sqrt(rows))
        return {"weight": weight.astype(config.dtype), "bias": np.zeros(columns, config.dtype)}

    def perceptron() -> list[Tree]:
        return [linear(2 * width, width), linear(width, width)]

    rounds = [{"message": perceptron(), "update": perceptron()} for _ in range(config.rounds)]
    return {"rounds": rounds, "readout": linear(width, 1)}


def perceptron(layers: list[Tree], x: jax.Array) -> jax.Array:
    """Return what the layers make of ``x``, with SiLU between them."""
    for layer in layers[:-1]:
        x = jax.nn.silu(x @ layer["weight"] + layer["bias"])
    return x @ layers[-1]["weight"] + layers[-1]["bias"]


def forward(config: Config, parameters: Tree, nodes: jax.Array, senders: jax.Array, receivers: jax.Array) -> jax.Array:
    """Return a number for each node.

    ``nodes`` is [nodes, width]; ``senders`` and ``receivers`` are s32 of [edges], the receivers in ascending order.
    """
    ones = jnp.ones(receivers.shape, config.dtype)
    degree = jax.ops.segment_sum(ones, receivers, config.nodes, indices_are_sorted=True)
    scale = jax.lax.rsqrt(jnp.maximum(degree, 1))[:, None]
    for each in parameters["rounds"]:
        messages = perceptron(each["message"], jnp.concatenate([nodes[senders], nodes[receivers]], -1))
        received = jax.ops.segment_sum(messages, receivers, config.nodes, indices_are_sorted=True) * scale
        nodes = nodes + perceptron(each["update"], jnp.concatenate([nodes, received], -1))
    readout = parameters["readout"]
    return (nodes @ readout["weight"] + readout["bias"])[:, 0]


def train_step(
    config: Config, parameters: Tree, nodes: jax.Array, senders: jax.Array, receivers: jax.Array, wanted: jax.Array
) -> tuple[Tree, jax.Array]:
    """Return the parameters after a step of gradient descent on the mean square error, and that error before it."""

    def loss(parameters: Tree) -> jax.Array:
        made = forward(config, parameters, nodes, senders, receivers)
        return jnp.mean(jnp.square((made - wanted).astype(jnp.float32)))

    value, gradients = jax.value_and_grad(loss)(parameters)
    return jax.tree.map(lambda p, g: p - config.rate * g, parameters, gradients), value


def examples(size: str, dtype: Any = jnp.float32) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return programs by name, each with arguments, of size ``"tiny"`` or ``"full"``."""
    config = replace(TINY if size == "tiny" else Config(), dtype=dtype)
    random = np.random.default_rng(1)
    nodes = random.standard_normal((config.nodes, config.width), np.float32).astype(dtype)
    senders, receivers = random.integers(config.nodes, size=(2, config.edges), dtype=np.int32)
    wanted = random.random(config.nodes, np.float32).astype(dtype)
    graph = jax.device_put((initialize(config), nodes, senders, np.sort(receivers)))
    return {
        "forward": (functools.partial(forward, config), graph),
        "train": (functools.partial(train_step, config), (*graph, jax.device_put(wanted))),
    }
