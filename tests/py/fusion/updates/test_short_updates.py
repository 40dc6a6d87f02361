"""Updates of arrays that one access of a warp holds: parts of the kernels around them, not launches of their own."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from xgpu.runtime.compare import compare


def _in_turn(x: jax.Array) -> jax.Array:
    """Each element becomes what its neighbour and the first one make, which may be new already."""
    for i in range(5):
        x = x.at[i].set(x[i + 1] * 2 + x[0])
    return x


def _added(x: jax.Array) -> jax.Array:
    """Numbers are added to what is there, at places counted from both ends."""
    for i in range(5):
        x = x.at[-1 - i].add(x[i] * 2).at[i].multiply(3)
    return x


def _in_rows(x: jax.Array) -> jax.Array:
    """A row, then an element of another one."""
    rows = x.reshape(4, 4)
    rows = rows.at[1].set(rows[0] + rows[3])
    return rows.at[2, 1].max(rows[1, 0])


def _out_of_bounds(x: jax.Array) -> jax.Array:
    """Updates beyond the end are dropped."""
    return x.at[16].set(x[0]).at[15].add(x[1])


def _check(program: xgpu.Compiled) -> None:
    inputs = program.random_inputs()
    found, expected = program.run(*inputs, on="host"), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


@pytest.mark.parametrize("function", [_in_turn, _added, _in_rows, _out_of_bounds])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "s32"])
def test_updates_in_turn_are_one_kernel(function: Callable[[jax.Array], jax.Array], dtype: str) -> None:
    program = xgpu.compile(function, f"{dtype}[16]", target="sm_90a")
    assert len(program.kernels) == 1
    _check(program)


def test_many_updates_that_read_each_other_are_one_kernel() -> None:
    """No element is computed as often as there are ways from it to the result."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(40):
            x = x.at[i % 31].set(jnp.cos(x[i % 31 + 1]) * x[i * 7 % 32] + x[0])
        return x

    program = xgpu.compile(function, "f32[32]", target="sm_90a")
    assert len(program.kernels) == 1
    _check(program)


@pytest.mark.parametrize(("length", "kernels"), [(128, 1), (129, 2)])
def test_longer_arrays_are_updated_in_place(length: int, kernels: int) -> None:
    program = xgpu.compile(lambda x: x.at[3].add(x[0] * 2), f"f32[{length}]", target="sm_90a")
    assert len(program.kernels) == kernels
    _check(program)


def test_steps_of_a_loop_of_unknown_length_are_one_kernel() -> None:
    """Loops that are counted are kernels themselves."""

    def step(x: jax.Array) -> jax.Array:
        return x.at[0].add(x[1] * x[1] + 1).at[2].set(x[0])

    program = xgpu.compile(lambda x: lax.while_loop(lambda x: x[0] < 5, step, x), "f32[5]", target="sm_90a")
    assert len(program.kernels) == 1
    _check(program)
