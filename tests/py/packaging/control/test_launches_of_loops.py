"""Few launches an iteration: what only the next iteration needs is a part of a kernel that is launched anyway."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.py.packaging.packages import Library, exported
from xgpu.packaging.model import CopyStep, LaunchStep, LoopStep, all_steps

F = np.float32
R = np.random.default_rng(0)


def summed(w: jax.Array, u: jax.Array, h: jax.Array, xs: jax.Array) -> Any:
    """A product, sums of its rows, and their stack: the counter's next value is computed beside the sums."""

    def step(h: jax.Array, x: jax.Array) -> Any:
        h = jnp.tanh(h @ w + x @ u)
        return h, h.sum(axis=1)

    return lax.scan(step, h, xs)


def stacked(w: jax.Array, u: jax.Array, h: jax.Array, xs: jax.Array) -> Any:
    """A product and its stack: the counter's next value is computed beside the update of the stack."""

    def step(h: jax.Array, x: jax.Array) -> Any:
        h = jnp.tanh(h @ w + x @ u)
        return h, h

    return lax.scan(step, h, xs)


def beside(a: jax.Array, x: jax.Array) -> Any:
    """Loops compute the product, and the counter beside it."""
    return lax.fori_loop(0, 5, lambda i, x: jnp.tanh(x @ a) * 0.5 + x[i], x)


def alone(x: jax.Array) -> Any:
    """Nothing is launched that could compute the counter, too."""
    return lax.fori_loop(0, 5, lambda i, x: jnp.tanh(jnp.cumsum(x, 0)) * 0.5 + x[i], x)


def updated(a: jax.Array, x: jax.Array, y: jax.Array) -> Any:
    """What could wait reads an array that is updated in place meanwhile."""

    def step(i: Any, state: Any) -> Any:
        x, y, z = state
        z = x * 0.5 + y
        y = jnp.tanh(y @ a)
        return x.at[i].set(y.sum(axis=0)), y, z

    return lax.fori_loop(0, 5, step, (x, y, x))


def random(*shapes: tuple[int, ...]) -> list[Any]:
    return [R.standard_normal(shape, F) / 8 for shape in shapes]


NETWORK = ((64, 64), (32, 64), (16, 64), (7, 16, 32))


@pytest.mark.parametrize(
    ("function", "arrays", "launches"),
    [
        (summed, random(*NETWORK), 3),
        (stacked, random(*NETWORK), 2),
        (beside, random((32, 32), (32, 32)), 1),
        (alone, random((32, 32)), 2),
        (updated, random((32, 32), (32, 32), (32, 32)), 3),
    ],
)
def test_launches_of_an_iteration(
    function: Callable[..., Any], arrays: list[Any], launches: int, tmp_path: Path
) -> None:
    package = exported(function, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays), to=tmp_path)
    (loop,) = (each for each in all_steps(package.signatures[0].variants[0].steps) if isinstance(each, LoopStep))
    assert sum(isinstance(step, LaunchStep) for step in loop.body) == launches
    assert not any(isinstance(step, CopyStep) for step in loop.body)
    expected = jax.tree.leaves(function(*map(jnp.asarray, arrays)))
    for found, other in zip(Library(tmp_path, package).run(arrays), expected, strict=True):
        np.testing.assert_allclose(found, other, rtol=2e-5, atol=2e-5)
