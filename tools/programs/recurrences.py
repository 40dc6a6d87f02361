"""Loops over states whose elements do not depend on each other, with stacked inputs and results."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from xgpu.tools.programs.base import Array, TestProgram


def gates(x: Any, h: Any) -> Any:
    """Return the last state of a recurrence of gates over ``x`` that begins with ``h``, and all its states."""

    def step(h: Any, x: Any) -> Any:
        z = nn.sigmoid(x + h)
        h = z * h + (1 - z) * jnp.tanh(x - h)
        return h, h

    return lax.scan(step, h, x)


def _gradient(x: Any, h: Any) -> Any:
    return jax.grad(lambda x, h: jnp.sum(gates(x, h)[1] ** 2), (0, 1))(x, h)


def _average(x: Any) -> Any:
    return lax.scan(lambda mean, y: (mean + (y - mean) / 4,) * 2, jnp.zeros_like(x[0]), x)


def _reverse(x: Any) -> Any:
    return lax.scan(lambda total, y: (total / 2 + y, total), jnp.zeros_like(x[0]), x, reverse=True)


def _several(x: Any) -> Any:
    """Two states that change places, one under another shape, an integer one and one of numbers of each iteration."""

    def step(state: Any, y: Any) -> Any:
        i, a, b, count = state
        new = (i + 1, b.reshape(a.shape), (a / 2 + y).reshape(b.shape), count + (y > 0))
        return new, (a + b.reshape(a.shape), y * i)

    zeros = jnp.zeros_like(x[0])
    start = (0, zeros, zeros.reshape(-1) + 1, jnp.zeros(zeros.shape, jnp.int32))
    return lax.scan(step, start, x)[0][1:], lax.scan(step, start, x, reverse=True)[1]


def _unchanging(x: Any, scale: Any, bias: Any) -> Any:
    def step(h: Any, y: Any) -> Any:
        h = h * jnp.sin(scale) + y * bias[:, None]
        return h, h[None].astype(jnp.bfloat16)

    return lax.scan(step, jnp.broadcast_to(bias[:, None], x.shape[1:]), x)


def _random_words(x: Any) -> Any:
    def step(i: Any, words: Any) -> Any:
        return (words * jnp.uint32(1664525) + jnp.uint32(1013904223)) ^ (words >> (i + 1).astype(jnp.uint32))

    return lax.fori_loop(0, 37, step, x)


def _mandelbrot(c: Any) -> Any:
    def step(_: Any, state: Any) -> Any:
        z, count = state
        inside = z.real * z.real + z.imag * z.imag <= 4
        return jnp.where(inside, z * z + c, z), count + inside

    return lax.fori_loop(0, 20, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


def _down(x: Any) -> Any:
    """A counter that goes down by more than one, and wraps around where it is an unsigned byte."""
    start = (jnp.int32(19), jnp.uint8(250), x)
    return lax.while_loop(lambda s: s[0] >= 0, lambda s: (s[0] - 3, s[1] + jnp.uint8(7), s[2] * 2 + s[1]), start)


def _state_space(x: Any, delta: Any, a: Any, b: Any) -> Any:
    """A selective state space: rows of the state are summed up for what is stacked."""

    def step(h: Any, inputs: Any) -> Any:
        x, delta, b = inputs
        h = jnp.exp(-nn.softplus(delta)[:, None] * jnp.exp(a)) * h + (delta * x)[:, None] * b[None]
        return h, nn.silu(jnp.sum(h * b[None], -1)) + x

    return lax.scan(step, jnp.zeros(a.shape, x.dtype), (x, delta, b))


def _euler(x: Any) -> Any:
    """A state of one number, as the time of a simulation is, and one of a number for each row."""

    def step(_: Any, state: Any) -> Any:
        time, speed, x = state
        speed = speed * 0.9 + time
        return time + 0.125, speed, x + 0.015625 * jnp.sin(time + x) * speed[:, None]

    return lax.fori_loop(0, 9, step, (jnp.float32(1), x[:, 0] * 2, x))


def _times(x: Any) -> Any:
    def step(state: Any, y: Any) -> Any:
        time, h = state
        h = h * 0.5 + y * time
        return (time + 0.25, h), (time, h)

    return lax.scan(step, (jnp.float32(0), jnp.zeros_like(x[0])), x)


def _contractions(x: Any, a: Any, b: Any, c: Any) -> Any:
    """A state space written with contractions, its sums as products of matrices and vectors."""

    def step(h: Any, inputs: Any) -> Any:
        x, b, c = inputs
        h = a * h + jnp.einsum("bd,bn->bdn", x, b)
        return h, jnp.einsum("bdn,bn->bd", h, c)

    start = jnp.zeros((x.shape[1], *a.shape), x.dtype)
    h, y = lax.scan(step, start, (x, b, c))
    return h, y


def _rows(x: Any) -> Any:
    """Reductions of rows that the next state needs, one after the other, and states of one element for each row."""

    def step(state: Any, y: Any) -> Any:
        h, best, i = state
        normal = nn.softmax(h + y)
        best = jnp.maximum(best, jnp.max(y - jnp.mean(h, -1, keepdims=True), -1))
        return (normal + best[:, None], best, i + 1), jnp.sum(normal * i, -1, keepdims=True)

    return lax.scan(step, (jnp.zeros_like(x[0]), jnp.zeros_like(x[0, :, 0]), 0), x, reverse=True)


def _flags(x: Any) -> Any:
    return lax.scan(lambda seen, y: (seen | y, seen ^ y), jnp.zeros_like(x[0]), x)


def _special() -> Sequence[Array]:
    x = np.random.default_rng(3).standard_normal((9, 40)).astype(np.float32)
    x[3, :6] = np.nan, np.inf, -np.inf, -0.0, 3e38, -3e38
    return [x]


def _maxima(x: Any) -> Any:
    return lax.scan(lambda best, y: (jnp.maximum(best, y), jnp.minimum(best, -y)), x[0], x[1:])


def _kalman(z: Any) -> Any:
    """A filter of tracks: products of matrices of four rows and less, an inverse, and sums over what was seen."""
    move = jnp.eye(4) + 0.125 * jnp.eye(4, k=2)
    see = jnp.eye(2, 4)

    def step(state: Any, z: Any) -> Any:
        x, p = state
        x, p = move @ x, move @ p @ move.T + 0.0625 * jnp.eye(4)
        (a, b), (c, d) = seen = see @ p @ see.T + 0.5 * jnp.eye(2)
        inverse = jnp.array([[d, -b], [-c, a]]) / (a * d - b * c)
        gain, error = p @ see.T @ inverse, z - see @ x
        state = x + gain @ error, p - gain @ seen @ gain.T
        return state, (*state, error @ inverse @ error)

    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), z)


def _quaternions(turns: Any) -> Any:
    """Turns one after the other, the last first: concatenations, products of numbers, and a norm of each row."""

    def step(q: Any, turn: Any) -> Any:
        w, x, y, z = jnp.moveaxis(q, -1, 0)
        a, b, c = jnp.moveaxis(turn, -1, 0)
        ends = jnp.stack([w - x * a - y * b - z * c, x + w * a + y * c - z * b], -1)
        q = jnp.concatenate([ends, jnp.stack([y + w * b + z * a - x * c, z + w * c + x * b - y * a], -1)], -1)
        q = q / jnp.linalg.norm(q, axis=-1, keepdims=True)
        return q, q[..., ::-1]

    return lax.scan(step, jnp.ones((*turns.shape[1:-1], 4), turns.dtype), turns, reverse=True)


def _shifted(x: Any) -> Any:
    """Windows that move on: pads, slices, reversals and maxima of short rows, and where they are."""

    def step(window: Any, y: Any) -> Any:
        window = jnp.concatenate([window[:, 1:], y[:, None]], 1)
        spread = jnp.pad(window[:, ::2], ((0, 0), (1, 1)), constant_values=1)
        table = jnp.array([3, 1, 2], x.dtype)
        return window, (jnp.argmax(window, 1), spread * jnp.arange(5, dtype=x.dtype), window[:, :3] @ table)

    return lax.scan(step, jnp.zeros((x.shape[1], 5), x.dtype), x)


def _words(x: Any) -> Any:
    """A key that each step splits, of two words for all, and a state that is drawn from it."""

    def step(_: Any, state: Any) -> Any:
        key, x = state
        return jnp.stack([key[1] ^ (key[0] << 3), key[0] + 5]), x * 3 + (key[0] & 7) - key[1]

    return lax.fori_loop(0, 7, step, (jnp.array([1, 2], x.dtype), x))


def _delays(x: Any) -> Any:
    """A line of delays, written and read at places that count, or lie past its ends, or are states themselves."""

    def step(state: Any, y: Any) -> Any:
        line, i, place = state
        old = lax.dynamic_slice(line, (i % 4, 0, 0), (1, 3, x.shape[1]))
        line = lax.dynamic_update_slice(line, old * 0.5 + y, (place, i - 5, 0))
        first = lax.dynamic_slice(line, (place - 3, 5 - i, 0), (1, 1, x.shape[1]))
        return (line, i + 1, (place * 5 + 3) % 11), first[0, 0]

    return lax.scan(step, (jnp.zeros((4, 3, x.shape[1]), x.dtype), 0, 1), x)


def _pivots(x: Any) -> Any:
    """Rows that are exchanged as what is there says, some of them at places that are none."""

    def step(i: Any, x: Any) -> Any:
        pivot = jnp.argmax(jnp.where(jnp.arange(4) >= i, jnp.abs(x[:, i % 4]), -1))
        row = x[pivot]
        x = x.at[pivot].set(x[i % 4]).at[i].set(row / jnp.where(row[i % 4] == 0, 1, row[i % 4]), mode="drop")
        x = x.at[jnp.array([1, 3]), jnp.array([0, i])].add(0.5)
        return x.at[:, 1].multiply(x[jnp.array([2, 0, 1, 3]), 2] + 0.5)

    return lax.fori_loop(0, 6, step, x)


def _prefixes(x: Any) -> Any:
    def step(_: Any, x: Any) -> Any:
        return jnp.cumsum(x, 1) * 0.25 - lax.cummax(x[:, 1:3], axis=1, reverse=True)[:, :1]

    return lax.fori_loop(0, 5, step, x)


def _root(x: Any) -> Any:
    """Newton's method for a number, as often as it needs."""

    def more(state: Any) -> Any:
        y, count = state
        return (jnp.abs(y * y - x) > 1e-3 * x) & (count < 30)

    return lax.while_loop(more, lambda s: (0.5 * (s[0] + x / s[0]), s[1] + 1), (x, 0))


def _orbit(x: Any) -> Any:
    """Steps of a length of its own for each row, until it is far from the origin."""

    def step(state: Any) -> Any:
        x, time = state
        size = jnp.clip(0.5 / (1 + jnp.sum(x * x)), 0.125, 0.5)
        return x + size * jnp.stack([x[1], 1.5 - x[0] * x[2], x[0] + x[1]]), time + size

    return lax.while_loop(lambda s: (jnp.sum(s[0] * s[0]) < 9) & (s[1] < 8), step, (x, jnp.float32(0)))


def _limited(x: Any) -> Any:
    """A sum that goes on where its mask says, as `jax.scipy.special` writes them, and a count that all share."""

    def step(state: Any) -> Any:
        is_on, term, total, count = state
        term, new = term * x / (count + 1), total + term
        more = is_on & (jnp.abs(term) > 1e-3 * jnp.abs(new))
        return more, jnp.where(is_on, term, state[1]), jnp.where(is_on, new, total), count + 1

    start = (x == x, jnp.ones_like(x), jnp.zeros_like(x), jnp.float32(0))
    return lax.while_loop(lambda s: jnp.any(s[0]) & (s[3] < 6), step, start)[2]


MASKED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "roots": (lambda x: jax.vmap(_root)(1 + jnp.abs(x)), ("f32[331]",)),
    "roots-of-a-table": (lambda x: jax.vmap(jax.vmap(_root))(1 + jnp.abs(x)), ("f32[9,33]",)),
    "roots-f64": (lambda x: jax.vmap(_root)(1 + jnp.abs(x)), ("f64[33]",)),
    "orbits": (jax.vmap(_orbit), ("f32[33,3]",)),
    "series": (_limited, ("f32[331]",)),
}
"""Loops that run until no element needs another iteration."""

SHORT: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "filter": (_kalman, ("f32[9,2]",)),
    "filters": (jax.vmap(_kalman, 1, 1), ("f32[9,33,2]",)),
    "quaternions": (_quaternions, ("f32[9,33,3]",)),
    "quaternions-f64": (_quaternions, ("f64[9,3,19,3]",)),
    "quaternions-bf16": (_quaternions, ("bf16[9,33,3]",)),
    "windows": (_shifted, ("f32[9,33]",)),
    "windows-s16": (_shifted, ("s16[9,33]",)),
    "words": (_words, ("u32[33]",)),
    "delays": (_delays, ("f32[11,33]",)),
    "pivots": (_pivots, ("f32[4,4]",)),
    "pivots-of-a-batch": (jax.vmap(_pivots), ("f32[33,4,4]",)),
    "prefixes": (_prefixes, ("f32[33,4]",)),
}
"""Loops whose states have few numbers for each row, of which each depends on all of its row."""

_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "gates": (gates, ("f32[33,5,17]", "f32[5,17]")),
    "gradient-of-gates": (_gradient, ("f32[33,5,17]", "f32[5,17]")),
    "gates-of-a-batch": (jax.vmap(gates), ("f32[3,33,17]", "f32[3,17]")),
    "average": (_average, ("f32[67,331]",)),
    "average-bf16": (_average, ("bf16[67,33]",)),
    "average-f64": (_average, ("f64[67,3,1,5]",)),
    "average-of-numbers": (_average, ("f32[331]",)),
    "reverse": (_reverse, ("f32[35,129]",)),
    "reverse-of-one": (_reverse, ("f32[1,129]",)),
    "several-states": (_several, ("f32[10,7,3]",)),
    "unchanging-arrays": (_unchanging, ("f32[9,5,33]", "f32[33]", "f32[5]")),
    "random-words": (_random_words, ("u32[331]",)),
    "mandelbrot": (_mandelbrot, ("c64[331]",)),
    "counters": (_down, ("s32[33]",)),
    "state-space": (_state_space, ("f32[20,37]", "f32[20,37]", "f32[37,16]", "f32[20,16]")),
    "state-space-of-a-batch": (
        jax.vmap(_state_space, (0, 0, None, 0)),
        ("f32[3,9,5]", "f32[3,9,5]", "f32[5,4]", "f32[3,9,4]"),
    ),
    **{
        f"contractions-{dtype}": (
            _contractions,
            (f"{dtype}[9,3,5]", f"{dtype}[5,8]", f"{dtype}[9,3,8]", f"{dtype}[9,3,8]"),
        )
        for dtype in ("f32", "bf16", "s32")
    },
    "euler": (_euler, ("f32[33,7]",)),
    "times": (_times, ("f32[9,3,11]",)),
    "rows": (_rows, ("f32[9,5,8]",)),
    "rows-of-two": (_rows, ("f32[9,1,2]",)),
    "rows-of-a-warp": (_rows, ("f32[4,67,32]",)),
    "rows-f64": (_rows, ("f64[4,9,4]",)),
    "flags": (_flags, ("pred[11,33]",)),
    "map": (lambda x: lax.map(lambda y: jnp.sin(y) * 2, x), ("f32[13,33]",)),
    "map-of-numbers": (lambda x: lax.map(lambda y: jnp.sin(y) * 2, x), ("f32[331]",)),
    "map-of-rows": (lambda x: lax.map(lambda y: (jnp.sum(y, -1), y - jnp.max(y)), x), ("f32[13,8]",)),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for name, (function, specs) in (_PROGRAMS | SHORT | MASKED).items():
        yield TestProgram(name, function, specs)
    yield TestProgram("special-values", _maxima, ("f32[9,40]",), _special)
