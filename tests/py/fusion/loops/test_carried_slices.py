"""Loops that write an array slice by slice and read the last slices are one kernel, as those of ``lax.scan`` are."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

ROWS, COLUMNS = 24, 17


def thomas(a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array) -> jax.Array:
    """Tridiagonal systems: two arrays are updated, forwards by additions, and a third one backwards."""

    def forward(i: Any, arrays: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        b, d = arrays
        w = a[:, i] / b[:, i - 1]
        return b.at[:, i].add(-w * c[:, i - 1]), d.at[:, i].add(-w * d[:, i - 1])

    def backward(k: Any, x: jax.Array) -> jax.Array:
        i = COLUMNS - 2 - k
        return x.at[:, i].set((d[:, i] - c[:, i] * x[:, i + 1]) / b[:, i])

    b, d = lax.fori_loop(1, COLUMNS, forward, (b, d))
    return lax.fori_loop(0, COLUMNS - 1, backward, d.at[:, -1].divide(b[:, -1]))


def filtered(x: jax.Array, y: jax.Array) -> jax.Array:
    """Two slices back, of an array whose first slices are there before."""
    return lax.fori_loop(
        2, COLUMNS, lambda j, y: y.at[:, j].set(0.5 * x[:, j] + 0.3 * y[:, j - 1] - 0.2 * y[:, j - 2]), y
    )


def only_two_back(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.fori_loop(2, COLUMNS, lambda j, y: y.at[:, j].set(x[:, j] - 0.2 * y[:, j - 2]), y)


def of_rows(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.fori_loop(1, ROWS, lambda i, y: y.at[i].set(jnp.tanh(x[i] + y[i - 1])), y)


def inner_part(x: jax.Array, y: jax.Array) -> jax.Array:
    """Borders stay; neighbours are read of an array that the loop does not change."""

    def step(j: Any, y: jax.Array) -> jax.Array:
        return y.at[1:-1, j].set(x[:-2, j] + 0.5 * x[2:, j] - 0.3 * y[1:-1, j - 1])

    return lax.fori_loop(1, COLUMNS - 1, step, y)


def clamped_before(x: jax.Array, y: jax.Array) -> jax.Array:
    """In the first iteration the slice is read that it writes, as it was."""
    return lax.fori_loop(0, COLUMNS, lambda j, y: y.at[:, j].set(x[:, j] - 0.5 * y[:, jnp.maximum(j - 1, 0)]), y)


def slices_ahead(x: jax.Array, y: jax.Array) -> jax.Array:
    """What is not written yet is read as it was before the loop."""

    def step(j: Any, y: jax.Array) -> jax.Array:
        return y.at[:, j].set(0.3 * y[:, j - 1] + 0.3 * y[:, j] + 0.3 * y[:, j + 1] + x[:, j])

    return lax.fori_loop(1, COLUMNS - 1, step, y)


def read_again(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What an iteration has written, it reads for another state."""

    def step(j: Any, states: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        y, total = states
        y = y.at[:, j].set(x[:, j] * 0.5 - y[:, j - 1])
        return y, total + jnp.abs(y[:, j]) + y[:, j - 1]

    return lax.fori_loop(1, COLUMNS, step, (y, jnp.zeros(ROWS)))


def by_slices(x: jax.Array, y: jax.Array) -> jax.Array:
    def step(j: Any, y: jax.Array) -> jax.Array:
        before = lax.dynamic_slice(y, (0, j - 1), (ROWS, 1))
        return lax.dynamic_update_slice(y, jnp.sin(before + lax.dynamic_slice(x, (0, j), (ROWS, 1))), (0, j))

    return lax.fori_loop(1, COLUMNS, step, y)


def of_a_batch(x: jax.Array, y: jax.Array) -> jax.Array:
    """``jax.vmap`` makes a gather of one window of each slice that is read."""

    def one(x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.fori_loop(1, COLUMNS, lambda j, y: y.at[j].add(x[j] * y[j - 1]), y)

    return jax.vmap(one)(x, y)


def some_numbers(x: jax.Array, y: jax.Array) -> jax.Array:
    """Most of the array stays as it was; a slice is a number."""
    return lax.fori_loop(1, 9, lambda i, y: y.at[i].set(y[i - 1] * x[i, 0]), y[:, 0])


def without_reads(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 3, lambda j, y: lax.dynamic_update_slice(y, jnp.tanh(x[:, :1] + j), (0, j)), y)


ONE_KERNEL = [
    thomas, filtered, only_two_back, of_rows, inner_part, clamped_before, slices_ahead, read_again, by_slices,
    of_a_batch, some_numbers, without_reads,
]  # fmt: skip


def other_rows(x: jax.Array, y: jax.Array) -> jax.Array:
    """Each element depends on its neighbour's slice."""
    return lax.fori_loop(1, COLUMNS, lambda j, y: y.at[1:, j].set(x[1:, j] + 0.5 * y[:-1, j - 1]), y)


def half_way_back(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.fori_loop(1, COLUMNS, lambda j, y: y.at[:, j].set(x[:, j] + 0.5 * y[:, j // 2]), y)


def written_twice(x: jax.Array, y: jax.Array) -> jax.Array:
    """One iteration writes two slices: the next one reads what was written by both."""

    def step(j: Any, y: jax.Array) -> jax.Array:
        y = y.at[:, j].set(x[:, j] + 0.5 * y[:, j - 1])
        return y.at[:, j + 1].add(0.1 * y[:, j])

    return lax.fori_loop(1, COLUMNS - 1, step, y)


def two_beginnings(x: jax.Array, y: jax.Array) -> jax.Array:
    """Both reads are of the slice before, but in the first iteration of different ones."""

    def step(j: Any, y: jax.Array) -> jax.Array:
        first = jnp.where(j == 1, COLUMNS - 1, j - 1)
        return y.at[:, j].set(x[:, j] + 0.5 * y[:, j - 1] - 0.2 * y[:, first])

    return lax.fori_loop(1, COLUMNS - 1, step, y)


def all_of_it(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.fori_loop(1, COLUMNS, lambda j, y: y.at[:, j].set(x[:, j] + 0.1 * y.sum(1)), y)


def outside(x: jax.Array, y: jax.Array) -> jax.Array:
    """The last updates lie outside, and are dropped."""
    return lax.fori_loop(1, COLUMNS + 3, lambda j, y: y.at[:, j].set(0.5 * y[:, j - 1] + x[:, 0]), y)


def complex_numbers(x: jax.Array, y: jax.Array) -> jax.Array:
    def step(j: Any, y: jax.Array) -> jax.Array:
        return y.at[:, j].set(0.5j * y[:, j - 1] + x[:, j])

    return jnp.abs(lax.fori_loop(1, COLUMNS, step, lax.complex(y, x)))


OTHERS = [complex_numbers, other_rows, half_way_back, written_twice, two_beginnings, all_of_it, outside]


def arguments(program: Callable[..., Any]) -> list[jax.Array]:
    generator = np.random.default_rng(0)
    count = 4 if program is thomas else 2
    return [jnp.asarray(generator.uniform(0.5, 1.5, (ROWS, COLUMNS)) + (i == 1), jnp.float32) for i in range(count)]


@pytest.mark.parametrize("program", [*ONE_KERNEL, *OTHERS], ids=lambda each: each.__name__)
def test_values(program: Callable[..., Any]) -> None:
    given = arguments(program)
    found, expected = (jit(program)(*given) for jit in (xgpu.jit, jax.jit))
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("program", ONE_KERNEL, ids=lambda each: each.__name__)
def test_loops_are_kernels(program: Callable[..., Any]) -> None:
    text = xgpu.compile(program, *arguments(program), target="sm_90a").ir("fusions")
    assert 'xgpu.emitter = "recurrence"' in text
    assert "stablehlo.while" not in text.split("@main")[1]


@pytest.mark.parametrize("program", OTHERS, ids=lambda each: each.__name__)
def test_others_stay_loops(program: Callable[..., Any]) -> None:
    text = xgpu.compile(program, *arguments(program), target="sm_90a").ir("fusions")
    assert "stablehlo.while" in text.split("@main")[1]


def test_gradient() -> None:
    x, y = arguments(filtered)
    found, expected = (jit(jax.grad(lambda x: (filtered(x, y) ** 2).sum()))(x) for jit in (xgpu.jit, jax.jit))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
