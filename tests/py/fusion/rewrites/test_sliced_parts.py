"""Slices of concatenations that lie in one part are slices of that part."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def _compiled(function, *specs):
    """Compile a program and check that its results are XLA's, to the bit."""
    compiled = xgpu.compile(function, *specs)
    inputs = compiled.random_inputs(1)
    for got, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(got, expected)
    return compiled


def _joined(x, y):
    return jnp.concatenate([x * 2, y + 1, x - 3])


TAKEN_APART = {
    "a whole part": lambda x, y: _joined(x, y)[7:12],
    "the first element": lambda x, y: _joined(x, y)[0] * x,
    "the last element": lambda x, y: _joined(x, y)[18] * x,
    "inside a part": lambda x, y: _joined(x, y)[8:11],
    "another dimension": lambda x, y: jnp.concatenate([x[:, None], x[:, None] + 1], 1)[2:5, 1],
    "elements apart": lambda x, y: _joined(x, y)[8:12:3] * 2,
    "a slice of a slice": lambda x, y: _joined(x, y)[5:14][3:6],
    "strides of strides": lambda x, y: _joined(x, y)[0:7:2][1:4:2],
    "by way of a shape": lambda x, y: jnp.concatenate([x[:6], x[1:]]).reshape(3, 2, 2)[1, 0] * 3,
    "rows of a shape": lambda x, y: jnp.concatenate([x[:6], x[1:]]).reshape(2, 2, 3)[1, :, 0:3] * 3,
    "words of a stack": lambda x, y: jnp.stack([x[:3], x[2:5]], 1)[1, 0] + x,
}
LEFT = {
    "two parts": lambda x, y: _joined(x, y)[5:9],
    "elements apart in two parts": lambda x, y: _joined(x, y)[5:9:3],
    "elements apart of a shape": lambda x, y: jnp.concatenate([x[:6], x[1:]]).reshape(2, 6)[1:, ::2] * 3,
    "no run of the other shape": lambda x, y: jnp.concatenate([x[:6], x[1:]]).reshape(2, 6)[:, 1:3] * 3,
    "nothing": lambda x, y: _joined(x, y)[3:3],
}


@pytest.mark.parametrize("function", TAKEN_APART.values(), ids=TAKEN_APART)
def test_no_concatenation_is_left(function):
    assert "concatenate" not in _compiled(function, "f32[7]", "f32[5]").ir("fusions")


@pytest.mark.parametrize("function", LEFT.values(), ids=LEFT)
def test_other_slices_are_right(function):
    _compiled(function, "f32[7]", "f32[5]")


def test_in_a_loop():
    def function(x, y):
        return lax.fori_loop(0, 3, lambda _, z: jnp.concatenate([z * 2, y])[:7] + z, x)

    assert "concatenate" not in _compiled(function, "f32[7]", "f32[5]").ir("fusions")


@pytest.mark.parametrize("steps", [2, 7])
def test_a_chain_of_keys_is_one_kernel_and_what_is_drawn_another(steps):
    def function(key):
        for step in range(steps):
            key, drawn = jax.random.split(jax.random.fold_in(key, step))
        return jax.random.uniform(drawn, (100,)) + jax.random.uniform(key, (100,))

    assert len(_compiled(function, "u32[2]").launches) == 2
