"""Products of one array with several are one product, whose parts kernels read in place."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def _gates(weights: Any, states: Any, x: Any) -> Any:
    def step(h: Any, x: Any) -> tuple[Any, Any]:
        reset, update = (jax.nn.sigmoid(x @ weights[i] + h @ states[i]) for i in (0, 1))
        new = jnp.tanh(x @ weights[2] + reset * (h @ states[2]))
        h = (1 - update) * new + update * h
        return h, h

    return lax.scan(step, jnp.zeros((x.shape[1], states[0].shape[0])), x)[1]


def _crossed(x: Any, y: Any, a: Any, b: Any) -> Any:
    """Each of two pairs of products of one array has one that needs one of the other pair."""
    first, second = x @ a, y @ b
    return first, jnp.sin(first) * first @ b, second, x @ (jnp.cos(second) * second)


def _dot(x: Any, y: Any) -> Any:
    return lax.dot(x, y, preferred_element_type=jnp.int32)


SQUARE = "f32[64,64]"
PROGRAMS = {
    "a first operand": (lambda x, a, b: (x @ a, x @ b), ("f32[32,64]", SQUARE, "f32[64,48]"), 1),
    "a second operand": (lambda x, y, a: (x @ a) * jnp.sum(y @ a, 0), ("f32[32,64]", "f32[8,64]", SQUARE), 1),
    "one computed operand": (lambda x, a: jnp.sin(x @ a) * (x @ (a + 1)), ("f32[32,64]", SQUARE), 1),
    "of a batch": (
        lambda x, a, b: (jnp.einsum("bij,bkj->bik", x, a), jnp.einsum("bij,bkj->bik", x, b)),
        ("f32[4,32,64]", "f32[4,16,64]", "f32[4,8,64]"),
        1,
    ),
    "8-bit integers": (lambda x, a, b: (_dot(x, a), _dot(x, b)), ("s8[32,64]", "s8[64,64]", "s8[64,48]"), 1),
    "one with a third between": (
        lambda x, a, b: (jnp.tanh((x @ a) @ b), jnp.tanh(x @ b)),
        ("f32[32,64]",) + (SQUARE,) * 2,
        2,
    ),
    "of constants": (lambda x: jnp.tanh(x @ jnp.ones((64, 64))) * (x @ jnp.zeros((64, 64))), ("f32[32,64]",), 2),
    "for other products": (lambda x, a, b: (x @ a) @ (x @ b).T, ("f32[32,64]", SQUARE, SQUARE), 3),
    "one after the other": (lambda x, a: x @ (x @ a), (SQUARE, SQUARE), 2),
    "crossed": (_crossed, (SQUARE,) * 4, 4),
    "of two types": (
        lambda x, a, b: (x @ a, lax.dot(x, b, preferred_element_type=jnp.float32)),
        ("bf16[32,64]", "bf16[64,64]", "bf16[64,48]"),
        2,
    ),
    "large": (lambda x, a, b: (x @ a, x @ b), ("f32[8192,1024]", "f32[1024,2048]", "f32[1024,2048]"), 2),
}
"""Programs with the number of their products after the merge."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_are_merged(name: str) -> None:
    function, specs, products = PROGRAMS[name]
    program = xgpu.compile(lambda *arrays: jax.tree.map(lambda y: y + jnp.sum(y), function(*arrays)), *specs)
    assert program.ir("prepared").count("stablehlo.dot_general") == products
    if name == "large":
        return
    inputs = program.random_inputs(1)
    for found, expected in zip(program.run(*inputs), program.reference(*inputs), strict=True):
        # Sums of 64 products of numbers up to 10, and of up to 4096 of these, in another order.
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-1)


def test_the_gates_of_a_cell_are_two_products_and_a_kernel() -> None:
    weights, states = (tuple(jax.random.normal(jax.random.key(i), (n, 48)) / 8 for i in range(3)) for n in (40, 48))
    x = jax.random.normal(jax.random.key(9), (5, 8, 40))
    text = xgpu.compile(_gates, weights, states, x).ir("fusions")
    body = text.partition("stablehlo.while")[2]
    assert body.count("stablehlo.dot_general") == 2
    # The step's kernel and the update of the stack of all states; the weights are concatenated before the loop.
    assert body.count("call @") == 2
    np.testing.assert_allclose(xgpu.jit(_gates)(weights, states, x), jax.jit(_gates)(weights, states, x), atol=1e-5)


def test_a_state_and_its_place_in_the_stack_are_stored_once() -> None:
    def run(w: Any, x: Any) -> Any:
        def step(h: Any, x: Any) -> tuple[Any, Any]:
            h = jnp.tanh(x @ w + h @ w)
            return h, h

        return lax.scan(step, jnp.ones((8, 16)), x)[1]

    program = xgpu.compile(run, "f32[16,16]", "f32[5,8,16]")
    assert sorted(kernel.emitter for kernel in program.kernels) == ["loop", "update_slice"]
    assert program.ir("fusions").count("stablehlo.dot_general") == 2
    inputs = program.random_inputs(1)
    np.testing.assert_allclose(program.run(*inputs)[0], program.reference(*inputs)[0], atol=1e-5)
