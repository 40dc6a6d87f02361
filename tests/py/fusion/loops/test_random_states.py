"""Random loops whose steps reduce rows or columns in stages, and carry arrays and numbers that they read.

A kernel of reductions overwrites a state if no thread reads an element of it later, in this order or in another one.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py import effort

type Make = Callable[..., Any]

SHAPES = ((40, 64), (17, 33), (128, 256), (9, 1000), (300, 24), (1, 50), (33, 4096))
SQUARES = ((16, 16, 64), (6, 6, 6, 32), (40, 40, 9))
REDUCTIONS = (jnp.sum, jnp.max, jnp.mean)
ARRAYS: Sequence[Make] = (
    lambda x, y, first, second: 0.5 * x + jnp.tanh(y - first),
    lambda x, y, first, second: 0.9 * x + 0.1 * second,
    lambda x, y, first, second: jnp.tanh(x + second),
    lambda x, y, first, second: 0.5 * x,
    lambda x, y, first, second: 0.3 * x + 0.2 * y * first,
)
"""The next value of an array, from another and from what two reductions of its rows end as."""
NUMBERS: Sequence[Make] = (
    lambda u, v, first, second: 0.5 * u + 0.1 * second,
    lambda u, v, first, second: 0.9 * u,
    lambda u, v, first, second: jnp.tanh(v + first.T),
    lambda u, v, first, second: 0.5 * v + 0.1 * second.T,
    lambda u, v, first, second: 0.5 * v.T + jnp.tanh(first),
    lambda u, v, first, second: 0.1 * first + 0.1 * u * v.T,
    lambda u, v, first, second: jnp.tanh(second.T + u.T).T,
    lambda u, v, first, second: 0.5 * u[::-1] + 0.1 * second,
)
"""That of the numbers of rows, of which there is one for each, or a square or a cube."""


def drawn(seed: int) -> tuple[Callable[[Any], Any], dict[str, np.ndarray]]:
    """Return a loop over a dictionary of states, and their first values."""
    generator = random.Random(seed)
    shape = generator.choice(generator.choice((SHAPES, SQUARES)))
    # With several numbers to a dimension of equal ones, these may change places.
    axis = generator.choice((0, 1)) if len(shape) == 2 else len(shape) - 1
    first_of, second_of = generator.choices(REDUCTIONS, k=2)
    made = {name: generator.choice(ARRAYS) for name in "xyz"} | {name: generator.choice(NUMBERS) for name in "uv"}
    read = {name: generator.choice("xyz") for name in "xyz"} | {"u": "v", "v": "u"}
    reduced, scaled, steps = generator.choice("xyz"), generator.random() < 0.5, generator.randint(2, 4)

    def step(_: Any, state: Any) -> Any:
        scale = jnp.expand_dims(state["u"], axis) if scaled else 1
        first = first_of(state[reduced] * scale, axis)
        second = second_of(jnp.tanh(state[read[reduced]] - jnp.expand_dims(first, axis)), axis)
        rows = [jnp.expand_dims(each, axis) for each in (first, second)]
        return {
            name: made[name](value, state[read[name]], *(rows if name in "xyz" else (first, second)))
            for name, value in state.items()
        }

    numbers = np.random.default_rng(seed)
    kept = shape[:axis] + shape[axis + 1 :]
    sizes = dict.fromkeys("xyz", shape) | dict.fromkeys("uv", kept)
    values = {name: numbers.uniform(-1, 1, size).astype(np.float32) for name, size in sizes.items()}
    return lambda state: jax.lax.fori_loop(0, steps, step, state), values


@pytest.mark.parametrize("case", range(effort.by_level(6, 16, 60)))
def test_random_states(case: int) -> None:
    function, values = drawn(effort.seed_of_commit() + case)
    found, expected = xgpu.jit(function)(values), jax.jit(function)(values)
    for name, value in expected.items():
        # Sums of thousands of numbers, in another order, a few steps in a row.
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-3 * float(jnp.abs(value).max()), err_msg=name)
