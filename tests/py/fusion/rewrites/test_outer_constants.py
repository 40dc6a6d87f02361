"""Constants around a loop: its body's kernels make them, and read no array of them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xgpu


def _runs(compiled):
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_an_array_of_ones_is_no_input_of_a_loops_kernel():
    def function(x):
        ones = jnp.ones_like(x)
        return lax.fori_loop(0, 5, lambda i, c: jnp.sin(c) + ones, x)

    compiled = xgpu.compile(function, "f32[100]")
    (fusion,) = [line for line in compiled.ir("fusions").splitlines() if "func.func private" in line]
    assert fusion.count("tensor<100xf32>") == 2
    _runs(compiled)


def test_a_state_that_is_a_constant_and_never_changes_is_none():
    def function(x):
        def step(state):
            i, c, scale = state
            return i + 1, c * scale, scale

        return lax.while_loop(lambda state: state[0] < 5, step, (0, x, jnp.full((100,), 0.5)))[1]

    compiled = xgpu.compile(function, "f32[100]")
    (fusion,) = [line for line in compiled.ir("fusions").splitlines() if "func.func private" in line]
    assert fusion.count("tensor<100xf32>") == 2
    _runs(compiled)


def test_a_condition_that_reads_an_unchanged_constant():
    def function(x):
        def more(state):
            return jnp.any(state[0] < state[1])

        return lax.while_loop(more, lambda state: (state[0] + 1.5, state[1]), (x, jnp.full((100,), 4.0)))[0]

    _runs(xgpu.compile(function, "f32[100]"))


def test_branches_make_their_constants():
    def function(x, i):
        ones = jnp.ones((100,))
        return lax.cond(i > 0, lambda x: jnp.sin(x) + ones, lambda x: jnp.cos(x) - ones, x)

    compiled = xgpu.compile(function, "f32[100]", "s32[]")
    for line in compiled.ir("fusions").splitlines():
        assert "func.func private" not in line or line.count("tensor<100xf32>") == 2
    _runs(compiled)


def test_a_long_chain_before_a_reduction_is_shared_among_blocks():
    def function(x):
        for _ in range(12):
            x = x * x + 0.5 / (x + 2)
        return jnp.any(x > 0.5)

    grids = [launch.kernel.grid[0] for launch in xgpu.compile(function, "f32[65536]").launches]
    assert max(grids) > 1
    assert [launch.kernel.grid[0] for launch in xgpu.compile(jnp.any, "pred[65536]").launches] == [1]
    assert jax.numpy.asarray(xgpu.jit(function)(jnp.ones(65536))).item() is True
