"""What is the same in each iteration of a loop is computed before it, and the numbers are those of `jax.jit`."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.interface.explanation import explain


def forward_pass(rates: jax.Array, scores: jax.Array) -> jax.Array:
    """A hidden Markov model, whose transitions are normalised as the loop's body sees them."""

    def step(now: jax.Array, score: jax.Array) -> tuple[jax.Array, jax.Array]:
        moved = now[:, None] + jax.nn.log_softmax(rates)
        now = jax.nn.logsumexp(moved, axis=0) + score
        return now, now.max()

    now, found = lax.scan(step, scores[0], scores[1:])
    return now + found.sum()


def power_iteration(rates: jax.Array, scores: jax.Array) -> jax.Array:
    def step(_: int, x: jax.Array) -> jax.Array:
        weights = jnp.exp(-(rates**2))
        x = x @ (weights / weights.sum(1, keepdims=True)).T
        return x / jnp.abs(x).max()

    return lax.fori_loop(0, 10, step, scores)


def until_small(rates: jax.Array, scores: jax.Array) -> jax.Array:
    """A loop of unknown length, which does not run for scores that are small."""

    def step(x: jax.Array) -> jax.Array:
        return 0.5 * x * jnp.tanh(rates.sum(0))

    return lax.while_loop(lambda x: jnp.abs(x).max() > 1e-3, step, scores)


def nested(rates: jax.Array, scores: jax.Array) -> jax.Array:
    """The norm is the same in both loops, the product with the outer state in the inner one."""

    def inner(_: int, states: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, y = states
        return x, 0.5 * y + (x * rates).sum(1) / jnp.linalg.norm(rates, axis=1)

    def outer(_: int, x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 5, inner, (x, x))[1] / 2

    return lax.fori_loop(0, 4, outer, scores[0])


def arrays(size: int = 64) -> tuple[jax.Array, jax.Array]:
    generator = np.random.default_rng(0)
    rates, scores = generator.standard_normal((size, size)), generator.standard_normal((30, size))
    return jnp.asarray(rates, jnp.float32), jnp.asarray(scores, jnp.float32)


PROGRAMS = [forward_pass, power_iteration, until_small, nested]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("factor", [1.0, 0.0])
def test_values(program: Callable[..., jax.Array], factor: float) -> None:
    rates, scores = arrays()
    found, expected = (jit(program)(rates, factor * scores) for jit in (xgpu.jit, jax.jit))
    scale = float(jnp.nanmax(jnp.abs(expected), initial=1e-6))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5 * scale)


def test_values_of_gradients() -> None:
    gradient = jax.grad(lambda *given: forward_pass(*given).sum(), (0, 1))
    for mine, theirs in zip(*(jit(gradient)(*arrays()) for jit in (xgpu.jit, jax.jit)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5 * float(jnp.abs(theirs).max()))


def test_values_that_are_not_finite() -> None:
    rates, scores = arrays()
    rates = rates.at[3].set(jnp.inf).at[7, 5].set(jnp.nan)
    for program in (forward_pass, until_small):
        np.testing.assert_allclose(xgpu.jit(program)(rates, scores), jax.jit(program)(rates, scores), rtol=2e-5)


def calls_in_loop(program: Callable[..., Any], *given: Any) -> int:
    """Return how many kernels the body of a program's only loop launches."""
    text = xgpu.compile(program, *given, target="sm_90a").ir("fusions")
    (body,) = re.findall(r"\} do \{(.*?)\n    \}", text, re.DOTALL)
    return body.count("func.call")


def test_kernels_of_a_step() -> None:
    """Of two steps, written in turns: the scores, their maximum and its place. None is of the rates alone."""
    assert calls_in_loop(forward_pass, *arrays()) == 6
    assert calls_in_loop(until_small, *arrays()) <= 2


def test_what_is_left_is_one_kernel() -> None:
    """Each element follows from itself alone, once the sums are there."""

    def program(rates: jax.Array, scores: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 100, lambda _, x: jnp.tanh(x + rates.sum(0)), scores)

    emitters = [each.emitter for each in explain(xgpu.compile(program, *arrays(), target="sm_90a")).kernels]
    assert emitters == ["reduce_column", "recurrence"]


def test_operands_of_products_are_made_once() -> None:
    """Weights in lower precision, and no kernel but the one after the product."""

    def program(x: jax.Array, w: jax.Array) -> jax.Array:
        def step(_: int, x: jax.Array) -> jax.Array:
            return jnp.tanh(x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32)

        return lax.fori_loop(0, 3, step, x)

    text = xgpu.compile(program, "f32[512,1024]", "f32[1024,1024]", target="sm_90a").ir("prepared")
    before, inside = text.split("stablehlo.while")
    assert "tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>" in before
    assert "tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>" not in inside


def product_beside_sorting(rates: jax.Array, scores: jax.Array) -> jax.Array:
    """A large product of two terms is added to the state; sorting keeps the loop from being one kernel."""

    def step(_: int, states: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        large, small = states
        return jnp.tanh(large) + rates[:, :2] @ scores[:2], jnp.sort(small) / 2 + small.sum()

    large, small = lax.fori_loop(0, 4, step, (jnp.zeros((rates.shape[0], scores.shape[1])), scores[0]))
    return large + small


def product_beside_sums(rates: jax.Array, scores: jax.Array) -> jax.Array:
    """As before, but with six terms, and divided by a sum first: a kernel after that would read the product."""
    rates = rates[:128]

    def step(_: int, states: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        large, small = states
        return large + rates[:, :6] @ scores[:6] / (small**2).sum(), jnp.sort(small) / 2 + small.sum()

    large, small = lax.fori_loop(0, 4, step, (jnp.zeros((rates.shape[0], scores.shape[1])), scores[0]))
    return large + small


@pytest.mark.parametrize(("program", "is_before"), [(product_beside_sorting, False), (product_beside_sums, True)])
def test_products_that_threads_compute_are_not_read(program: Callable[..., Any], is_before: bool) -> None:
    """Unless they would be stored in each iteration."""
    text = xgpu.compile(program, "f32[512,512]", "f32[30,512]", target="sm_90a").ir("prepared")
    before, inside = text.split("stablehlo.while")
    assert ("dot_general" in before) == is_before != ("dot_general" in inside)


@pytest.mark.parametrize("program", [product_beside_sorting, product_beside_sums])
def test_values_of_products(program: Callable[..., Any]) -> None:
    found, expected = (jit(program)(*arrays()) for jit in (xgpu.jit, jax.jit))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5 * float(jnp.abs(expected).max()))


def test_what_follows_from_a_sum_twice_is_looked_at_once() -> None:
    """Each of 64 values is read twice by the next one."""

    def program(rates: jax.Array, scores: jax.Array) -> jax.Array:
        def step(_: int, x: jax.Array) -> jax.Array:
            y = rates.sum(0)
            for _ in range(64):
                y = jnp.sin(y) * jnp.cos(y)
            return x * y

        return lax.fori_loop(0, 3, step, scores)

    assert xgpu.compile(program, *arrays(), target="sm_90a").ir("prepared").count("stablehlo.sine") == 64
