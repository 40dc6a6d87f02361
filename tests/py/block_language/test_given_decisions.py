"""What a person decides about tiles is kept where it fits, and refused where it does not, called from JAX as well."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu import block
from xgpu.errors import InvalidInput


def _sums(**decisions):
    """A kernel of two tiles in shared memory, of which the first one is decided about."""

    @block.kernel
    def sums(x, w):
        (i,) = block.grid(2)
        t = x.tile((16, 96), (i, 0), place="shared", **decisions)
        u = w.tile((16, 96), (i, 0), place="shared", layout=(96, 1))
        return block.store(t + u, (32, 96), (i, 0)), block.store(t - u, (32, 96), (i, 0))

    return sums


@pytest.mark.parametrize("swizzle", [(2, 9, 10), (3, 3, 6), (1, 11, 12)])
def test_swizzles_of_any_span_stay_in_their_tile(swizzle):
    x, w = (np.arange(32 * 96, dtype=np.float32).reshape(32, 96) * scale for scale in (1, 7))
    added, left = _sums(layout=(96, 1), swizzle=swizzle)(x, w)
    np.testing.assert_array_equal(added, x + w)
    np.testing.assert_array_equal(left, x - w)


@pytest.mark.parametrize("layout", [(0, 1), (8, 1), (1, 1), (1, 15)])
def test_strides_have_a_place_for_each_element(layout):
    with pytest.raises(InvalidInput, match=r"layout.*a place for each element"):
        _sums(layout=layout)(jnp.zeros((32, 96)), jnp.zeros((32, 96)))


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ({"layout": (-8, 1)}, "strides from 0"),
        ({"layout": (1 << 40, 1)}, "strides from 0"),
        ({"swizzle": (1, 2)}, "bits, base, shift"),
        ({"swizzle": (1, 2, 60)}, "bits, base, shift"),
        ({"copy": "tma"}, "copy"),
        ({"layout": "a"}, "expected whole numbers"),
        ({"layout": (96, True)}, "expected whole numbers"),
        ({"copy": 3}, "expected words"),
    ],
)
def test_what_is_no_decision_is_refused(decisions, message):
    with pytest.raises(InvalidInput, match=message):
        _sums(**decisions)(jnp.zeros((32, 96)), jnp.zeros((32, 96)))


@pytest.mark.parametrize("warps", [(-2, -2), (4,), (3, 1)])
def test_warps_are_as_many_as_there_are(warps):
    @block.kernel
    def product(x):
        block.grid(1)
        total = block.plan(block.dot(x.tile((32, 32), (0, 0)), x.tile((32, 32), (0, 0))), warps=warps)
        return block.store(total, (32, 32), (0, 0))

    with pytest.raises(InvalidInput, match="warps"):
        product(jnp.ones((32, 32), jnp.bfloat16))


def test_products_of_one_type_may_have_different_warps():
    """What follows one of them, element by element or row by row, has its warps, and not those of the other."""

    @block.kernel(threads=128)
    def both(x, w, v):
        block.grid(1)

        def step(number, carried):
            t = x.tile((64, 32), (0, number))
            p = block.plan(block.dot(t, w.tile((32, 32), (number, 0))), warps=(2, 2))
            q = block.plan(block.dot(t, v.tile((32, 32), (number, 0))), warps=(4, 1))
            return carried[0] + p * q, carried[1] + p.sum(axis=1), jnp.maximum(carried[2], q.max(axis=1))

        found = block.steps(2, step, (jnp.zeros((64, 32)), jnp.zeros(64), jnp.zeros(64)))
        return tuple(block.store(each, each.shape, (0,) * each.ndim) for each in found)

    generator = np.random.default_rng(1)
    x, w, v = (generator.integers(-2, 3, shape).astype(jnp.bfloat16) for shape in ((64, 64), (64, 32), (64, 32)))
    halves = [slice(0, 32), slice(32, 64)]
    p, q = ([x[:, half].astype(int) @ each[half].astype(int) for half in halves] for each in (w, v))
    results = xgpu.compile(both, x, w, v).run(x, w, v, sanitize=True)
    np.testing.assert_array_equal(results[0], p[0] * q[0] + p[1] * q[1])
    np.testing.assert_array_equal(results[1], (p[0] + p[1]).sum(axis=1))
    np.testing.assert_array_equal(results[2], np.maximum(q[0], q[1]).max(axis=1).clip(0))


def test_products_are_copied_in_one_way():
    with pytest.raises(InvalidInput, match="expected no copy, got 'async'"):
        block.kernel(emitter="product", copy="async")


@pytest.mark.parametrize("stages", [0, -1, 100])
def test_there_are_buffers(stages):
    @block.kernel(stages=stages)
    def total(x):
        (i,) = block.grid(1)
        return block.store(block.accumulate(4, lambda step: x.tile(16, (step,))), (16,), (i,))

    with pytest.raises(InvalidInput, match="buffers"):
        total(jnp.ones(64))


def test_copies_run_a_number_of_steps_ahead():
    @block.kernel
    def total(x):
        (i,) = block.grid(1)
        return block.store(block.accumulate(4, lambda step: x.tile(16, (step,)), prefetch=0), (16,), (i,))

    with pytest.raises(InvalidInput, match=r"prefetch.*expected a number of steps from 1 to"):
        total(jnp.ones(64))


def test_elements_of_64_bits_are_added_up_in_their_type():
    @block.kernel
    def product(x, y):
        block.grid(1)
        return block.store(block.dot(x.tile((16, 16), (0, 0)), y.tile((16, 16), (0, 0))), (16, 16), (0, 0))

    generator = np.random.default_rng(1)
    x, y = generator.standard_normal((2, 16, 16))
    with jax.enable_x64(True):
        np.testing.assert_allclose(product(x, y), x @ y, rtol=0, atol=1e-14)
        whole = (x * 2**40).astype(np.int64)
        np.testing.assert_array_equal(product(whole, whole), whole @ whole)


def test_a_fill_of_minus_zero_is_one():
    @block.kernel
    def wider(x):
        block.grid(1)
        return block.store(x.tile(8, (0,), fill=-0.0), (8,), (0,))

    assert np.signbit(np.asarray(wider(jnp.ones(5)))).tolist() == [False] * 5 + [True] * 3


def test_a_result_without_dimensions_has_a_reference():
    @block.kernel
    def total(x):
        block.grid(1)
        return block.store(jnp.sum(x.tile(32, (0,))), (), ())

    x = jnp.arange(32.0)
    assert float(total(x)) == float(total.reference(x)) == 496


def test_a_batch_of_none_has_no_results():
    @block.kernel
    def twice(x):
        (i,) = block.grid(2)
        return block.store(x.tile(8, (i,)) * 2, x.shape, (i,))

    assert jax.vmap(twice)(jnp.zeros((0, 16))).shape == (0, 16)
