"""Block programs under ``jax.vmap``, with gradients, and inside loops."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.py.block_language.programs import CASES, attention, causal_attention
from xgpu import block
from xgpu.errors import InvalidInput


@block.kernel(threads=32)
def outer(x: Any, y: Any) -> Any:
    """Return sums of pairs of elements, by a grid of three dimensions."""
    m, n = len_of(x), len_of(y)
    i, j, _ = block.grid(block.cdiv(m, 8), block.cdiv(n, 8), 1)
    return block.store(x.tile(8, (i,))[:, None] + y.tile(8, (j,)), (m, n), (i, j))


@block.kernel(threads=32)
def scaled(x: Any, y: Any) -> Any:
    """Return products of elements, by a grid of one dimension, with the numbers of rows added."""
    (i,) = block.grid(block.cdiv(len_of(x), 8))
    rows = block.index(8, lambda row: i * 8 + row, jnp.float32)
    return block.store(x.tile(8, (i,)) * y.tile(8, (i,)) + rows, x.shape, (i,))


def len_of(x: Any) -> int:
    return int(x.shape[0])


def sums(x: Any, y: Any) -> Any:
    return x[:, None] + y


def products(x: Any, y: Any) -> Any:
    return x * y + jnp.arange(x.shape[0], dtype=jnp.float32)


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    generator = np.random.default_rng(3)
    return [jnp.asarray(generator.standard_normal(shape), jnp.float32) for shape in shapes]


@pytest.mark.parametrize(
    ("axes", "shapes"),
    [
        ((0, 0), ((3, 11), (3, 11))),
        ((1, None), ((11, 3), (11,))),
        ((None, 1), ((11,), (11, 3))),
        ((-1, 0), ((11, 3), (3, 11))),
    ],
)
@pytest.mark.parametrize(("kernel", "function"), [(outer, sums), (scaled, products)])
def test_of_a_batch(kernel: Any, function: Any, axes: Any, shapes: Any) -> None:
    given = arrays(*shapes)
    expected = jax.vmap(function, axes)(*given)
    np.testing.assert_array_equal(jax.vmap(kernel.reference, axes)(*given), expected)
    np.testing.assert_array_equal(jax.vmap(kernel.reference, axes, out_axes=1)(*given), jnp.moveaxis(expected, 0, 1))


@pytest.mark.parametrize(("kernel", "function"), [(outer, sums), (scaled, products)])
def test_of_a_batch_by_kernels(kernel: Any, function: Any) -> None:
    x, y = arrays((3, 11), (11,))
    np.testing.assert_array_equal(jax.vmap(kernel, (0, None))(x, y), jax.vmap(function, (0, None))(x, y))


def test_of_batches_of_batches() -> None:
    x, y = arrays((2, 3, 11), (11, 4))
    batches = [jax.vmap(jax.vmap(jax.vmap(each, (None, 1)), (0, None)), (0, None)) for each in (outer.reference, sums)]
    found, expected = (each(x, y) for each in batches)
    assert found.shape == (2, 3, 4, 11, 11)
    np.testing.assert_array_equal(found, expected)


def test_of_a_batch_of_attention() -> None:
    q, k, v = map(jnp.asarray, CASES["attention"].arguments)
    several = jnp.stack([q, -q])
    found = jax.vmap(attention, (0, None, None))(several, k, v)
    expected = jax.vmap(causal_attention, (0, None, None))(several, k, v)
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(expected, np.float64), atol=0.01, rtol=2 * 2.0**-8
    )


def squared_kernel() -> Any:
    @block.kernel(threads=32)
    def squared(x: Any, *, scale: float = 1.0) -> Any:
        (i,) = block.grid(block.cdiv(len_of(x), 8))
        tile = x.tile(8, (i,))
        return block.store(tile * tile * scale, x.shape, (i,))

    return squared


def test_of_a_gradient_by_custom_vjp_around_a_kernel() -> None:
    squared = squared_kernel()

    @jax.custom_vjp
    def function(x: Any) -> Any:
        return squared(x)

    function.defvjp(lambda x: (squared(x), x), lambda x, gradient: (2 * x * gradient,))
    (x,) = arrays((11,))
    np.testing.assert_array_equal(jax.grad(lambda x: function(x).sum())(x), 2 * x)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: function(x).sum()))(x), 2 * x)


def test_of_a_gradient_that_the_kernel_has() -> None:
    squared = squared_kernel()
    squared.defvjp(
        lambda x, scale=1.0: (squared(x, scale=scale), x), lambda x, gradient, scale=1.0: (2 * scale * x * gradient,)
    )
    (x,) = arrays((11,))
    np.testing.assert_array_equal(squared(x), x * x)
    np.testing.assert_array_equal(jax.grad(lambda x: squared(x).sum())(x), 2 * x)
    np.testing.assert_array_equal(jax.grad(lambda x: squared(x, scale=3.0).sum())(x), 6 * x)
    several = jnp.stack([x, -x])
    np.testing.assert_array_equal(jax.grad(lambda x: jax.vmap(squared)(x).sum())(several), 2 * several)


def test_of_a_gradient_of_another_function() -> None:
    squared = squared_kernel()
    squared.gradient_of(lambda x, scale=1.0: scale * x**2)
    (x,) = arrays((11,))
    value, gradient = jax.value_and_grad(lambda x: squared(x, scale=2.0).sum())(x)
    np.testing.assert_allclose(value, (2 * x**2).sum(), rtol=1e-6)
    np.testing.assert_array_equal(gradient, 4 * x)


def test_of_a_derivative_forward() -> None:
    squared = squared_kernel()
    (x,) = arrays((11,))
    with pytest.raises(InvalidInput, match="kernel squared has no gradient"):
        jax.jvp(squared, (x,), (x,))


def test_of_a_derivative_by_what_the_kernel_does_not_take() -> None:
    squared = squared_kernel()
    (x,) = arrays((11,))
    gradient = jax.grad(lambda y: (lax.stop_gradient(squared(x)) * y).sum())(x)
    np.testing.assert_array_equal(gradient, x * x)


def test_in_a_loop() -> None:
    (x,) = arrays((11,))
    squared = squared_kernel()
    found = jax.jit(lambda x: lax.fori_loop(0, 3, lambda n, x: squared(x), x))(x)
    expected = x
    for _ in range(3):
        expected = expected * expected
    np.testing.assert_array_equal(found, expected)
