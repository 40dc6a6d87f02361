"""Kernels of one level that overwrite states which others of them read: launches, their order, and what XLA copies."""

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
Step = Callable[[States], States]


def numbers_and_rows(states: States) -> States:
    """Rows read three numbers each, and one of these the rows: less is copied if the rows are made first, or last."""
    first, second, third, rows = states
    moved = jnp.tanh(rows + first[:, None]) * second[:, None] - third[:, None]
    return first / 2 + rows[:, 0], second / 2 + 1, third + second, moved


def one_of_each(states: States) -> States:
    """A copy less is no gain if it takes a launch more."""
    first, _, _, rows = states
    return first / 2 + rows[:, 0], *states[1:3], jnp.tanh(rows + first[:, None])


def rows_alone(states: States) -> States:
    """Nothing reads what others overwrite."""
    first, second, third, rows = states
    return first / 2 + second, second / 2 + 1, third + second, jnp.tanh(rows)


def sorted_between(states: States) -> States:
    """What sorts numbers that a kernel overwrites runs before, though the kernel needs nothing of that."""
    first, second, third, rows = states
    return first / 2 + second, jnp.tanh(second), third / 2 + jnp.sort(second), rows


PROGRAMS: dict[str, tuple[Step, int, int]] = {
    "numbers and rows": (numbers_and_rows, 2, 1),
    "one of each": (one_of_each, 1, 2),
    "rows alone": (rows_alone, 1, 0),
    "sorted between": (sorted_between, 1, 0),
}
"""With the kernels and the copies of a step, at most."""


def arrays() -> States:
    generator = np.random.default_rng(0)
    return tuple(jnp.asarray(generator.standard_normal(shape), jnp.float32) for shape in ((40,), (40,), (40,), (40, 8)))


def repeated(step: Step, states: States, trips: jax.Array) -> States:
    """Repeat a step until a number that is not known before."""
    return lax.while_loop(lambda each: each[0] < trips, lambda each: (each[0] + 1, *step(each[1:])), (0, *states))[1:]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    run = partial(repeated, PROGRAMS[name][0])
    found, expected = (jit(run)(arrays(), jnp.int32(5)) for jit in (xgpu.jit, jax.jit))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_launches_and_copies(name: str) -> None:
    step, kernels, copies = PROGRAMS[name]
    text = xgpu.jit(partial(repeated, step)).lower(arrays(), jnp.int32(5)).compile().as_text()
    (body,) = (
        each
        for each in re.split(r"\n(?=\S)", text)
        if each.startswith(tuple(f"%{name} " for name in re.findall(r"body=%([\w.\-]+)", text)))
    )

    assert body.count('"xgpu.jit"') <= kernels
    assert len(re.findall(r"= (\w+\[\d[^ ]*) copy\(", body)) <= copies


def test_a_barrier_is_between_two_launches() -> None:
    """By it XLA knows that one of them has read what the other one overwrites."""
    states = arrays()
    compiled = xgpu.compile(partial(repeated, numbers_and_rows), states, jnp.int32(5), target="sm_90a")
    (body,) = re.findall(r"\} do \{(.*?)\n    \}", compiled.ir("fusions"), re.DOTALL)
    first, second = body.split("optimization_barrier")
    assert first.count("func.call") == second.count("func.call") == 1
