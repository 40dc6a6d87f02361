"""States that a reduction reads for each of its rows: its kernel overwrites them, with all that has a number a row."""

import re
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

States = tuple[jax.Array, ...]
Step = Callable[[States, jax.Array], States]


def bisection(states: States, x: jax.Array, axis: int = 1) -> States:
    """Halve an interval for each row by the sum of what is right of its middle; count steps, and those to the left."""
    low, high, found, count = states
    middle = 0.5 * (low + high)
    is_right = jnp.maximum(x - jnp.expand_dims(middle, axis), 0).sum(axis) > 1
    moved = jnp.where(is_right, middle, low), jnp.where(is_right, high, middle)
    return *moved, jnp.where(count > 2, middle, found), count + 1


def of_columns(states: States, x: jax.Array) -> States:
    return bisection(states, x, 0)


def normalised(states: States, x: jax.Array) -> States:
    """Rows of three dimensions are divided by a state that follows from their sum."""
    scale, largest = states
    scale = scale + 0.1 * jnp.log1p(jnp.abs(x / scale[:, None, None])).sum((1, 2))
    return scale, jnp.maximum(largest, states[0])


def kept(states: States, x: jax.Array) -> States:
    """Dimensions that are reduced are kept, of one element."""
    (largest,) = states
    return (0.5 * largest + jnp.maximum(x, largest).max(1, keepdims=True),)


def turned(states: States, x: jax.Array) -> States:
    """A state is read by the threads that have a sum, and by those that have another one, which is stored there."""
    first, second, scale = states
    total = (x * scale).sum(2)
    return total + first, total.T - first + second, scale / 2


def transposed(states: States, x: jax.Array) -> States:
    """Each sum is stored in the place of what other threads read."""
    return ((x * states[0][:, :, None]).sum(2).T / 9,)


def turned_columns(states: States, x: jax.Array) -> States:
    return (jnp.tanh((x * states[0][:, None, :]).sum(1)).T,)


def turned_beside(states: States, x: jax.Array) -> States:
    """The turned sum is another state's, which it does not read."""
    first, second = states
    return (x * second[:, :, None]).sum(2) / 9, (x * first[:, :, None]).sum(2).T / 9


def neighbours(states: States, x: jax.Array) -> States:
    """The sums read states of other rows: these are copied."""
    low, last = states
    return jnp.tanh((x - jnp.roll(low, 1)[:, None]).sum(1)), last + low


def counted(states: States, x: jax.Array) -> States:
    """A state that the sums read follows from none of them: it might be stored before all have read it."""
    count, total = states
    return count + 1, total / 2 + jnp.sin(x * count[:, None]).sum(1)


def numbers(rows: int, count: int) -> States:
    return tuple(jnp.asarray(np.random.default_rng(i).uniform(1, 2, rows), jnp.float32) for i in range(count))


def array(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(9).standard_normal(shape), jnp.float32).at[0].set(jnp.nan)


def interval(rows: int) -> States:
    low, high, found = numbers(rows, 3)
    return low - 4, high + 4, found, jnp.zeros(rows, jnp.int32)


PROGRAMS: dict[str, tuple[Step, States, jax.Array]] = {
    "rows": (bisection, interval(100), array(100, 33)),
    "long rows": (bisection, interval(3), array(3, 5000)),
    "short rows": (bisection, interval(1000), array(1000, 3)),
    "columns": (of_columns, interval(100), array(33, 100)),
    "few columns": (of_columns, interval(3), array(1000, 3)),
    "three dimensions": (normalised, numbers(17, 2), array(17, 5, 9)),
    "kept": (kept, (numbers(33, 1)[0][:, None],), array(33, 40)),
    "turned": (turned, (array(9, 9), array(9, 9), jnp.float32(1)), array(9, 9, 100)),
    "transposed": (transposed, (array(9, 9),), array(9, 9, 32)),
    "turned columns": (turned_columns, (array(9, 9),), array(9, 33, 9)),
    "turned beside": (turned_beside, (array(9, 9), array(9, 9) + 1), array(9, 9, 32)),
    "neighbours": (neighbours, numbers(33, 2), array(33, 40)),
    "counted": (counted, numbers(33, 2), array(33, 40)),
}
COPIED = ("turned", "transposed", "turned columns", "turned beside", "neighbours", "counted")


def repeated(step: Step, states: States, x: jax.Array, trips: jax.Array) -> States:
    """Repeat a step until a number that is not known before."""
    return lax.while_loop(lambda each: each[0] < trips, lambda each: (each[0] + 1, *step(each[1:], x)), (0, *states))[
        1:
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    step, states, x = PROGRAMS[name]
    run = partial(repeated, step)
    found, expected = (jit(run)(states, x, jnp.int32(5)) for jit in (xgpu.jit, jax.jit))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-4)


def body_of(name: str) -> str:
    """Return the computation that XLA runs in each iteration."""
    step, states, x = PROGRAMS[name]
    text = xgpu.jit(partial(repeated, step)).lower(states, x, jnp.int32(5)).compile().as_text()
    (name,) = re.findall(r"body=%([\w.\-]+)", text)
    return next(each for each in re.split(r"\n(?=\S)", text) if each.startswith(f"%{name} "))


def copies(body: str) -> list[str]:
    return re.findall(r"= (\w+\[\d[^ ]*) copy\(", body)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in COPIED])
def test_one_kernel_without_copies(name: str) -> None:
    body = body_of(name)
    assert body.count(" custom-call(") == 1 and copies(body) == []


@pytest.mark.parametrize("name", COPIED)
def test_what_other_threads_read_is_copied(name: str) -> None:
    assert len(copies(body_of(name))) == 1
