"""Arrays of one element: read in one place, which is open wherever they are read."""

import jax.numpy as jnp
import numpy as np
from jax import lax

import xgpu


def _runs(function, *specs):
    compiled = xgpu.compile(function, *specs)
    inputs = compiled.random_inputs(seed=1)
    np.testing.assert_array_equal(compiled.run(*inputs, sanitize=True)[0], compiled.reference(*inputs)[0])
    return compiled


def test_read_behind_a_gather_and_before_it():
    def function(x, indices, start):
        sums = lax.reduce(x, start, lax.add, (0,))
        return jnp.maximum(start, sums.at[0, indices].get(mode="clip"))

    compiled = _runs(function, "s32[1,1,3]", "s32[3]", "s32[]")
    text = compiled.ir("emitted")
    assert text[text.index("@function_fusion_0__root") :].count("tensor.extract %arg2") == 1


def test_the_indices_of_a_gather_do_not_matter():
    def function(x, indices):
        doubled = jnp.broadcast_to(x, (100,)) * 2
        return doubled + jnp.take(doubled, indices * 2, mode="clip")

    _runs(function, "f32[1]", "s32[100]")


def test_in_a_branch_and_outside():
    def function(x, indices):
        tripled = x * 3
        padded = jnp.pad(jnp.broadcast_to(tripled, (50,)), (0, 50))
        return padded + jnp.broadcast_to(tripled, (100,)) + jnp.take(tripled, indices, mode="clip")

    _runs(function, "f32[1]", "s32[100]")
