"""Updates of one array at known places, one after the other: one kernel, where the array is soon moved."""

import random
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import xgpu

KINDS = ("set", "add", "multiply", "max", "turned", "whole", "row", "read")


def _drawn(seed: int, rows: int, columns: int) -> Callable[..., Any]:
    """Return a function that updates parts of an array by parts of another, and reads what it was in between."""
    rng = random.Random(seed)
    steps = []
    for _ in range(rng.randrange(2, 8)):
        row, column = rng.randrange(rows), rng.randrange(columns)
        steps.append((rng.choice(KINDS), row, rng.randint(1, rows - row), column, rng.randint(1, columns - column)))

    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
        read = []
        for kind, row, height, column, width in steps:
            place = slice(row, row + height), slice(column, column + width)
            part = y[:height, :width]
            match kind:
                case "turned":
                    x = x.at[place].set(x[place][::-1] + 1)
                case "whole":
                    x = x * 2 + 1
                case "row":
                    x = x.at[row].set(y[0])
                case "read":
                    read.append(x[place].max())
                case _:
                    x = getattr(x.at[place], kind)(part)
        return x, read

    return function


@pytest.mark.parametrize("seed", range(12))
def test_chains_compute_what_their_updates_say(seed: int) -> None:
    rows, columns = random.Random(seed).choice([(3, 5), (70, 33), (64, 256)])
    generator = np.random.default_rng(seed)
    inputs = [generator.integers(-3, 4, (rows, columns)).astype(np.float32) for _ in range(2)]
    function = _drawn(seed, rows, columns)
    for found, expected in zip(*(jax.tree.leaves(jit(function)(*inputs)) for jit in (xgpu.jit, jax.jit)), strict=True):
        np.testing.assert_array_equal(found, expected)


def _set(x: jax.Array, y: jax.Array) -> jax.Array:
    for i in range(8):
        x = x.at[:, i : i + 8].set(y[:, :8] * i)
    return x


def _added(x: jax.Array, y: jax.Array) -> jax.Array:
    for i in range(8):
        x = x.at[:, i : i + 8].add(y[:, :8] * i)
    return x


def _looped(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 5, lambda i, x: x.at[3].set(y[3] * i).at[90].add(x[4]), x)


def _one(x: jax.Array, y: jax.Array) -> jax.Array:
    return x.at[3].set(y[4])


def _from_the_last(x: jax.Array, y: jax.Array) -> jax.Array:
    for i in range(8):
        x = x.at[i + 1].set(lax.sin(x[i]) + y[i])
    return x


def test_each_row_of_those_made_of_the_last_is_computed_once() -> None:
    """As one kernel, a row would be computed again in every later one."""
    compiled = xgpu.compile(_from_the_last, "f32[4096,40]", "f32[4096,40]")
    assert "xgpu.elementwise" not in compiled.ir("prepared")
    assert len(compiled.launches) >= 8
    inputs = compiled.random_inputs(1)
    # The sines of two libraries, one of the other.
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "spec", "emitters"),
    [
        (_set, "f32[4096,40]", {"loop": 1}),
        (_added, "f32[4096,40]", {"loop": 1}),
        (_set, "f32[65536,40]", {"update_slice": 8}),
        (_added, "f32[65536,40]", {"scatter": 8}),
        (_one, "f32[4096,40]", {"update_slice": 1}),
    ],
)
def test_chains_are_one_kernel_where_arrays_are_small(
    function: Callable[..., Any], spec: str, emitters: dict[str, int]
) -> None:
    found = [each.kernel.emitter for each in xgpu.compile(function, spec, spec).launches]
    assert {name: found.count(name) for name in found} == emitters


def test_states_of_loops_are_updated_in_place() -> None:
    text = xgpu.compile(_looped, "f32[4096,40]", "f32[4096,40]").ir("prepared")
    assert "xgpu.elementwise" not in text
