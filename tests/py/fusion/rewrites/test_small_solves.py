"""Factors of small matrices, and solutions of small systems, are arithmetic of kernels and agree with libraries."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

_RANDOM = np.random.default_rng(0)
LIBRARIES = ("custom_call", "triangular_solve", "stablehlo.cholesky")


def _matrices(size: int, *batch: int) -> jax.Array:
    return jnp.asarray(_RANDOM.standard_normal((*batch, size, size)), jnp.float32)


def _agree(function: Callable[..., Any], *arguments: jax.Array) -> None:
    """Compare with JAX: it calls LAPACK, whose sums may be fused."""
    for left, right in zip(*(jax.tree.leaves(jit(function)(*arguments)) for jit in (jax.jit, xgpu.jit)), strict=True):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(left, right, rtol=2e-4, atol=2e-5)


def _is_all_kernels(function: Callable[..., Any], *arguments: jax.Array) -> bool:
    specs = [f"f32[{','.join(map(str, each.shape))}]" for each in arguments]
    text = xgpu.compile(function, *specs, target="sm_90a").ir("fusions")
    return not any(name in text for name in LIBRARIES)


@pytest.mark.parametrize(("size", "batch"), [(1, (7,)), (2, ()), (3, (2, 3)), (4, (7,)), (5, ())])
def test_factors_and_solutions(size: int, batch: tuple[int, ...]) -> None:
    a, b = _matrices(size, *batch), _matrices(size, *batch)
    positive = a @ a.mT + jnp.eye(size)
    for function, arguments in (
        (lambda a: lax.linalg.lu(a), (a,)),
        (jnp.linalg.solve, (a, b)),
        (jnp.linalg.inv, (a,)),
        (lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(a)), (a,)),
        (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.cholesky(a, upper=True)), (positive,)),
    ):
        _agree(function, *arguments)
        assert _is_all_kernels(function, *arguments) == (size <= 4)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("left", [True, False])
def test_triangular_systems(lower: bool, transposed: bool, unit: bool, left: bool) -> None:
    def function(a: Any, b: Any) -> Any:
        return lax.linalg.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit
        )

    for size in (1, 8, 9) if left else (3,):
        right = jnp.asarray(_RANDOM.standard_normal((5, size, 2) if left else (5, 2, size)), jnp.float32)
        arguments = _matrices(size, 5) / size + 3 * jnp.eye(size), right
        _agree(function, *arguments)
        assert _is_all_kernels(function, *arguments) == (size <= 8)


def test_pivots() -> None:
    """Zeros on the diagonal, equal elements, singular matrices and infinities."""
    rows = (
        [[0, 1], [1, 0]],
        [[0, 1], [0, 0]],
        [[0, 0], [0, 0]],
        [[1, 2], [2, 4]],
        [[1, 1], [-1, 1]],
        [[np.inf, 1], [1, 2]],
    )
    a = jnp.asarray(rows, jnp.float32)
    _agree(lambda a: (lax.linalg.lu(a), jnp.linalg.det(a)), a)
    threes = jnp.asarray([[[0, 0, 1], [0, 2, 0], [-3, 0, 0]], [[1, 1, 1], [1, 1, 1], [1, 1, 2]]], jnp.float32)
    _agree(lax.linalg.lu, threes)


def test_cholesky_of_what_is_not_positive() -> None:
    """All of the factor is NaN."""
    a = jnp.asarray([[[1, 2], [2, 1]], [[0, 0], [0, 1]], [[-1, 0], [0, 1]], [[np.nan, 0], [0, 1]], [[4, 2], [2, 3]]])
    _agree(jnp.linalg.cholesky, a.astype(jnp.float32))


def test_gradients_and_empty_batches() -> None:
    a, b = _matrices(3, 4), _matrices(3, 4)
    _agree(jax.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2), (0, 1)), a + 4 * jnp.eye(3), b)
    _agree(jnp.linalg.inv, jnp.zeros((0, 3, 3)))


def test_x64() -> None:
    with jax.enable_x64(True):
        a = jnp.asarray(_RANDOM.standard_normal((6, 4, 4)))
        np.testing.assert_allclose(xgpu.jit(jnp.linalg.inv)(a), jnp.linalg.inv(a), rtol=1e-9)


def test_a_loop_that_solves_is_one_kernel() -> None:
    """A filter that solves a 3 x 3 system in each step."""

    def filtered(z: Any) -> Any:
        move, see = jnp.eye(6) + 0.1 * jnp.eye(6, k=3), jnp.eye(3, 6)

        def step(state: Any, z: Any) -> Any:
            x, p = state
            x, p = move @ x, move @ p @ move.T + 0.1 * jnp.eye(6)
            gain = jnp.linalg.solve(see @ p @ see.T + 0.5 * jnp.eye(3), see @ p).T
            return (x + gain @ (z - see @ x), p - gain @ see @ p), x

        return lax.scan(step, (jnp.zeros(6), jnp.eye(6)), z)[1]

    z = jnp.asarray(_RANDOM.standard_normal((20, 3)), jnp.float32)
    _agree(filtered, z)
    compiled = xgpu.compile(filtered, "f32[20,3]", target="sm_90a")
    assert "recurrence" in [kernel.emitter for kernel in compiled.kernels]
    assert len(compiled.launches) <= 6


def test_linear_time_in_blocks_of_many() -> None:
    """A long program of such systems keeps its library calls."""

    def function(a: Any, b: Any) -> Any:
        for _ in range(20):
            b = jnp.linalg.solve(a + b, b)
        return b

    assert not _is_all_kernels(function, _matrices(4), _matrices(4))
