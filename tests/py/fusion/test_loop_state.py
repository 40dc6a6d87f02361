"""The state of a loop is overwritten where it is read, also in branches, and XLA adds no copies of large arrays."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def step_in_a_branch(total: jax.Array, rows: jax.Array) -> jax.Array:
    """Change a state in the steps that a condition chooses, as gradients of checkpointed loops do."""

    def step(number: Any, total: jax.Array) -> jax.Array:
        row = lax.dynamic_index_in_dim(rows, number, keepdims=False)
        return lax.cond(row[0] > 0, lambda total: total + jnp.sort(rows.T @ rows, 0) @ row, lambda total: total, total)

    return lax.fori_loop(0, rows.shape[0], step, total)


def different_branches(total: jax.Array, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    def step(number: Any, states: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        row = lax.dynamic_index_in_dim(rows, number, keepdims=False)
        return lax.switch(
            number % 3,
            [
                lambda states: (states[0] + rows.T @ rows @ row, jnp.sin(states[1]) * row),
                lambda states: (states[0] - row.T @ rows.T @ rows, states[1]),
                lambda states: (states[1] / 2, states[0] / 4),
            ],
            states,
        )

    return lax.fori_loop(0, rows.shape[0], step, (total, total + 1))


def branches_in_branches(total: jax.Array, rows: jax.Array) -> jax.Array:
    def step(number: Any, total: jax.Array) -> jax.Array:
        row = lax.dynamic_index_in_dim(rows, number, keepdims=False)

        def inner(total: jax.Array) -> jax.Array:
            return lax.cond(row[1] > 0, lambda total: total * 2, lambda total: total - row.T @ rows.T @ rows, total)

        return lax.cond(row[0] > 0, inner, lambda total: total + 1, total)

    return lax.fori_loop(0, rows.shape[0], step, total)


def read_by_a_later_kernel(total: jax.Array, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The next state needs a product of the present one, whose kernel comes first; that of another state reads both."""

    def step(states: tuple[jax.Array, jax.Array], row: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        first, second = states
        moved = jnp.tanh(first) + row
        return (moved, second / 2 + (moved @ moved)[0] * first), None

    return lax.scan(step, (total, total + 1), rows)[0]


PROGRAMS = [step_in_a_branch, different_branches, branches_in_branches, read_by_a_later_kernel]


def arguments() -> tuple[jax.Array, jax.Array]:
    generator = np.random.default_rng(0)
    return tuple(jnp.asarray(generator.standard_normal(shape), jnp.float32) for shape in ((32, 32), (7, 32)))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_values(program: Callable[..., Any]) -> None:
    found, expected = (jit(program)(*arguments()) for jit in (xgpu.jit, jax.jit))
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)


def copies_in_loops(program: Callable[..., Any]) -> list[str]:
    """Return what XLA copies in computations that others call, and that has more than a number."""
    text = xgpu.jit(program).lower(*arguments()).compile().as_text()
    computations = re.split(r"\n(?=\S)", text)
    inner = [each for each in computations if not each.startswith(("ENTRY", "HloModule"))]
    return re.findall(r"= (\w+\[\d[^ ]*) copy\(", "\n".join(inner))


def test_no_copies_of_what_a_branch_computes() -> None:
    assert copies_in_loops(step_in_a_branch) == []


def test_no_more_copies_than_branches_change_places() -> None:
    assert len(copies_in_loops(different_branches)) <= 2


def test_branches_in_branches_are_not_copied_twice() -> None:
    assert len(copies_in_loops(branches_in_branches)) <= 1


def test_what_a_later_kernel_reads_is_copied_once() -> None:
    assert len(copies_in_loops(read_by_a_later_kernel)) <= 1
