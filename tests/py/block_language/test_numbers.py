"""Block programs compute what functions of whole arrays do: by XLA, and by their kernels on this machine."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.block_language.programs import CASES, Case, linear_silu, row_statistics, silu_of_product


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
