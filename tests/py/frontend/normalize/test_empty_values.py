"""Values without elements are constants: no kernel has a grid of no blocks."""

import jax
import jax.numpy as jnp
import numpy as np

import xgpu
from xgpu.frontend import from_jax


def step(j: jax.Array, v: jax.Array, k: jax.Array, b: jax.Array) -> jax.Array:
    """The reproducer: what several kernels would read has no elements."""
    return j.T @ (k * b - jnp.abs(b) * (j @ v)) + jnp.sin(v)


def test_only_what_has_elements_is_computed() -> None:
    module = from_jax(step, ("f32[0,7]", "f32[7]", "f32[0]", "f32[0]")).module
    (main,) = module.body.operations
    names = [op.operation.name for op in main.operation.regions[0].blocks[0].operations]
    assert "stablehlo.multiply" not in names
    assert names.count("stablehlo.dot_general") == 1


def test_results_that_read_nothing() -> None:
    v = np.arange(7, dtype=np.float32)
    empty = np.zeros((0,), np.float32)
    program = xgpu.compile(step, np.zeros((0, 7), np.float32), v, empty, empty)
    np.testing.assert_allclose(program.run(np.zeros((0, 7), np.float32), v, empty, empty)[0], np.sin(v), rtol=1e-6)


def test_complex_ones_and_those_of_control_flow() -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        turned, total = jax.lax.fori_loop(0, 3, lambda _, c: (c[0] * 1j, c[1] + jnp.abs(c[0]).sum() + 1), (x, y))
        return turned, total, jnp.sort(turned.real)

    x, y = np.zeros((0, 2), np.complex64), np.ones(3, np.float32)
    turned, total, ordered = xgpu.jit(function)(x, y)
    assert (turned.shape, ordered.shape) == ((0, 2), (0, 2))
    np.testing.assert_array_equal(total, y + 3)
