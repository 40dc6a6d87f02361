"""Random programs of jax.numpy on large arrays, each the same for the same seed, for `xgpu.tools.timing.programs`.

A program is a chain of 4 to 12 steps, each of which uses the newest array and sometimes an older one; a third are
gradients.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

_SHAPES = (
    (4096, 1024), (1000, 4096), (64, 512, 128), (32, 128, 8, 64), (16, 56, 56, 64), (8, 32, 96, 96), (1 << 22,),
    (8192, 257), (100_000, 32), (300_000, 3), (2, 2048, 1024), (24, 24, 24, 256), (512, 64, 64), (65_536, 16),
)  # fmt: skip
"""Shapes of the first array."""

_LIMIT = 1 << 24
"""The largest number of elements of an array."""


@dataclass
class State:
    """A program under way: its random numbers, the arguments it has asked for, and the steps taken."""

    draw: random.Random
    shapes: list[tuple[tuple[int, ...], str]] = field(default_factory=list)
    steps: list[Callable[[list[Any], Sequence[Any]], Any]] = field(default_factory=list)

    def argument(self, shape: Sequence[int], kind: str = "f") -> int:
        """Return the number of a new argument; its kind is f for numbers, b for bf16, or i and a bound for indices."""
        self.shapes.append((tuple(shape), kind))
        return len(self.shapes) - 1


Step = Callable[[State, Any], Callable[[list[Any], Sequence[Any]], Any] | None]
"""Returns what computes the next array from those so far and the arguments, or None if the shape does not fit."""


def _unary(state: State, x: Any) -> Any:
    names = (
        "tanh",
        "exp",
        "sin",
        "sqrt",
        "square",
        "abs",
        "log1p",
        "gelu",
        "sigmoid",
        "relu",
        "silu",
        "scale",
        "round",
    )
    name = state.draw.choice(names)
    table = {
        "exp": lambda v: jnp.exp(jnp.minimum(v, 3)), "sqrt": lambda v: jnp.sqrt(jnp.abs(v) + 0.1),
        "square": lambda v: v * v, "log1p": lambda v: jnp.log1p(jnp.abs(v)), "scale": lambda v: v * 0.7 + 0.1,
        "relu": nn.relu, "silu": nn.silu, "gelu": nn.gelu, "sigmoid": nn.sigmoid,
    }  # fmt: skip
    function = table.get(name) or getattr(jnp, name)
    return lambda values, _: function(values[-1])


def _binary(state: State, x: Any) -> Any:
    kind = state.draw.choice(("new", "old", "row", "column", "where"))
    operation = state.draw.choice((jnp.add, jnp.multiply, jnp.subtract, jnp.maximum))
    if kind == "old":
        back = state.draw.randint(1, 4)

        def old(values: list[Any], _: Sequence[Any]) -> Any:
            same = [v for v in values[:-1] if v.shape == values[-1].shape]
            return operation(values[-1], same[-min(back, len(same))] if same else values[-1])

        return old
    axis = state.draw.randrange(x.ndim)
    shape = {
        "row": tuple(n if i == axis else 1 for i, n in enumerate(x.shape)),
        "column": tuple(1 if i == axis else n for i, n in enumerate(x.shape)),
    }.get(kind, x.shape)
    i = state.argument(shape)
    if kind == "where":
        return lambda values, a: jnp.where(a[i] > 0, values[-1], 0.5)
    return lambda values, a: operation(values[-1], a[i].astype(values[-1].dtype))


def _reduce(state: State, x: Any) -> Any:
    axis = state.draw.randrange(x.ndim)
    keep = state.draw.random() < 0.6
    name = state.draw.choice(("sum", "max", "mean", "var", "logsumexp", "argmax", "all"))
    axes: Any = axis if state.draw.random() < 0.7 or x.ndim < 3 else (axis, (axis + 1) % x.ndim)
    if name == "argmax":
        return lambda values, _: values[-1] - jnp.argmax(values[-1], axis, keepdims=True).astype(values[-1].dtype)
    if name == "all":
        return lambda values, _: values[-1] * jnp.any(values[-1] > 1, axes, keepdims=True)
    function = nn.logsumexp if name == "logsumexp" else getattr(jnp, name)
    if keep:
        return lambda values, _: values[-1] - function(values[-1], axes, keepdims=True)
    return (lambda values, _: function(values[-1], axes)) if x.size > 1 << 18 else None


def _normalize(state: State, x: Any) -> Any:
    axis = state.draw.choice((-1, -1, 0, state.draw.randrange(x.ndim)))
    if x.shape[axis] < 2:
        return None
    kind = state.draw.choice(("softmax", "layer", "rms", "log_softmax", "minmax"))
    if kind in ("softmax", "log_softmax"):
        return lambda values, _: getattr(nn, kind)(values[-1], axis)
    if kind == "layer":
        return lambda values, _: nn.standardize(values[-1], axis)
    if kind == "rms":
        return lambda values, _: values[-1] * lax.rsqrt(jnp.mean(values[-1] ** 2, axis, keepdims=True) + 1e-6)
    return lambda values, _: (
        (values[-1] - values[-1].min(axis, keepdims=True))
        / (values[-1].max(axis, keepdims=True) - values[-1].min(axis, keepdims=True) + 1)
    )


def _scan(state: State, x: Any) -> Any:
    axis = state.draw.randrange(x.ndim)
    kind = state.draw.choice(("cumsum", "cummax", "linear", "flipped"))
    if kind == "linear":

        def join(a: Any, b: Any) -> Any:
            return a[0] * b[0], a[1] * b[0] + b[1]

        return lambda values, _: lax.associative_scan(join, (nn.sigmoid(values[-1]), values[-1]), axis=axis)[1]
    function = lax.cummax if kind == "cummax" else partial(lax.cumsum, reverse=kind == "flipped")
    return lambda values, _: function(values[-1] * 0.01, axis=axis)


def _move(state: State, x: Any) -> Any:
    axis = state.draw.randrange(x.ndim)
    size = x.shape[axis]
    kind = state.draw.choice(
        ("transpose", "transpose", "roll", "flip", "pad", "slice", "stride", "concat", "diff", "tile")
    )
    if kind == "transpose":
        order = list(range(x.ndim))
        state.draw.shuffle(order)
        return lambda values, _: jnp.transpose(values[-1], order)
    if kind == "roll":
        by = state.draw.randint(1, size)
        return lambda values, _: values[-1] + 0.5 * jnp.roll(values[-1], by, axis)
    if kind == "flip":
        return lambda values, _: values[-1] * jnp.flip(values[-1], axis)
    if kind == "pad":
        widths = [(1, 2) if i == axis else (0, 0) for i in range(x.ndim)]
        return lambda values, _: jnp.pad(values[-1], widths)
    if size < 8:
        return None
    if kind == "concat":
        return lambda values, _: jnp.concatenate([values[-1] * 2, values[-1] + 1], axis)
    if kind == "tile":
        return lambda values, _: jnp.repeat(values[-1], 2, axis)
    if kind == "diff":
        return lambda values, _: jnp.diff(values[-1], axis=axis)
    start, step = state.draw.randint(0, 3), 2 if kind == "stride" else 1
    return lambda values, _: lax.slice_in_dim(values[-1], start, size - 2, step, axis)


def _reshape(state: State, x: Any) -> Any:
    if state.draw.random() < 0.5 and x.ndim > 1:
        at = state.draw.randrange(x.ndim - 1)
        shape = (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
    else:
        at = state.draw.randrange(x.ndim)
        by = next(
            (n for n in state.draw.sample((2, 3, 4, 8, 16, 32), 6) if x.shape[at] % n == 0 and x.shape[at] > n), 0
        )
        if not by or x.ndim > 4:
            return None
        shape = (*x.shape[:at], x.shape[at] // by, by, *x.shape[at + 1 :])
    return lambda values, _: values[-1].reshape(shape)


def _index(state: State, x: Any) -> Any:
    axis = state.draw.randrange(x.ndim)
    size = x.shape[axis]
    kind = state.draw.choice(("take", "segment", "along", "one_hot", "update"))
    if kind == "take":
        i = state.argument((size,), f"i{size}")
        return lambda values, a: jnp.take(values[-1], a[i], axis)
    if kind == "segment":
        i = state.argument((x.shape[0],), f"i{max(1, x.shape[0] // 8)}")
        return lambda values, a: jax.ops.segment_sum(values[-1], a[i], max(1, x.shape[0] // 8))
    if kind == "along":
        i = state.argument(x.shape, f"i{size}")
        return lambda values, a: jnp.take_along_axis(values[-1], a[i], axis)
    if kind == "one_hot":
        i = state.argument(x.shape[:-1], f"i{x.shape[-1]}")
        return lambda values, a: values[-1] * nn.one_hot(a[i], x.shape[-1], dtype=values[-1].dtype)
    i = state.argument((max(1, x.shape[0] // 4),), f"i{x.shape[0]}")
    return lambda values, a: values[-1].at[a[i]].add(1.0)


def _product(state: State, x: Any) -> Any:
    inner = x.shape[-1]
    if not 8 <= inner <= 4096 or x.ndim < 2:
        return None
    outer = state.draw.choice((16, 64, 128, inner, 100))
    if x.size // inner * outer > _LIMIT:
        return None
    i = state.argument((inner, outer))
    return lambda values, a: (
        values[-1] @ a[i].astype(values[-1].dtype) / np.float32(inner**0.5).astype(values[-1].dtype)
    )


def _window(state: State, x: Any) -> Any:
    axis = state.draw.randrange(x.ndim)
    size = state.draw.choice((2, 3, 5, 8))
    if x.shape[axis] < 2 * size:
        return None
    window = tuple(size if i == axis else 1 for i in range(x.ndim))
    strides = tuple(state.draw.choice((1, 2, size)) if i == axis else 1 for i in range(x.ndim))
    if state.draw.random() < 0.5:
        return lambda values, _: lax.reduce_window(values[-1], -jnp.inf, lax.max, window, strides, "VALID")
    return lambda values, _: lax.reduce_window(values[-1], 0.0, lax.add, window, strides, "SAME") / size


def _convert(state: State, x: Any) -> Any:
    return lambda values, _: values[-1].astype(jnp.bfloat16 if values[-1].dtype == jnp.float32 else jnp.float32)


_STEPS: dict[Step, float] = {
    _unary: 5, _binary: 5, _reduce: 2.5, _normalize: 2, _scan: 0.8, _move: 4, _reshape: 2, _index: 1.2, _product: 1.2,
    _window: 0.8, _convert: 0.7,
}  # fmt: skip


def program(seed: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return the function of a seed, and its arguments."""
    state = State(random.Random(seed))
    state.argument(state.draw.choice(_SHAPES), state.draw.choice("fffb"))
    wanted = state.draw.randint(4, 12)
    shapes = _structs(state.shapes)
    for _ in range(200):
        x = shapes[-1]
        (step,) = state.draw.choices(list(_STEPS), list(_STEPS.values()))
        count = len(state.shapes)
        if (found := step(state, x)) is None:
            continue
        result = jax.eval_shape(found, shapes, _structs(state.shapes))
        if not 1 << 12 <= prod(result.shape) <= _LIMIT or result.ndim > 6:
            del state.shapes[count:]
            continue
        state.steps.append(found)
        shapes.append(result)
        if len(state.steps) == wanted:
            break
    also = state.draw.choice((None, None, state.draw.randrange(len(shapes))))

    def run(*arguments: Any) -> Any:
        values = [arguments[0]]
        for step in state.steps:
            values.append(step(values, arguments))
        return values[-1] if also is None else (values[-1], values[also])

    generator = np.random.default_rng(seed)
    arguments = [_drawn(shape, kind, generator) for shape, kind in state.shapes]
    if state.draw.random() < 0.35:
        floats = [i for i, (_, kind) in enumerate(state.shapes) if not kind.startswith("i")]
        chosen = sorted({0, *state.draw.sample(floats, min(len(floats), 2))})

        def loss(*arguments: Any) -> Any:
            return sum(jnp.sum(jnp.sin(leaf.astype(jnp.float32))) for leaf in jax.tree.leaves(run(*arguments)))

        return jax.grad(loss, argnums=tuple(chosen)), arguments
    return run, arguments


def _structs(shapes: Sequence[tuple[tuple[int, ...], str]]) -> list[Any]:
    return [jax.ShapeDtypeStruct(shape, _type(kind)) for shape, kind in shapes]  # type: ignore[no-untyped-call]


def _type(kind: str) -> Any:
    return {"f": jnp.float32, "b": jnp.bfloat16}.get(kind, jnp.int32)


def _drawn(shape: tuple[int, ...], kind: str, generator: np.random.Generator) -> Any:
    if kind.startswith("i"):
        return generator.integers(0, int(kind[1:]), shape).astype(np.int32)
    return generator.standard_normal(shape, np.float32).astype(_type(kind))


PROGRAMS = {f"seed {seed:03}": partial(program, seed) for seed in range(1000)}
"""The programs by name, of which ``seed 0`` chooses the first hundred."""
