"""Sorts of packages, which kernels compute: by ranks, in tiles that are merged, of several keys, and stable."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.interface.api import Compiled

NUMBERS = np.random.default_rng(0)
ROWS = NUMBERS.standard_normal((3, 2500)).astype(np.float32)
ROWS[0, :50], ROWS[1, :30], ROWS[1, 30:60], ROWS[2, 5:7] = np.nan, 0.0, -0.0, (np.inf, -np.inf)
EQUAL = NUMBERS.integers(0, 50, 5001).astype(np.int32)

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rows in tiles": (lambda x: jnp.sort(x, axis=1), (ROWS,)),
    "columns": (lambda x: jnp.sort(x, axis=0), (ROWS,)),
    "a middle dimension": (lambda x: jnp.argsort(x, axis=1), (EQUAL[:4800].reshape(4, 200, 6),)),
    "stable, with a last run that has no neighbour": (jnp.argsort, (EQUAL[:2049],)),
    "stable, downwards": (lambda x: jnp.argsort(x, descending=True), (EQUAL[:700],)),
    "two keys and a value": (
        lambda a, b, c: lax.sort((a, b, c), num_keys=2),
        (EQUAL, (EQUAL[::-1] % 5).astype(np.int8), np.arange(5001.0, dtype=np.float32)),
    ),
    "the largest": (lambda x: lax.top_k(x, 40), (ROWS,)),
    "the largest of whole numbers": (lambda x: lax.top_k(x, 9), (EQUAL[:600],)),
    "one element": (jnp.sort, (EQUAL[:1],)),
    "none": (jnp.sort, (EQUAL[:0],)),
    "pred": (jnp.sort, (EQUAL[:90] % 2 == 0,)),
    "complex": (jnp.sort, ((ROWS[2, :60] + 1j * ROWS[1, :60]).astype(np.complex64),)),
    "in a loop": (lambda x: lax.scan(lambda c, a: (jnp.sort(c + a), c[3]), x[0], x), (ROWS[:, 60:90],)),
    "in a branch": (lambda i, x: lax.cond(i > 0, lambda x: jnp.sort(x)[::2] * 3, lambda x: x[:300], x),
                    (np.int32(1), ROWS[2, :600])),
}  # fmt: skip


def compiled(function: Callable[..., Any], arguments: tuple[Any, ...], **options: Any) -> Compiled:
    return xgpu.compile(function, *arguments, options=xgpu.Options(products="all", **options))


@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str) -> None:
    function, arguments = CASES[name]
    found = compiled(function, arguments, control_flow="launches").run(*arguments)
    for result, wanted in zip(found, jax.tree.leaves(function(*arguments)), strict=True):
        np.testing.assert_array_equal(result, wanted)
        if result.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(result), np.signbit(wanted))


@pytest.mark.parametrize("name", ["rows in tiles", "two keys and a value"])
def test_accesses_are_right(name: str) -> None:
    function, arguments = CASES[name]
    compiled(function, arguments, control_flow="launches").run(*arguments, sanitize=True)


def test_xla_sorts_where_it_runs_the_program() -> None:
    text = compiled(lambda x: jnp.sort(x) + 1, (EQUAL,)).ir("prepared")
    assert "stablehlo.sort" in text
