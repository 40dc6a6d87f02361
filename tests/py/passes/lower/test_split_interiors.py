"""Kernels of stencils, whose threads inside an array ask no conditions: the numbers of those that do everywhere."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def _padded(x):
    p = jnp.pad(x, [(1, 1)] * x.ndim, constant_values=2)
    inner = tuple(slice(1, -1) for _ in x.shape[1:])
    return p[(slice(2, None), *inner)] - p[(slice(None, -2), *inner)] + p[(slice(1, -1), *inner)]


def _updated(x):
    return x.at[1:-1].set(x[2:] + x[1:-1] - x[:-2])


def _rolled(x):
    return jnp.roll(x, 1, 0) * 2 - jnp.roll(x, -3, -1)


def _reflected(x):
    p = jnp.pad(x, [(2, 2)] * x.ndim, mode="reflect")
    return sum(p[(*(slice(0, s) for s in x.shape[:-1]), slice(k, k + x.shape[-1]))] for k in range(5))


def _windows(x):
    return lax.reduce_window(x, np.array(0, x.dtype), lax.add, (3,) * x.ndim, (1,) * x.ndim, "SAME")


def _steps(x):
    return _updated(_updated(x))


def _rows(x):
    return jnp.sum(_padded(x) * x, -1)


def _columns(x):
    return jnp.sum(_rolled(x), 0)


def _left_out(x):
    return jnp.where(jnp.arange(x.shape[-1]) % 7 == 0, x, _padded(x))


FUNCTIONS = (_padded, _updated, _rolled, _reflected, _windows, _steps, _rows, _columns, _left_out)


@pytest.mark.parametrize("shape", ["300000", "1030,260", "37,8192", "5,7", "520,519", "70,65,64"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_those_with_conditions_everywhere(function, shape):
    compiled = xgpu.compile(function, f"f32[{shape}]")
    inputs = compiled.random_inputs(1)
    inputs[0].reshape(-1)[::1001] = np.nan
    inputs[0].reshape(-1)[::777] = np.inf
    (ours,), (theirs,) = compiled.run(*inputs), compiled.reference(*inputs)
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", ["bf16", "f64", "s8", "c64", "s4", "pred"])
def test_elements_of_other_types(dtype):
    compiled = xgpu.compile(lambda x: jnp.pad(x, ((1, 1), (2, 0)))[2:, :-2], f"{dtype}[700,500]")
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


def test_a_thread_inside_reads_vectors():
    """Three for its rows, and the two elements beside its own, which are each a load of their own."""
    compiled = xgpu.compile(
        lambda x: (
            jnp.pad(x, 1)[2:, 1:-1] + jnp.pad(x, 1)[:-2, 1:-1] + jnp.pad(x, 1)[1:-1, 2:] * jnp.pad(x, 1)[1:-1, :-2] - x
        ),
        "f32[1024,1024]",
    )
    inside, _, _ = compiled.ir("optimized").partition("} else {")
    assert len(re.findall("vector.transfer_read", inside)) == 3
    assert len(re.findall("tensor.extract ", inside)) == 2
