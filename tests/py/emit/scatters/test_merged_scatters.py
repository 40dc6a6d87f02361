"""Scatters that add to one array in turn, or to zeros that are added up: one kernel, and the same sums."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.fusion.planning_effort import calls_to_plan
from tests.py.planned import TARGET, planned
from xgpu.frontend.load import load_source
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


@pytest.mark.parametrize(("zeros", "scatters"), [((0.0, 0.0), 1), ((0.0, -0.0), 2), ((-0.0, -0.0), 2)])
def test_signs_of_zeros(zeros: tuple[float, float], scatters: int) -> None:
    """What is added to negative zeros is not added to positive ones: where nothing is, the sum would be another."""

    def function(i: Any, u: Any) -> Any:
        first, second = (jnp.full(8, zero, jnp.float32) for zero in zeros)
        return first.at[i].add(u) + second.at[i + 4].add(u)

    program = xgpu.compile(function, "s32[2]", "f32[2]")
    assert str(program.ir("fusions")).count('"stablehlo.scatter"') == scatters
    (found,) = program.run(np.arange(2, dtype=np.int32), np.full(2, -0.0, np.float32))
    assert np.signbit(found).all() == all(map(np.signbit, zeros))
    assert np.signbit(found).any() == np.signbit(found).all()


def test_what_has_a_better_kernel_is_left() -> None:
    """Many sorted updates, of which neighbours are combined first, and single windows that do not meet."""

    def of_sorted(i: Any, u: Any) -> Any:
        return sum(jax.ops.segment_sum(u * k, i, 1000, indices_are_sorted=True) for k in (1, 2))

    program = xgpu.compile(of_sorted, "s32[1048576]", "f32[1048576]")
    emitters = [kernel.emitter for kernel in program.kernels]
    assert "scatter_sorted" in emitters
    assert "scatter" not in emitters

    def of_windows(x: Any, i: Any, u: Any) -> Any:
        return x.at[i].multiply(u).at[i + 1].multiply(u)

    options = xgpu.Options(deterministic=True)
    program = xgpu.compile(of_windows, "f32[64,512]", "s32[1]", "f32[1,512]", options=options)
    assert "scatter_ordered" not in [kernel.emitter for kernel in program.kernels]


def test_updates_that_are_scatters_themselves() -> None:
    def function(x: Any, i: Any, u: Any) -> Any:
        updates = jnp.zeros_like(u).at[i].add(u).at[i + 1].add(u)
        return x.at[i].add(u * 3).at[i + 2].add(updates)

    program = xgpu.compile(function, "s32[64]", "s32[48]", "s32[48]")
    assert str(program.ir("fusions")).count('"stablehlo.scatter"') == 2
    inputs = program.random_inputs()
    np.testing.assert_array_equal(program.run(*inputs)[0], program.reference(*inputs)[0])


def test_batches_and_deterministic_sums() -> None:
    def function(x: Any, i: Any, u: Any) -> Any:
        return jax.vmap(lambda x, i, u: x.at[i].add(u).at[i + 1].add(2 * u))(x, i, u)

    for options in (xgpu.Options(), xgpu.Options(deterministic=True)):
        program = xgpu.compile(function, "f32[3,16]", "s32[3,8]", "f32[3,8]", options=options)
        inputs = program.random_inputs()
        (found,), (expected,) = program.run(*inputs), program.reference(*inputs)
        assert compare(found, expected).agrees


def test_many_summands_take_linear_time() -> None:
    def steps(count: int) -> int:
        def function(i: Any, u: Any) -> Any:
            return sum(jnp.zeros(64).at[i + k].add(u) for k in range(count))

        return calls_to_plan(load_source(function, ("s32[8]", "f32[8]")))

    steps(16)
    assert steps(128) <= 2.25 * steps(64)


def test_long_sums_with_another_array_are_merged() -> None:
    """What one step has found out of the array is not looked for again in each later one."""

    def function(x: Any, i: Any, u: Any) -> Any:
        for k in range(400):
            x = (jnp.abs(x) if k == 0 else x) + jnp.zeros(64).at[i + k].add(u)
        return x

    program = planned(function, ["f32[64]", "s32[8]", "f32[8]"], TARGET, xgpu.Options())
    assert str(program.ir("prepared")).count('"stablehlo.scatter"') == 25


def test_scatters_in_loops_are_merged() -> None:
    def function(x: Any, i: Any, u: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            return x.at[i].add(u).at[i + 1].add(2 * u)

        return jax.lax.fori_loop(0, 3, step, x)

    program = xgpu.compile(function, "s32[64]", "s32[48]", "s32[48]")
    assert str(program.ir("fusions")).count('"stablehlo.scatter"') == 1
    inputs = program.random_inputs()
    np.testing.assert_array_equal(program.run(*inputs)[0], program.reference(*inputs)[0])


def test_gradients_that_a_loop_adds_up_are_scatters_to_their_sum() -> None:
    """No array of zeros in each step, and no sum with it."""

    def function(table: Any, i: Any, w: Any) -> Any:
        def loss(table: Any) -> Any:
            def step(total: Any, i: Any) -> Any:
                return total + jnp.tanh((table[i] * table[i + 1]) @ w).sum(), None

            return jax.lax.scan(step, 0.0, i)[0]

        return jax.grad(loss)(table)

    program = xgpu.compile(function, "f32[40,8]", "s32[5,24]", "f32[8]")
    text = str(program.ir("fusions"))
    assert text.count('"stablehlo.scatter"') == 1
    assert not re.search(r"stablehlo.add .* tensor<40x8xf32>", text)
    (table, _, w), i = program.random_inputs(), np.random.default_rng(3).integers(-45, 45, (5, 24), np.int32)
    # Where tanh is nearly 1, what its gradient is of has no more digits than its error.
    table *= np.float32(0.25)
    (found,), (expected,) = program.run(table, i, w), program.reference(table, i, w)
    assert compare(found, expected).agrees


@pytest.mark.parametrize(
    ("dtype", "begin", "scatters"),
    [
        ("f32", lambda x: jnp.abs(x), 1),
        ("f32", lambda x: x, 2),
        ("f32", lambda x: x + 1, 1),
        ("f32", lambda x: -jnp.zeros_like(x), 2),
        ("s32", lambda x: x, 1),
        ("bf16", lambda x: jnp.abs(x), 2),
        ("c64", lambda x: x, 2),
        ("c64", lambda x: x + (1 + 1j), 1),
    ],
)
def test_sums_with_another_array(dtype: str, begin: Callable[..., Any], scatters: int) -> None:
    """Scatters to an array that has no negative zeros, which are kept where no update is."""

    def function(x: Any, i: Any, u: Any) -> Any:
        return begin(x) + jnp.zeros_like(x).at[i].add(u) + jnp.zeros_like(x).at[i + 3].add(u)

    program = xgpu.compile(function, f"{dtype}[48]", "s32[48]", f"{dtype}[48]")
    assert str(program.ir("fusions")).count('"stablehlo.scatter"') == scatters
    x, _, u = program.random_inputs()
    x[::5], i = -x[::5] * 0, np.random.default_rng(4).integers(-70, 70, 48, np.int32)
    (found,), (expected,) = program.run(x, i, u), program.reference(x, i, u)
    assert compare(found, expected).agrees
    for part in (np.real, np.imag) if dtype == "c64" else (np.asarray,):
        zero = part(expected) == 0
        np.testing.assert_array_equal(np.signbit(part(found))[zero], np.signbit(part(expected))[zero])
