"""Block programs compute what functions of whole arrays do: by XLA, and by their kernels on this machine."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.block_language.programs import CASES, Case, linear_silu, row_statistics, silu_of_product
from xgpu import block


def check(case: Case, results: Any, expected: Any) -> None:
    assert jax.tree.structure(results) == jax.tree.structure(expected)
    for got, wanted in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        wide = [np.asarray(each).astype(np.float64) for each in (got, wanted)]
        np.testing.assert_allclose(*wide, atol=case.atol, rtol=case.rtol)


@pytest.mark.parametrize("name", CASES)
def test_by_xla(name: str) -> None:
    case = CASES[name]
    check(case, case.kernel.reference(*case.arguments), case.function(*map(jnp.asarray, case.arguments)))


@pytest.mark.parametrize("name", CASES)
def test_by_kernels_on_this_machine(name: str) -> None:
    case = CASES[name]
    check(case, case.kernel(*case.arguments), case.function(*map(jnp.asarray, case.arguments)))


@pytest.mark.parametrize("name", ["attention", "row_statistics", "rotated"])
def test_of_every_access(name: str) -> None:
    case = CASES[name]
    compiled = xgpu.compile(case.kernel, *case.arguments)
    results = compiled.run(*case.arguments, sanitize=True)
    check(case, results, jax.tree.leaves(case.function(*map(jnp.asarray, case.arguments))))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, -0.0])
def test_of_special_numbers(number: float) -> None:
    x = np.full((13, 37), 2.0, np.float32)
    x[3, 36], x[12, 0] = number, number
    for run in (row_statistics, row_statistics.reference):
        results = run(x)
        np.testing.assert_array_equal(results["largest"], x.max(1))
        np.testing.assert_array_equal(results["count"], (x != 0).sum(1))


def test_in_programs() -> None:
    x, w = map(jnp.asarray, CASES["linear_silu"].arguments)
    expected = np.asarray(silu_of_product(x, w)).astype(np.float64) * 2 + 1
    for jit in (jax.jit, xgpu.jit):
        found = jit(lambda x, w: linear_silu(x, w) * 2 + 1)(x, w)
        np.testing.assert_allclose(np.asarray(found).astype(np.float64), expected, atol=0.02, rtol=2.0**-6)


def test_of_a_compiled_program_that_calls_one() -> None:
    x, w = CASES["linear_silu"].arguments
    (found,) = xgpu.compile(lambda x, w: linear_silu(x, w) * 2, x, w).run(x, w)
    expected = np.asarray(silu_of_product(jnp.asarray(x), jnp.asarray(w))).astype(np.float64) * 2
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), expected, atol=0.02, rtol=2.0**-6)


def test_are_traced_once_for_types() -> None:
    x, w = CASES["linear_silu"].arguments
    program = linear_silu.program(x, w)
    assert linear_silu.program(x, w) is program
    assert linear_silu.program(x[:32], w) is not program


def test_values_by_keyword_are_told_apart_by_their_types() -> None:
    @block.kernel(threads=32)
    def scaled(x: Any, *, factor: Any) -> Any:
        (i,) = block.grid(1)
        return block.store(x.tile(8, (i,)) * factor, x.shape, (i,))

    x = np.arange(8, dtype=np.int32)
    assert [scaled.reference(x, factor=each).dtype for each in (1, 1.0, True)] == [np.int32, np.float32, np.int32]


def test_threads_trace_at_once() -> None:
    meeting = threading.Barrier(2, timeout=60)

    @block.kernel(threads=32)
    def shifted(x: Any, *, by: int) -> Any:
        (i,) = block.grid(1)
        meeting.wait()
        tile = x.tile(8, (i,))
        meeting.wait()
        return block.store(tile + by, x.shape, (i,))

    x = np.arange(8, dtype=np.float32)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda by: np.asarray(shifted.reference(x, by=by)), (1, 2)))
    np.testing.assert_array_equal(found, [x + 1, x + 2])


def test_a_tile_that_is_squared_many_times() -> None:
    """An operation that reads a tile twice has two ways to it, thirty have 2^30: the compiler goes each once."""

    @block.kernel(threads=128)
    def powers(x: Any, w: Any) -> Any:
        block.grid(1)

        def step(number: Any, so_far: Any) -> Any:
            tile = x.tile((64, 32), (0, number))
            for _ in range(30):
                tile = tile * tile
            total, product = so_far
            return total + jnp.sum(tile, axis=0), product + block.dot(tile, w.tile((32, 64), (number, 0)))

        total, product = block.steps(2, step, (jnp.zeros(32), jnp.zeros((64, 64))))
        return block.store(total, (32,), (0,)), block.store(product, (64, 64), (0, 0))

    x = np.where(np.arange(64 * 64).reshape(64, 64) % 3 == 0, 1 - 2.0**-23, -1).astype(np.float32)
    w = np.ones((64, 64), np.float32)
    # (1 - e)^(2^30), squared thirty times in f32: what it rounds to is the same each time.
    power = x.copy()
    for _ in range(30):
        power *= power
    total, product = powers(x, w)
    np.testing.assert_allclose(total, power[:, :32].sum(0) + power[:, 32:].sum(0), rtol=1e-6)
    np.testing.assert_allclose(product, power @ w, rtol=2.0**-9)
