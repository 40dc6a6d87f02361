"""Concatenations of concatenations along other dimensions are one."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xgpu


def _parts(x: Any, rows: int, columns: int) -> list[list[Any]]:
    return [[x[:, i] * (j + 1) - x[:, j] for j in range(columns)] for i in range(rows)]


def _by_rows(x: Any) -> Any:
    return jnp.stack([jnp.stack(row, -1) for row in _parts(x, 3, 4)], 1)


def _by_columns(x: Any) -> Any:
    return jnp.stack([jnp.stack(column, -1) for column in _parts(x, 3, 4)], -1)


def _homogeneous(x: Any) -> Any:
    rotation = jnp.stack([jnp.stack([x[:, 0], x[:, 1]], -1), jnp.stack([-x[:, 1], x[:, 0]], -1)], 1)
    above = jnp.concatenate([rotation, x[:, 2:4, None]], -1)
    return jnp.concatenate([above, jnp.broadcast_to(jnp.array([0.0, 0, 1]), (len(x), 1, 3))], 1)


def _deep(x: Any) -> Any:
    blocks = [[[x[:, i] + k * x[:, j] for i in range(2)] for j in range(2)] for k in range(3)]
    return jnp.stack([jnp.stack([jnp.stack(row, -1) for row in block], -2) for block in blocks], 1)


ONE = {
    "rows": _by_rows,
    "columns": _by_columns,
    "three dimensions": _deep,
    "rows of two lengths": lambda x: jnp.stack([jnp.concatenate([x[:, :2], x[:, 1:]], 1), x[:, [0, 1, 2, 3, 0]]], 1),
    "rows in front": lambda x: jnp.stack([jnp.concatenate([x[k], x[k + 1] * 2]) for k in range(5)]),
}
SEVERAL = {
    "a matrix and what surrounds it": _homogeneous,
    "blocks of rows": lambda x: jnp.concatenate([jnp.concatenate([x, x * 2], 1), jnp.concatenate([x - 1, x], 1)], 0),
    "nothing in a row": lambda x: jnp.stack([jnp.concatenate([x[:, :0], x[:, :3]], 1), x[:, 1:4]], 1),
    "a row elsewhere": lambda x: (row := jnp.stack([x[:, 0], x[:, 1]], -1), jnp.stack([row, row * 2], 1)),
}


def _compiled(function: Any) -> xgpu.Compiled:
    """Compile a function and check that its results are XLA's, to the bit."""
    compiled = xgpu.compile(function, "f32[9,4]")
    inputs = compiled.random_inputs(1)
    for got, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(got, expected)
    return compiled


@pytest.mark.parametrize("function", ONE.values(), ids=ONE)
def test_one_concatenation_is_left(function: Any) -> None:
    assert _compiled(function).ir("prepared").count("stablehlo.concatenate") == 1


@pytest.mark.parametrize("function", SEVERAL.values(), ids=SEVERAL)
def test_others_are_right(function: Any) -> None:
    _compiled(function)
