"""Scatters that add to one array in turn, or to zeros that are added up: one kernel, and the same sums."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.runtime.compare import compare


def sums(x: Any, i: Any, u: Any) -> Any:
    """Of arrays of zeros, of which one is added to with as many more updates."""
    parts = [jnp.zeros_like(x).at[(i + 7 * k) % 50].add(u * (k + 1)) for k in range(5)]
    return sum(parts) + jnp.zeros_like(x).at[jnp.concatenate([i, i + 1])].add(jnp.concatenate([u, u]))


def in_turn(x: Any, i: Any, u: Any) -> Any:
    for k in range(20):
        x = x.at[i + k].add(u - k)
    return x


def gradient_of_corners(x: Any, i: Any, u: Any) -> Any:
    """Of reads at four places around each."""
    return jax.grad(lambda x: sum((x[i + k] * u * (k + 1)).sum() for k in range(4)))(x)


def rows(x: Any, i: Any, u: Any) -> Any:
    """Of windows, in two forms that cannot be concatenated."""
    x = x.reshape(8, 8)
    for k in range(3):
        x = x.at[(i + k) % 8].max(u[:, None] + jnp.arange(8, dtype=x.dtype))
        x = x.at[:, (i + k) % 8].max(u[None] * jnp.arange(8, dtype=x.dtype)[:, None])
    return x


@pytest.mark.parametrize("dtype", ["f32", "s32", "bf16", "f64", "u8"])
@pytest.mark.parametrize(("function", "scatters"), [(sums, 1), (in_turn, 2), (gradient_of_corners, 1), (rows, 2)])
def test_merged(function: Callable[..., Any], scatters: int, dtype: str) -> None:
    if function is gradient_of_corners and dtype in ("s32", "u8"):
        pytest.skip("integers have no gradient")
    program = xgpu.compile(function, f"{dtype}[64]", "s32[48]", f"{dtype}[48]")
    assert str(program.ir("fusions")).count('"stablehlo.scatter"') == scatters
    x, _, u = program.random_inputs()
    # Some outside of the array, some negative, most several times.
    i = np.asarray(np.random.default_rng(1).integers(-70, 70, 48), np.int32)
    small = np.asarray(np.random.default_rng(2).integers(-3, 4, 48)).astype(u.dtype)
    for updates in (u, small):
        (found,), (expected,) = program.run(x, i, updates), program.reference(x, i, updates)
        assert compare(found, expected).agrees
        if dtype in ("s32", "u8"):
            np.testing.assert_array_equal(found, expected)


def test_signs_of_zeros() -> None:
    """A sum of zeros has a positive one, whichever of them is updated by a negative one."""

    def function(i: Any, u: Any) -> Any:
        zeros = jnp.zeros(8)
        return zeros.at[i].add(u) + zeros.at[i + 4].add(u)

    program = xgpu.compile(function, "s32[4]", "f32[4]")
    found = program.run(np.arange(4, dtype=np.int32), np.full(4, -0.0, np.float32))[0]
    assert not np.signbit(found).any()


def test_negative_zeros_are_not_added_to() -> None:
    """What is added to them is added to positive zeros, where nothing else is."""

    def function(i: Any, u: Any) -> Any:
        return jnp.full(8, -0.0).at[i].add(u) + jnp.full(8, -0.0).at[i + 4].add(u)

    program = xgpu.compile(function, "s32[2]", "f32[2]")
    assert str(program.ir("fusions")).count('"stablehlo.scatter"') == 2


def test_scatters_in_loops_are_merged() -> None:
    def function(x: Any, i: Any, u: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            return x.at[i].add(u).at[i + 1].add(2 * u)

        return jax.lax.fori_loop(0, 3, step, x)

    program = xgpu.compile(function, "s32[64]", "s32[48]", "s32[48]")
    assert str(program.ir("fusions")).count('"stablehlo.scatter"') == 1
    inputs = program.random_inputs()
    np.testing.assert_array_equal(program.run(*inputs)[0], program.reference(*inputs)[0])
