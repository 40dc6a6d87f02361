"""Numbers that an iteration takes of a slice are read from the array, so that such loops are one kernel."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def bands(x: jax.Array, start: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A recursion whose coefficients are rows of the slice."""

    def step(y: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = (row[0] - row[1] * y) / (2 + jnp.abs(row[4]))
        return y, y

    return lax.scan(step, start, x)


def clamped(x: jax.Array, start: jax.Array) -> jax.Array:
    """The first and the last slices begin where they still lie inside."""
    rows = x[:, 0]

    def step(i: Any, y: jax.Array) -> jax.Array:
        pair = lax.dynamic_slice(rows, (3 * i - 2, 0), (2, start.size))
        return jnp.sin(y) + pair[1] * 0.5 - pair[0]

    return lax.fori_loop(0, 9, step, start)


def columns(x: jax.Array, start: jax.Array) -> jax.Array:
    def step(i: Any, y: jax.Array) -> jax.Array:
        both = lax.dynamic_slice(x, (i, 1, 0), (1, 3, start.size))
        return y * both[0, 0] + both[0, 2]

    return lax.fori_loop(0, 9, step, start)


PROGRAMS = [bands, clamped, columns]


def arguments() -> tuple[jax.Array, jax.Array]:
    generator = np.random.default_rng(0)
    return tuple(jnp.asarray(generator.standard_normal(shape), jnp.float32) for shape in ((20, 5, 64), (64,)))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_values(program: Callable[..., Any]) -> None:
    found, expected = (jit(program)(*arguments()) for jit in (xgpu.jit, jax.jit))
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_one_kernel(program: Callable[..., Any]) -> None:
    assert [kernel.emitter for kernel in xgpu.compile(program, *arguments()).kernels] == ["recurrence"]
