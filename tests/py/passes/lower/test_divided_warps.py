"""Rows shorter than what a warp computes, at both of whose ends something else is read: no thread computes twice."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import xgpu


def _neighbours(x, y):
    padded = jnp.pad(y, ((0, 0), (2, 2)))
    return jnp.cos(x) / y + sum(padded[:, k : k + x.shape[1]] for k in range(5)) * x


@pytest.mark.parametrize("shape", ["40000,64", "40000,32", "10000,48", "3001,62", "300,1024"])
def test_results_are_those_of_the_program(shape):
    compiled = xgpu.compile(_neighbours, f"f32[{shape}]", f"f32[{shape}]")
    inputs = compiled.random_inputs(1)
    inputs[1].reshape(-1)[::1001] = np.nan
    inputs[1].reshape(-1)[::777] = np.inf
    (ours,), (theirs,) = compiled.run(*inputs), compiled.reference(*inputs)
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def test_what_is_beside_the_reads_is_there_once():
    """A cosine for each of a thread's two elements, not for each outcome of the two conditions as well."""
    compiled = xgpu.compile(_neighbours, "f32[40000,64]", "f32[40000,64]")
    assert len(re.findall("math.cos", compiled.ir("optimized"))) == 2
