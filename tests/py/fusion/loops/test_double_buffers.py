"""Loops whose next state is computed from neighbours in the present one: XLA copies no state, and numbers are right."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

States = tuple[jax.Array, ...]


def mean_of_neighbours(x: jax.Array) -> jax.Array:
    return 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])


def jacobi(states: States) -> States:
    first, second = states
    second = second.at[1:-1, 1:-1].set(mean_of_neighbours(first))
    return first.at[1:-1, 1:-1].set(mean_of_neighbours(second)), second


def fields(states: States) -> States:
    """Two fields that take turns, with a border and a number that are updated in place."""
    electric, magnetic, time = states
    electric = electric.at[0].set(time)
    electric = electric.at[1:].add(-0.5 * (magnetic[1:] - magnetic[:-1]))
    magnetic = magnetic.at[:-1].add(-0.7 * (electric[1:] - electric[:-1]))
    return electric, magnetic, time + 1


def wave(states: States) -> States:
    """The present state becomes the one before: three are needed at a time."""
    before, now = states
    return now, (1.5 * now - before).at[1:-1, 1:-1].add(0.1 * mean_of_neighbours(now))


def scores(states: States) -> States:
    """The forward pass of a hidden Markov model: a kernel reduces the scores before, and adds to what comes of that."""
    now, rates = states
    return jax.nn.logsumexp(now[:, None, :] + rates[:20], axis=2) - 1, rates


def repeated(step: Callable[[States], States], trips: int) -> Callable[[States], States]:
    return lambda states: lax.fori_loop(0, trips, lambda _, states: step(states), states)


def stacked(states: States) -> tuple[States, jax.Array]:
    """A scan that stores a row of each step in place, and reads numbers by the step."""

    def step(states: States, factor: jax.Array) -> tuple[States, jax.Array]:
        first, second = states
        moved = 0.5 * jnp.roll(first, 1, 0) + factor * second
        return (second, moved), moved.sum(1)

    return lax.scan(step, states, jnp.linspace(0, 1, 12))


def gradient(states: States) -> States:
    """The gradient has the places of updates from around the loop, and stores what it needs of each step in place."""
    run = repeated(lambda states: (jnp.sin(states[0].at[1:-1, 1:-1].set(mean_of_neighbours(states[0]))),), 10)
    return jax.grad(lambda states: run(states)[0].sum())(states[:1])


def arrays(shape: tuple[int, int] = (24, 20)) -> States:
    generator = np.random.default_rng(0)
    return tuple(jnp.asarray(generator.standard_normal(shape), jnp.float32) for _ in range(2))


def with_time() -> States:
    return *arrays(), jnp.float32(0)


PROGRAMS = {
    "jacobi": (repeated(jacobi, 10), arrays()),
    "jacobi, odd": (repeated(jacobi, 9), arrays()),
    "jacobi, prime": (repeated(jacobi, 11), arrays()),
    "fields": (repeated(fields, 10), with_time()),
    "wave": (repeated(wave, 9), arrays()),
    "wave, prime": (repeated(wave, 11), arrays()),
    "scores": (repeated(scores, 10), arrays()),
    "stacked": (stacked, arrays()),
    "gradient": (gradient, arrays()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    program, states = PROGRAMS[name]
    found, expected = (jit(program)(states) for jit in (xgpu.jit, jax.jit))
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-5 * float(jnp.abs(theirs).max()))


def copies_in_loops(program: Callable[..., Any], states: States) -> list[str]:
    """Return what XLA copies in computations that others call, and that has more than a number."""
    text = xgpu.jit(program).lower(states).compile().as_text()
    computations = re.split(r"\n(?=\S)", text)
    inner = [each for each in computations if not each.startswith(("ENTRY", "HloModule"))]
    return re.findall(r"= (\w+\[\d[^ ]*) copy\(", "\n".join(inner))


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_copies(name: str) -> None:
    assert copies_in_loops(*PROGRAMS[name]) == []


def test_xla_knows_how_often_the_loop_runs() -> None:
    text = xgpu.jit(repeated(jacobi, 10)).lower(arrays()).compile().as_text()
    assert re.findall(r'known_trip_count":\{"n":"(\d+)"', text) == ["5"]


def test_kernels_of_a_gradient() -> None:
    """One for each step of either loop: where the slice is updated is known, though the loop is given it."""
    text = xgpu.compile(gradient, arrays(), target="sm_90a").ir("fusions")
    loops = re.split(r"stablehlo\.while", text)[1:]
    assert [each.split("stablehlo.return")[1].count("func.call") for each in loops] == [2, 2]


def test_updates_before_a_barrier_are_in_place() -> None:
    text = xgpu.compile(stacked, arrays((400, 400)), target="sm_90a").ir("fusions")
    updates = [line for line in text.splitlines() if 'xgpu.emitter = "update_slice"' in line]
    assert len(updates) == 3 and all("xgpu.aliases" in line for line in updates)


def test_packages_exchange_addresses_instead() -> None:
    options = xgpu.Options(control_flow="launches")
    text = xgpu.compile(repeated(jacobi, 10), arrays(), options=options).ir("prepared")
    assert "optimization_barrier" not in text
