"""Loops that run until no element needs another iteration: which are one kernel, and what that computes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.tools.programs import recurrences

PROGRAMS = {program.name: program for program in recurrences.programs()}


def emitters(compiled):
    return [kernel.emitter for kernel in compiled.kernels]


@pytest.mark.parametrize("name", sorted(recurrences.MASKED))
def test_a_loop_of_which_each_element_leaves_by_itself_is_one_kernel(name):
    compiled = PROGRAMS[name].compile()
    assert emitters(compiled).count("recurrence") == 1
    assert compiled.main is None


LAUNCHES = xgpu.Options(control_flow="launches")


@pytest.mark.parametrize("name", sorted(recurrences.MASKED))
def test_such_a_loop_is_one_kernel_in_packages(name):
    """The host that runs other loops has their conditions in their states, computed before and after each iteration."""
    program = PROGRAMS[name]
    compiled = xgpu.compile(program.function, *program.specs, options=LAUNCHES)
    assert emitters(compiled) == emitters(program.compile())


@pytest.mark.parametrize("size", [33, 300007])
def test_numbers_in_packages(size):
    """Of many elements it is found in several steps whether any goes on."""

    def function(x, limit):
        def step(state):
            x, i = state
            return jnp.where(x < limit, 2 * x + 1, x), jnp.where(x < limit, i + 1, i)

        return lax.while_loop(lambda state: jnp.any(state[0] < limit), step, (x, jnp.zeros_like(x)))

    compiled = xgpu.compile(function, f"f32[{size}]", f"f32[{size}]", options=LAUNCHES)
    assert emitters(compiled) == ["recurrence"]
    x = np.random.default_rng(0).uniform(0, 9, size).astype(np.float32)
    x[:5] = np.nan, np.inf, -0.0, 1e30, 9
    limit = np.full(size, 9, np.float32)
    for found, expected in zip(compiled.run(x, limit), compiled.reference(x, limit), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_flag_of_the_users_is_no_condition_of_the_next_state():
    """The first iteration runs whatever the mask is."""

    def function(x):
        def step(state):
            x = state[0] + 1
            return x, jnp.any(x < 9)

        return lax.while_loop(lambda state: state[1], step, (x, True))[0]

    compiled = xgpu.compile(function, "f32[33]", options=LAUNCHES)
    assert "recurrence" not in emitters(compiled)
    x = np.linspace(9, 12, 33, dtype=np.float32)
    np.testing.assert_array_equal(compiled.run(x)[0], compiled.reference(x)[0])


def test_a_loop_in_a_loop_of_packages():
    """The inner one draws again until a number is accepted, the outer one until all are."""

    def function(seed):
        return jax.random.gamma(jax.random.key(seed), 0.5, (129,))

    compiled = xgpu.compile(function, "s32[]", options=LAUNCHES)
    assert "recurrence" in emitters(compiled)
    np.testing.assert_allclose(compiled.run(np.int32(3))[0], compiled.reference(np.int32(3))[0], rtol=1e-4)


def doubled(more, step, results=lambda x, i: x):
    """A loop over a state of 33 numbers and a count, as a user writes it with ``jnp.any``."""

    def function(x):
        return results(*lax.while_loop(lambda s: more(*s) & (s[1] < 9), lambda s: (step(*s), s[1] + 1), (x, 0)))

    return function


def upto(i):
    return jnp.arange(33) < i + 1


def kept(x, i):
    return jnp.where(x < 9, 2 * x + 1, x)


@pytest.mark.parametrize(
    ("loop", "is_one"),
    [
        (doubled(lambda x, i: jnp.any(x < 9), kept), True),
        (doubled(lambda x, i: jnp.any(x < 9) & (i < 2), kept), True),
        # How often all ran.
        (doubled(lambda x, i: jnp.any(x < 9), kept, lambda x, i: (x, i)), False),
        # Elements go on changing where their mask is false, or are kept by another mask.
        (doubled(lambda x, i: jnp.any(x < 9), lambda x, i: 2 * x + 1), False),
        (doubled(lambda x, i: jnp.any(x < 9), lambda x, i: jnp.where(x < 8, 2 * x + 1, x)), False),
        (doubled(lambda x, i: jnp.any(x < 9), lambda x, i: jnp.where(x[::-1] < 9, 2 * x + 1, x)), False),
        (doubled(lambda x, i: jnp.any(x < 9), lambda x, i: jnp.where(x < 9, x, 2 * x + 1)), False),
        # What is false may become true again.
        (doubled(lambda x, i: jnp.any(x < i), lambda x, i: jnp.where(x < i, x + 1, x)), False),
        (
            doubled(
                lambda x, i: jnp.any(jnp.arange(33) < i + 1), lambda x, i: jnp.where(jnp.arange(33) < i + 1, x + 1, x)
            ),
            False,
        ),
        # All go on until none needs to, or as long as all need to.
        (doubled(lambda x, i: jnp.max(x) < 9, kept), False),
        (doubled(lambda x, i: jnp.all(x < 9), kept), False),
        (doubled(lambda x, i: jnp.any(x[:9] < 9), kept), False),
        (doubled(lambda x, i: jnp.any(x < 9) & jnp.any(x < 8), kept), False),
        # Elements depend on others.
        (doubled(lambda x, i: jnp.any(x < 9), lambda x, i: jnp.where(x < 9, x[::-1] + 9, x)), False),
        (doubled(lambda x, i: jnp.any(x < 9), lambda x, i: jnp.where(x < 9, x + 1 + jnp.max(x), x)), False),
    ],
)
def test_which_loops_are_one_kernel(loop, is_one):
    compiled = xgpu.compile(loop, "f32[33]")
    assert ("recurrence" in emitters(compiled)) == is_one
    assert ("recurrence" in emitters(xgpu.compile(loop, "f32[33]", options=LAUNCHES))) == is_one
    x = np.linspace(1, 12, 33, dtype=np.float32)
    expected = jax.tree.leaves(jax.jit(loop)(x))
    for result, other in zip(jax.tree.leaves(xgpu.jit(loop)(x)), expected, strict=True):
        np.testing.assert_array_equal(result, other)


def test_numbers_that_never_begin():
    loop = doubled(lambda x, i: jnp.any(x < 9), kept)
    x = np.array([np.nan, 9, np.inf, -0.0, 10, -1.0], np.float32)
    np.testing.assert_array_equal(xgpu.jit(loop)(x), jax.jit(loop)(x))
    np.testing.assert_array_equal(xgpu.jit(loop)(x[:1]), x[:1])


@pytest.mark.parametrize("name", ["gamma", "beta", "t"])
def test_random_numbers_that_are_rejected(name):
    draws = {"gamma": (0.5,), "beta": (0.5, 1.5), "t": (3.0,)}[name]

    def function(seed):
        return getattr(jax.random, name)(jax.random.key(seed), *draws, (129,))

    assert "recurrence" in emitters(xgpu.compile(function, "s32[]"))
    np.testing.assert_allclose(xgpu.jit(function)(3), jax.jit(function)(3), rtol=1e-4)


def test_special_functions_are_one_loop_for_each_element():
    def function(a, x):
        return jax.scipy.special.betainc(a, 2.0, x), jax.scipy.special.gammainc(a, 4 * x)

    compiled = xgpu.compile(function, "f32[65]", "f32[65]")
    assert compiled.main is None
    a, x = np.linspace(0.5, 8, 65, dtype=np.float32), np.linspace(0, 1, 65, dtype=np.float32)
    for result, expected in zip(xgpu.jit(function)(a, x), jax.jit(function)(a, x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(1,), (31,), (1023, 65), (7, 1, 19)], ids=str)
def test_every_element_is_written_once(shape):
    def function(x):
        return lax.while_loop(lambda x: jnp.any(x < 9), lambda x: jnp.where(x < 9, 2 * x + 1, x), x)

    emitter = emitter_of(xgpu.compile(function, f"f32[{','.join(map(str, shape))}]"))
    assert emitter.thread_to_output(0).is_bijection(shape) is True


def test_rows_of_three_in_the_body_are_no_state():
    """Distances from a ray that starts anew for each element."""

    def function(x):
        def step(_, t):
            return t + jnp.sqrt(jnp.sum((x * t[:, None] - 1) ** 2, -1))

        return lax.fori_loop(0, 9, step, x[:, 0])

    compiled = xgpu.compile(function, "f32[33,3]")
    assert emitters(compiled) == ["recurrence"]
    (x,) = compiled.random_inputs(1)
    np.testing.assert_allclose(compiled.run(x)[0], compiled.reference(x)[0], rtol=1e-4)


@pytest.mark.parametrize(
    ("function", "start"),
    [
        (
            lambda x: lax.while_loop(lambda s: jnp.any(s < 9), lambda s: jnp.where(s < 9, s * 2 + 1, s), x),
            np.float32(0.5),
        ),
        (
            lambda x: lax.while_loop(
                lambda s: jnp.any(s[1] < 9),
                lambda s: (s[0] + s[0].sum(1, keepdims=True) * 0.25, s[1] + 1.5),
                (x, jnp.float32(0)),
            )[0],
            np.ones((33, 3), np.float32),
        ),
    ],
    ids=["a number", "a number beside rows"],
)
def test_whether_any_of_one_number_is_true(function, start):
    np.testing.assert_allclose(xgpu.jit(function)(start), jax.jit(function)(start), rtol=1e-5)
    assert xgpu.compile(function, start).ir("fusions")


@pytest.mark.parametrize("starts", [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("counted", [1, 2])
def test_conditions_on_one_of_two_counters_that_are_equal_later(starts, counted):
    """Packages compute the first condition from the states as they are given."""

    def function(x, i, j):
        def body(state):
            x, i, j = state
            one = (i, j)[counted - 1] + 1
            return jnp.where(x < 9, 2 * x + j, x), one, one

        return lax.while_loop(lambda state: jnp.any(state[0] < 9) & (state[counted] < 2), body, (x, i, j))[0]

    compiled = xgpu.compile(function, "f32[2]", "s32[]", "s32[]", options=xgpu.Options(control_flow="launches"))
    given = np.array([1, 2], np.float32), *map(np.int32, starts)
    (found,) = compiled.run(*given, on="host")
    np.testing.assert_array_equal(found, jax.jit(function)(*given))


def test_a_flag_beside_what_it_is_computed_from():
    """The state that says whether the loop goes on is what its condition might compute."""

    def function(x, i, goes_on):
        def body(state):
            x, i, _ = state
            return jnp.where(x < 9, 2 * x + 1, x), i + 1, i + 1 < 2

        return lax.while_loop(lambda state: jnp.any(state[0] < 9) & state[2], body, (x, i, goes_on))[0]

    compiled = xgpu.compile(function, "f32[2]", "s32[]", "pred[]", options=xgpu.Options(control_flow="launches"))
    for given in ((np.int32(0), np.bool_(False)), (np.int32(7), np.bool_(True)), (np.int32(0), np.bool_(True))):
        (found,) = compiled.run(np.ones(2, np.float32), *given, on="host")
        np.testing.assert_array_equal(found, jax.jit(function)(np.ones(2, np.float32), *given))
