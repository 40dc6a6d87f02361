"""Scans under the checks of the host executor, against NumPy and JAX on the CPU; sums are of small integers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

from .test_reductions import numbers, run

ROW, COLUMN = "scan_row", "scan_column"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "emitters"),
    [
        ((9,), 0, (ROW,)),
        ((1023,), 0, (ROW,)),
        ((1024,), 0, (ROW,)),
        ((1025,), 0, (ROW,)),
        ((31, 9), 1, (ROW,)),
        ((331, 11), 1, (ROW,)),
        ((33, 32), 1, (ROW,)),
        ((3, 4099), 1, (ROW,)),
        ((2, 20001), 1, (ROW,)),
        ((9, 1), 0, (ROW,)),
        ((40001,), 0, (ROW,)),
        ((1, 65536), 1, (ROW,)),
        ((31, 3), 0, (COLUMN,)),
        ((33, 32), 0, (COLUMN,)),
        ((1025, 33), 0, (COLUMN,)),
        ((2, 5, 1000), 1, (COLUMN,)),
        ((2, 1, 9, 4, 2), 2, (COLUMN,)),
        ((8193, 5), 0, (COLUMN,)),
    ],
    ids=str,
)
def test_shapes(shape, axis, emitters, reverse):
    x = numbers(f"s32[{','.join(map(str, shape))}]")
    (result,) = run(lambda x: lax.cumsum(x, axis, reverse=reverse), x, emitters=set(emitters))
    step = tuple(slice(None, None, -1 if reverse and i == axis else None) for i in range(len(shape)))
    np.testing.assert_array_equal(result, np.cumsum(x[step], axis)[step])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "dtype",
    ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64", "c64", "c128"],
)
def test_types(dtype, axis):
    x = numbers(f"{dtype}[37,44]")
    (result,) = run(lambda x: lax.cumsum(x, axis), x, emitters={COLUMN if axis == 0 else ROW})
    np.testing.assert_array_equal(result, np.cumsum(x, axis, dtype=x.dtype))


@pytest.mark.parametrize("dtype", ["s2", "u2", "s4", "u4"])
@pytest.mark.parametrize("function", [lax.cumsum, lax.cummax], ids=["sum", "max"])
def test_elements_that_share_a_byte(dtype, function):
    """They are scanned as bytes, of which another kernel makes packed ones: threads write whole bytes."""
    x = numbers(f"{dtype}[5,18]")
    (result,) = run(lambda x: function(x, 1), x, emitters={ROW, "loop"})
    wide = x.astype(np.int64)
    expected = np.cumsum(wide, 1) if function is lax.cumsum else np.maximum.accumulate(wide, 1)
    np.testing.assert_array_equal(result, expected.astype(x.dtype))


@pytest.mark.parametrize(("function", "by_hand"), [(lax.cummax, np.maximum), (lax.cummin, np.minimum)])
@pytest.mark.parametrize("length", [33, 257])
def test_not_a_number_stays(function, by_hand, length):
    x = np.random.default_rng(0).standard_normal((3, length)).astype(np.float32)
    x[1, 20], x[2, length - 1] = np.nan, np.nan
    (result,) = run(lambda x: function(x, 1), x, emitters={ROW})
    np.testing.assert_array_equal(result, by_hand.accumulate(x, 1))


def test_infinities_are_no_elements_of_others():
    """Values read in place of missing elements change nothing, whatever they are."""
    x = np.zeros((3, 37), np.float32)
    x[:, -1] = np.inf
    (result,) = run(lambda x: jnp.cumsum(x, 1), x, emitters={ROW})
    np.testing.assert_array_equal(result, x)
    (result,) = run(lambda x: jnp.cumsum(x, 0), x, emitters={COLUMN})
    np.testing.assert_array_equal(result, np.cumsum(x, 0))


def last(a, b):
    """Return the later of two elements, as a pair that says which position it is from: not commutative."""
    return jnp.where(b[0] >= 0, b[0], a[0]), jnp.where(b[0] >= 0, b[1], a[1])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "emitters"),
    [
        ((5, 1000), 1, (ROW,)),
        ((36000,), 0, (ROW,)),
        ((1000, 5), 0, (COLUMN,)),
        ((5000, 8), 0, (COLUMN,)),
    ],
    ids=str,
)
def test_order_is_kept(shape, axis, emitters, reverse):
    """The last element that is not negative, and its position."""
    x = np.random.default_rng(0).integers(-20, 3, shape).astype(np.int32)
    position = np.arange(x.size, dtype=np.int32).reshape(shape)
    both = run(
        lambda *x: lax.associative_scan(last, x, axis=axis, reverse=reverse), x, position, emitters=set(emitters)
    )
    values, positions = (np.moveaxis(a, axis, 0)[:: -1 if reverse else 1].copy() for a in (x, position))
    for i in range(1, len(values)):
        keeps = values[i] < 0
        values[i] = np.where(keeps, values[i - 1], values[i])
        positions[i] = np.where(keeps, positions[i - 1], positions[i])
    for result, expected in zip(both, (values, positions), strict=True):
        np.testing.assert_array_equal(np.moveaxis(result, axis, 0)[:: -1 if reverse else 1], expected)


def test_producers_and_consumers_are_part_of_the_kernel():
    x, y = numbers("f32[33,64]"), numbers("f32[64]", 1)
    function = lambda x, y: jnp.exp2(jnp.cumsum(x * y, 1) / 64).T.reshape(-1) + 1  # noqa: E731
    (result,) = run(function, x, y, emitters={ROW})
    np.testing.assert_allclose(result, np.exp2(np.cumsum(x * y, 1) / 64).T.reshape(-1) + 1, rtol=1e-6)


def test_several_results_of_one_kernel():
    x = numbers("s32[33,65]")
    results = run(lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 1) - x), x, emitters={ROW})
    np.testing.assert_array_equal(results[0], np.cumsum(x, 1))
    np.testing.assert_array_equal(results[1], np.maximum.accumulate(x, 1) - x)


def test_gradients_are_scans():
    """Two kernels: the sums, and from the end the sums of twice as much, times what each element adds."""
    x = numbers("f32[9,130]")
    (result,) = run(jax.grad(lambda x: jnp.sum(jnp.cumsum(x * x, 1) ** 2)), x, emitters={ROW})
    sums = 2 * np.cumsum(x * x, 1)
    np.testing.assert_array_equal(result, 2 * x * np.cumsum(sums[:, ::-1], 1)[:, ::-1])


def test_the_same_bits_in_every_run():
    x = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    compiled = xgpu.compile(jnp.cumsum, "f32[100000]")
    first, second = compiled.run(x), compiled.run(x)
    assert first[0].tobytes() == second[0].tobytes()
    np.testing.assert_allclose(first[0], np.cumsum(x.astype(np.float64)), rtol=1e-4, atol=1e-3)


def test_results_behind_reshapes_of_other_factors_are_of_the_scanned_elements():
    """An index that is computed step by step from the result is the hero's, in whatever words it is written."""

    def shuffled(y):
        return y.reshape(16, 12, 31, 3).reshape(8, 2, 12, 31, 3).transpose(4, 1, 0, 3, 2).reshape(3, 496, 12)

    x = numbers("s32[3,2,12,8,31]")
    (result,) = run(lambda x: shuffled(lax.cumsum(x, 2)), x, emitters={COLUMN})
    np.testing.assert_array_equal(result, shuffled(np.cumsum(x, 2)))
