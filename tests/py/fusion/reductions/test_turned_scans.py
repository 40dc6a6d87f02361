"""Scans from the other end, and of all elements before each, are one kernel however they are written."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu

type Function = Callable[[jax.Array], jax.Array]


def exclusive(x: jax.Array) -> jax.Array:
    return jnp.concatenate([jnp.zeros_like(x[:, :1]), jnp.cumsum(x[:, :-1], 1)], 1)


PROGRAMS: dict[str, Function] = {
    "reversed sums": lambda x: jnp.flip(jnp.cumsum(jnp.flip(x, 1), 1), 1),
    "reversed products": lambda x: jnp.flip(jnp.cumprod(jnp.flip(x, 1), 1), 1),
    "reversed columns": lambda x: jnp.flip(jnp.cumsum(jnp.flip(x, 0), 0), 0) * 2,
    "sums before": exclusive,
    "sums before by two places": lambda x: jnp.pad(jnp.cumsum(x, 1), ((0, 0), (2, 0))),
    "sums before, and the last one cut off": lambda x: jnp.pad(jnp.cumsum(x, 1), ((0, 0), (1, 0)))[:, :-1],
    "largest before": lambda x: jnp.concatenate(
        [jnp.full_like(x[:, :1], -jnp.inf), jax.lax.cummax(x[:, :-1], axis=1)], 1
    ),
    "sums after": lambda x: jnp.concatenate(
        [jax.lax.cumsum(x[:, 1:], axis=1, reverse=True), jnp.zeros_like(x[:, :1])], 1
    ),
    "derivative of sums before": jax.grad(lambda x: jnp.sum(exclusive(x) * jnp.sin(x))),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("spec", ["f32[7,131]", "bf16[3,64]"])
def test_one_kernel(name: str, spec: str) -> None:
    program = xgpu.compile(PROGRAMS[name], spec)
    # The scan of the derivative comes before the sum of both parts.
    count = 3 if name.startswith("derivative") else 1
    assert len(program.launches) <= count
    inputs = program.random_inputs(1)
    (result,), (expected,) = program.run(*inputs, sanitize=True), program.reference(*inputs)
    tolerance = 8 * float(jnp.finfo(expected.dtype).eps)
    wide = (np.asarray(each, np.float64) for each in (result, expected))
    np.testing.assert_allclose(*wide, rtol=tolerance, atol=30 * tolerance)


def test_a_first_element_of_minus_zero_stays_what_it_is_for_xla() -> None:
    def shifted(x: jax.Array) -> jax.Array:
        return jnp.concatenate([jnp.zeros_like(x[:1]), jax.lax.associative_scan(jnp.add, x[:-1])])

    x = np.array([-0.0, -0.0, 1.0, 2.0], np.float32)
    program = xgpu.compile(shifted, x)
    (result,), (expected,) = program.run(x), program.reference(x)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
