"""Programs of which parts are left to XLA: matrix products, sorts and the like, and control flow around kernels."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.driver.compiler import plan_program
from xgpu.frontend import from_jax


def _layer(x: Any, w: Any) -> Any:
    return jax.nn.softmax(jax.nn.gelu(x @ w) + x)


def _loop(x: Any, w: Any) -> Any:
    def step(carried: Any, i: Any) -> Any:
        after = jnp.tanh(carried @ w) + i
        return after, after.sum(-1)

    return jax.lax.scan(step, x, jnp.arange(3.0))


def _captured(x: Any, w: Any) -> Any:
    scale = jnp.exp(x).sum()
    return jax.lax.cond(x[0, 0] > 0, lambda: w * scale, lambda: w - scale)


def _nested_loops(x: Any, w: Any) -> Any:
    def outer(i: Any, a: Any) -> Any:
        return jax.lax.fori_loop(0, i, lambda j, b: jnp.sin(b + j) @ w, a) / (i + 1)

    return jax.lax.fori_loop(0, 3, outer, x)


def _until_small(x: Any, w: Any) -> Any:
    return jax.lax.while_loop(lambda a: jnp.abs(a).max() > 1, lambda a: a / 2 + jnp.flip(a, 0) / 8, x * 100)


def _sorted(x: Any, w: Any) -> Any:
    return jnp.sort(jnp.sin(x), axis=0)[::2] * 2, jnp.argsort(x)


def _solved(x: Any, w: Any) -> Any:
    matrix = w @ w.T + jnp.eye(w.shape[0]) * 100
    return jnp.linalg.cholesky(matrix) * 2


def _written_in_loop(x: Any, w: Any) -> Any:
    return jax.lax.fori_loop(0, x.shape[0], lambda i, a: a.at[i].set(jnp.cos(a[i - 1]) @ w), x)


def _computed_after_a_cond(x: Any, w: Any) -> Any:
    y = jax.lax.cond(x[0, 0] > 0, lambda: x * 2, lambda: x - 1)
    return jax.lax.fori_loop(0, 2, lambda i, a: (a + y) * 2, x)


def _counters_read_by_a_cond(x: Any, w: Any) -> Any:
    def step(carried: Any) -> Any:
        i, j, a = carried
        next_i = i + 1
        next_j = next_i * 2 - j
        return next_i, next_j, jax.lax.cond(a[0, 0] > 0, lambda b: b + next_i, lambda b: b - next_i, a)

    return jax.lax.while_loop(lambda carried: carried[0] < 5, step, (0, 0, x))


def _scattered_what_is_sorted_too(x: Any, w: Any) -> Any:
    y = x[0] * 2
    more = y + 1
    return jnp.sort(y), x[0].at[jnp.argsort(x[1])].add(more)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "layer": _layer,
    "gradient-of-layer": jax.grad(lambda x, w: jnp.sum(_layer(x, w) ** 2), argnums=(0, 1)),
    "loop": _loop,
    "gradient-of-loop": jax.grad(lambda x, w: jnp.sum(_loop(x, w)[1]), argnums=1),
    "cond-with-captured": _captured,
    "nested-loops": _nested_loops,
    "until-small": _until_small,
    "sorted": _sorted,
    "fourier": lambda x, w: jnp.abs(jnp.fft.rfft(x * 2)) + 1,
    "solved": _solved,
    "written-in-loop": _written_in_loop,
    "product-of-transposed": lambda x, w: (x.T + 1) @ (w * 2).T[: x.shape[0]],
    "convolution": lambda x, w: jax.lax.conv(x[None, None], w[None, None, :9, :9], (1, 1), "SAME") + 1,
    "product-of-views-of-views": lambda x, w: (x + 1).reshape(96, 128, 1).transpose(1, 2, 0).reshape(128, 96) @ x,
    "computed-after-a-cond": _computed_after_a_cond,
    "counters-read-by-a-cond": _counters_read_by_a_cond,
    "scattered-what-is-sorted-too": _scattered_what_is_sorted_too,
    "result-is-an-argument": lambda x, w: (x, w @ w),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_results_as_xla(name: str) -> None:
    generator = np.random.default_rng(1)
    x, w = (generator.standard_normal((n, 128), dtype=np.float32) / 8 for n in (96, 128))
    got, expected = xgpu.jit(PROGRAMS[name])(x, w), jax.jit(PROGRAMS[name])(x, w)
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        # Sums of a hundred f32 numbers in another order, through up to three matrix products.
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


def _planned(function: Callable[..., Any], *specs: str) -> str:
    return str(plan_program(from_jax(function, specs).module)["fusions"])


def test_what_is_left_stays_between_the_calls() -> None:
    text = _planned(_layer, "f32[96,128]", "f32[128,128]")
    main = text[text.index("func.func @main") :]
    assert main.count("stablehlo.") == main.count("stablehlo.dot_general") == 1
    assert main.index("dot_general") < main.index("call @layer_fusion_0")


def test_views_of_arrays_are_left_with_the_product_that_reads_them() -> None:
    text = _planned(lambda x, w: x.T @ w.T, "f32[128,96]", "f32[128,128]")
    assert "call" not in text
    assert "contracting_dims = [0] x [1]" in text
    assert "stablehlo.transpose" not in text


def test_the_counter_of_a_loop_is_left_to_xla() -> None:
    text = _planned(_nested_loops, "f32[96,128]", "f32[128,128]")
    assert "call @" in text[text.index("func.func @main") :]
    assert "-> tensor<i32> attributes" not in text


def test_counters_that_are_used_often_are_followed_once() -> None:
    def step(i: Any, carried: Any) -> Any:
        x, scalar = carried
        for _ in range(40):
            scalar = scalar * scalar + scalar
        # What reads other elements is a loop of XLA's, not one kernel.
        return x[::-1] + scalar, scalar

    text = _planned(lambda x: jax.lax.fori_loop(0, 3, step, (x, 0.1)), "f32[33]")
    assert text[text.index("func.func @main") :].count("stablehlo.multiply") == 40


def test_small_products_are_loops() -> None:
    assert "dot_general" not in _planned(lambda x, w: x @ w, "f32[3,4]", "f32[4,5]").partition("func.func @main")[2]
