"""Reductions of stacked arrays, of which the next ones are made: what is written for them grows as the program does."""

import jax
import jax.numpy as jnp
import numpy as np

import xgpu
from xgpu.driver.compiler import plan_program
from xgpu.frontend.load import load_source


def _turned(by, of):
    """The product of quaternions: sums of products of what is stacked."""
    scalar = by[0] * of[0] - by[1:] @ of[1:]
    return jnp.concatenate([scalar[None], by[0] * of[1:] + of[0] * by[1:] + jnp.cross(by[1:], of[1:])])


def _reach(angles):
    """The distance that a chain of bodies reaches that turn by joints."""
    place, turn, axis = jnp.zeros(3), jnp.array([1.0, 0, 0, 0]), jnp.array([0.0, 1, 0])
    reached = jnp.zeros(())
    for angle in angles:
        turn = _turned(turn, jnp.concatenate([jnp.cos(angle)[None], jnp.sin(angle) * axis]))
        place = place + 2 * jnp.cross(turn[1:], axis)
        reached = reached + jnp.sum(place * place)
    return reached


def test_what_reductions_share_is_written_once():
    def operations(joints):
        source = load_source(jax.vmap(jax.grad(_reach)), (f"f32[16,{joints}]",))
        return str(plan_program(source.module)["prepared"]).count("stablehlo.")

    few, many = operations(6), operations(12)
    assert many <= 2.25 * few


def test_gradients_of_a_chain_are_right():
    compiled = xgpu.compile(jax.vmap(jax.grad(_reach)), "f32[5,3]")
    inputs = compiled.random_inputs(1)
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=1e-5, atol=1e-5)


def test_a_trimmed_mean_is_one_kernel():
    """It reads the middle of a sorted row: five of nine arrays that a network of comparisons makes and stacks."""

    def trimmed(x):
        return jnp.sort(jnp.stack([x[i : i + 62] for i in range(9)], -1), -1)[..., 2:7].mean(-1)

    compiled = xgpu.compile(trimmed, "f32[70,33]")
    assert [each.kernel.emitter for each in compiled.launches] == ["loop"]
    (inputs,) = compiled.random_inputs(1)
    # Means of five numbers in another order.
    np.testing.assert_allclose(compiled.run(inputs)[0], compiled.reference(inputs)[0], rtol=1e-6, atol=1e-6)
