"""Which reductions of rows and loops become one kernel, which must not, and what that kernel stores."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.fusion.groups import MOST_ROOTS
from xgpu.fusion.rows import LONGEST_ROW

X = "f32[64,40]"
Case = tuple[Callable[..., Any], tuple[str, ...], list[tuple[str, int]]]
"""A function, its arguments, and of each kernel the emitter and how many values it stores."""


def largest(x: Any) -> Any:
    return jnp.max(x, 1, keepdims=True)


def differences(count: int) -> Callable[[Any], Any]:
    return lambda x: [x * (i + 1) - largest(x) for i in range(count)]


def last_positive(x: Any) -> Any:
    """The last positive number of each row, or zero: the order of the elements matters."""
    return lax.reduce(x, np.float32(0), lambda a, b: jnp.where(b > 0, b, a), (1,))[:, None]


def statistics(x: Any) -> Any:
    y = jax.nn.softmax(x)
    return y, largest(x)


MERGED: dict[str, Case] = {
    "softmax": (jax.nn.softmax, (X,), [("rows", 1)]),
    "two reductions alone": (lambda x: jnp.sum(jnp.exp(x - largest(x)), 1), (X,), [("rows", 1)]),
    "the longest row": (jax.nn.softmax, (f"f32[2,{LONGEST_ROW}]",), [("rows", 1)]),
    "softmax of softmax": (lambda x: jax.nn.softmax(jax.nn.softmax(x)), (X,), [("rows", 1)]),
    "two at once": (lambda x, y: jax.nn.softmax(x) + jax.nn.softmax(y), (X, X), [("rows", 1)]),
    "elements of the row elsewhere": (lambda x: x[:, ::-1] - largest(x), (X,), [("rows", 1)]),
    "gathered scales": (lambda x, y, i: (x - largest(x)) * y[i], (X, "f32[7]", "s32[40]"), [("rows", 1)]),
    "results that are needed": (statistics, (X,), [("rows", 2)]),
    "a sum that is reduced": (lambda x, y: (x + y, jax.nn.softmax(x + y)), (X, X), [("rows", 2)]),
    "as many as there may be": (differences(MOST_ROOTS - 1), (X,), [("rows", MOST_ROOTS - 1)]),
}
APART: dict[str, Case] = {
    "rolled": (lambda x: x - jnp.roll(largest(x), 1, 0), (X,), [("reduce_row", 1), ("loop", 1)]),
    "reversed": (lambda x: x - largest(x)[::-1], (X,), [("reduce_row", 1), ("loop", 1)]),
    "of its row and another": (
        lambda x: x * largest(x) - largest(x)[::-1] * 2,
        (X,),
        [("reduce_row", 1), ("loop", 1)],
    ),
    "of another dimension": (lambda x: x - largest(x).T, ("f32[40,40]",), [("reduce_row", 1), ("loop", 1)]),
    "gathered": (lambda x, i: x - largest(x)[i], (X, "s32[64]"), [("reduce_row", 1), ("loop", 1)]),
    "part of a row": (lambda x: (x - largest(x))[:, 3:], (X,), [("reduce_row", 1), ("loop", 1)]),
    "then the columns": (lambda x: jnp.sum(x - largest(x), 0), (X,), [("reduce_row", 1), ("reduce_column", 1)]),
    "beside the columns": (
        lambda x: x - largest(x) - jnp.sum(x, 0),
        (X,),
        [("reduce_row", 1), ("reduce_column", 1), ("loop", 1)],
    ),
    "outer dimensions": (
        lambda x: x - jnp.sum(x, (0, 2), keepdims=True),
        ("f32[8,9,40]",),
        [("reduce_row", 1), ("loop", 1)],
    ),
    "order matters": (lambda x: x - last_positive(x), (X,), [("reduce_row", 1), ("loop", 1)]),
    "order matters later": (
        lambda x: x - last_positive(x - largest(x) / 2),
        (X,),
        [("reduce_row", 1), ("reduce_row", 1), ("loop", 1)],
    ),
    "packed": (
        lambda x: (x - largest(x)).astype(jnp.int4),
        (X,),
        [("reduce_row", 1), ("loop", 1)],
    ),
    "too long": (
        jax.nn.softmax,
        (f"f32[2,{LONGEST_ROW + 1}]",),
        [("reduce_row", 1), ("reduce_row", 1), ("loop", 1)],
    ),
    "too many": (differences(MOST_ROOTS), (X,), [("reduce_row", 1), ("loop", MOST_ROOTS)]),
}
PARTLY: dict[str, Case] = {
    "transposed": (lambda x: jax.nn.softmax(x).T, ("f32[65,40]",), [("rows", 2), ("transpose", 1)]),
    "columns of the results": (
        lambda x: (jax.nn.softmax(x), jnp.sum(jax.nn.softmax(x), 0)),
        (X,),
        [("rows", 2), ("reduce_column", 2)],
    ),
    "updated": (
        lambda x, i: jax.nn.softmax(x).at[i].add(1.0),
        (X, "s32[9]"),
        [("rows", 1), ("scatter", 1)],
    ),
    "sorted": (lambda x: x * jnp.sort(largest(x), 0), (X,), [("reduce_row", 1), ("loop", 1)]),
    "sorted beside": (
        lambda x: (x - largest(x), jnp.sort(largest(x), 0)),
        (X,),
        [("rows", 2)],
    ),
    "sorted before": (
        lambda x, y: jax.nn.softmax(x * jnp.sort(y)),
        (X, "f32[40]"),
        [("rows", 1)],
    ),
}
CASES = MERGED | APART | PARTLY


@pytest.mark.parametrize("name", CASES)
def test_kernels(name: str) -> None:
    function, specs, expected = CASES[name]
    compiled = xgpu.compile(function, *specs)
    assert [(each.kernel.emitter, len(each.outputs)) for each in compiled.launches] == expected
    inputs = compiled.random_inputs(1)
    if compiled.main is None:
        results, reference = compiled.run(*inputs), compiled.reference(*inputs)
    else:
        results, reference = (jax.tree.leaves(jit(function)(*inputs)) for jit in (xgpu.jit, jax.jit))
    for result, wanted in zip(results, reference, strict=True):
        # Functions of two libraries, and sums of up to 16384 numbers in another order.
        np.testing.assert_allclose(np.asarray(result, "f8"), np.asarray(wanted, "f8"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["softmax of softmax", "results that are needed", "of its row and another"])
def test_no_access_is_wrong(name: str) -> None:
    function, specs, _ = CASES[name]
    compiled = xgpu.compile(function, *specs)
    compiled.run(*compiled.random_inputs(1), sanitize=True)


def test_rows_for_several_warps_do_not_race() -> None:
    compiled = xgpu.compile(jax.nn.softmax, "f32[3,2050]")
    assert compiled.kernels[0].emitter == "rows"
    compiled.run(*compiled.random_inputs(1), sanitize=True)
