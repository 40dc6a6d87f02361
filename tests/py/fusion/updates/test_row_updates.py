"""Scatters of one update for each row into equal numbers: each element tells by itself whether it is updated."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.interface.explanation import explain
from xgpu.runtime.compare import compare

_DRAWN = np.random.default_rng(0)


def _places(least: int, most: int, *shape: int, dtype: Any = np.int32) -> Any:
    """Return indices, some of them outside of the array where the bounds are."""
    return _DRAWN.integers(least, most, shape).astype(dtype)


def _numbers(*shape: int) -> Any:
    return _DRAWN.standard_normal(shape).astype(np.float32)


def _taken(mode: str, axis: int = 1) -> Callable[..., Any]:
    def cubes(x: Any, i: Any) -> Any:
        return (jnp.take_along_axis(x, i, axis, mode=mode) ** 3).sum()

    return jax.grad(cubes)


def _by_vectors(u: Any, i: Any) -> Any:
    numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
    return jax.vmap(lambda u, i: jax.lax.scatter_add(jnp.zeros(300), i[None], u, numbers))(u, i)


def _by_counts(u: Any, i: Any) -> Any:
    indices = jnp.stack([jax.lax.iota(i.dtype, len(i)), i], 1)
    numbers = jax.lax.ScatterDimensionNumbers((), (0, 1), (0, 1))
    return jax.lax.scatter_add(jnp.zeros((len(i), 9)), indices, u, numbers)


def _entropy(x: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(x), labels[..., None], -1).mean()


def _run(function: Callable[..., Any], *arguments: Any) -> xgpu.Compiled:
    compiled = xgpu.compile(function, *arguments)
    results = zip(compiled.run(*arguments, sanitize=True), compiled.reference(*arguments), strict=True)
    assert all(compare(result, expected).agrees for result, expected in results)
    return compiled


def _scatters(compiled: xgpu.Compiled) -> int:
    return compiled.ir("prepared").count("stablehlo.scatter")


_ROWS = np.arange(7, dtype=np.int32)
_SELECTED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "entropy": (jax.grad(_entropy), (_numbers(3, 4, 33), _places(0, 33, 3, 4))),
    "taken, clipped": (_taken("clip"), (_numbers(7, 13), _places(-20, 20, 7, 1))),
    "taken, filled": (_taken("fill"), (_numbers(4, 13, 6), _places(-20, 20, 4, 1, 6))),
    "first axis": (_taken("clip", 0), (_numbers(7, 13), _places(0, 7, 1, 13))),
    "added": (lambda u, i: jnp.zeros((7, 13)).at[jnp.arange(7), i].add(u), (_numbers(7), _places(-20, 20, 7))),
    "negative zeros": (lambda u, i: jnp.zeros((7, 13)).at[jnp.arange(7), i].add(u), (-np.zeros(7, "f"), _ROWS)),
    "NaN": (lambda u, i: jnp.ones((7, 13)).at[jnp.arange(7), i].set(u), (np.full(7, np.nan, "f"), _ROWS)),
    "windows": (lambda u, i: jnp.ones((7, 13, 5)).at[jnp.arange(7), i].set(u), (_numbers(7, 5), _places(0, 15, 7))),
    "around": (lambda u, i: jnp.ones((7, 5, 13)).at[jnp.arange(7), :, i].set(u), (_numbers(7, 5), _places(0, 15, 7))),
    "two components": (
        lambda u, i, j: jnp.zeros((4, 6, 5, 9)).at[jnp.arange(4)[:, None], jnp.arange(6), i, j].add(u),
        (_numbers(4, 6), _places(0, 5, 4, 6), _places(0, 12, 4, 6)),
    ),
    "a small array in memory": (
        lambda x, u, i: x.at[jnp.arange(7), i].add(u),
        (_numbers(7, 13), _numbers(7), _places(-20, 20, 7)),
    ),
    "one update": (lambda u, i: jnp.zeros(13).at[i].set(u), (_numbers(), _places(0, 13))),
    "batches": (
        jax.vmap(jax.vmap(lambda u, i: jnp.zeros(13).at[i].add(u))),
        (_numbers(7, 3), _places(-15, 15, 7, 3)),
    ),
    "s8": (_by_vectors, (_numbers(3), np.array([5, -1, 100], np.int8))),
    "u32": (_by_vectors, (_numbers(3), np.array([5, 2**32 - 1, 299], np.uint32))),
}
_KEPT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "no rows": (lambda u, i: jnp.zeros(13).at[i].add(u), (_numbers(7), _places(0, 13, 7))),
    "two of a row": (lambda u, i: jnp.zeros((7, 13)).at[jnp.arange(7) // 2, i].add(u), (_numbers(7), _places(0, 9, 7))),
    "several": (_taken("clip"), (_numbers(7, 13), _places(0, 13, 7, 2))),
    "fewer rows": (lambda u, i: jnp.zeros((9, 13)).at[jnp.arange(7), i].add(u), (_numbers(7), _places(0, 13, 7))),
    "more rows": (lambda u, i: jnp.zeros((5, 13)).at[jnp.arange(7), i].add(u), (_numbers(7), _places(0, 13, 7))),
    "counts that wrap": (_by_counts, (_numbers(200), _places(0, 9, 200, dtype=np.int8))),
    "one update in memory": (lambda x, u, i: x.at[i].set(u), (_numbers(99), _numbers(), _places(0, 99))),
    "a large array in memory": (
        lambda x, u, i: x.at[jnp.arange(7), i].add(u),
        (_numbers(7, 9999), _numbers(7), _places(0, 9999, 7)),
    ),
}


@pytest.mark.parametrize("name", _SELECTED)
def test_one_update_of_each_row(name: str) -> None:
    function, arguments = _SELECTED[name]
    assert _scatters(_run(function, *arguments)) == 0


@pytest.mark.parametrize("name", _KEPT)
def test_other_scatters_stay(name: str) -> None:
    function, arguments = _KEPT[name]
    assert _scatters(_run(function, *arguments)) > 0


@pytest.mark.parametrize("classes", [1000, 50_257])
def test_no_gradient_of_a_cross_entropy_is_filled_with_zeros(classes: int) -> None:
    """Kernels write the gradient itself and no other array of its size."""
    compiled = xgpu.compile(jax.value_and_grad(_entropy), f"f32[512,{classes}]", "s32[512]")
    large = [kernel for kernel in explain(compiled).kernels if kernel.bytes >= 4 * 512 * classes]
    assert sum(kernel.bytes for kernel in large) <= 4 * 512 * classes * (2.1 if classes == 1000 else 4.1)


def test_indices_that_are_joined_along_rows_are_no_components() -> None:
    """Two index vectors of two components: joined along the rows there are as many parts, too."""
    numbers = jax.lax.ScatterDimensionNumbers((), (1, 2), (1, 2), (0,), (0,))

    def function(first: jax.Array, second: jax.Array, updates: jax.Array) -> jax.Array:
        zeros, indices = jnp.zeros((4, 3, 3)), jnp.concatenate([first, second])
        return jax.lax.scatter_add(zeros, indices, updates, numbers, mode="promise_in_bounds")

    arrays = jnp.array([[0, 1], [2, 2]]), jnp.array([[1, 0], [2, 1]]), jnp.arange(1.0, 5.0)
    np.testing.assert_array_equal(xgpu.jit(function)(*arrays), jax.jit(function)(*arrays))
