"""Comparison of outputs with the reference: what the errors are, and what agrees."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xgpu.dtypes import DTYPES, dtype_of_numpy
from xgpu.errors import CompilerError
from xgpu.runtime.compare import compare, difference, ulp_tolerance

FLOATS = [dtype for dtype in DTYPES if dtype.is_float]
EVERYDAY_FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


type Array = np.ndarray[Any, np.dtype[Any]]


def f32(values: object) -> Array:
    return np.array(values, np.float32)


def step(array: Array, ulps: object) -> Array:
    """Return the numbers ``ulps`` steps above the positive numbers of ``array``."""
    return (array.view(f"u{array.itemsize}") + np.array(ulps, f"u{array.itemsize}")).view(array.dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_equal_outputs_agree(dtype: Any) -> None:
    array = np.array([0, 1, 1, 0], dtype.numpy)
    result = compare(array, array.copy())
    assert result.agrees
    assert (result.absolute_error, result.relative_error) == (0, 0)
    assert result.ulps in (0, None)
    assert (result.ulps is None) == (dtype.kind in ("bool", "signed", "unsigned"))


@pytest.mark.parametrize("dtype", EVERYDAY_FLOATS)
def test_ulps_are_counted_in_the_output_type(dtype: Any) -> None:
    expected = np.array([1.0, 2.0, 1e-3], dtype)
    result = compare(step(expected, [0, 3, 2]), expected)
    assert result.ulps == 3
    eps = float(step(np.ones(1, dtype), 1)[0]) - 1
    assert result.absolute_error == 6 * eps
    assert result.relative_error == pytest.approx(3 * eps, rel=0.2)
    assert result.agrees


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_one_ulp_is_tolerated_in_every_float_type(dtype: Any) -> None:
    expected = np.ones(2, dtype.numpy)
    result = compare(step(expected, [0, 1]), expected)
    assert result.ulps == 1
    assert result.agrees


@pytest.mark.parametrize("dtype", EVERYDAY_FLOATS)
def test_beyond_the_tolerance_disagrees(dtype: Any) -> None:
    limit = ulp_tolerance(dtype_of_numpy(dtype))
    # A power of two, where the tolerance in ULPs is also the one of an output of that magnitude.
    expected = np.full((2, 3), 64.0, dtype)
    steps = np.zeros((2, 3), int)
    steps[1, 2] = limit
    assert compare(step(expected, steps), expected).agrees
    steps[1, 2] += 1
    result = compare(step(expected, steps), expected)
    assert not result.agrees
    assert (result.disagreements, result.first_disagreement) == (1, (1, 2))
    assert "1 elements disagree, the first at [1, 2]" in str(result)


def test_signed_zeros_are_equal_and_close_to_each_other() -> None:
    assert compare(f32([-0.0]), f32([0.0])).ulps == 0
    assert compare(f32([-1e-45]), f32([1e-45])).ulps == 2


@pytest.mark.parametrize("dtype", EVERYDAY_FLOATS)
def test_nan_agrees_with_nan_of_any_bits(dtype: Any) -> None:
    nan = np.array([np.nan], dtype)
    assert compare(step(nan, 1), -nan).agrees


@pytest.mark.parametrize("dtype", EVERYDAY_FLOATS)
@pytest.mark.parametrize(("actual", "expected"), [(np.nan, 1.0), (1.0, np.nan), (np.nan, np.inf)])
def test_nan_disagrees_with_numbers(dtype: Any, actual: float, expected: float) -> None:
    result = compare(np.array([1.0, actual], dtype), np.array([1.0, expected], dtype))
    assert (result.disagreements, result.first_disagreement) == (1, (1,))
    assert result.absolute_error == result.relative_error == result.ulps == np.inf


def test_infinities() -> None:
    assert compare(f32([np.inf, -np.inf]), f32([np.inf, -np.inf])).agrees
    assert not compare(f32([np.inf]), f32([-np.inf])).agrees
    assert not compare(f32([np.inf]), f32([1e38])).agrees
    # The largest finite number is one step from infinity: both are roundings of the same value.
    result = compare(np.array([np.inf], np.float16), np.array([65504], np.float16))
    assert result.ulps == 1
    assert result.agrees


def test_cancellation_is_judged_by_the_size_of_the_output() -> None:
    expected = f32([1.0, 0.0])
    result = compare(f32([1.0, 1e-7]), expected)
    assert (result.agrees, result.excused) == (True, 1)
    assert str(result).endswith(": agrees (1 elements by absolute error)")
    assert compare(expected, expected).excused == 0
    assert not compare(f32([1.0, 1e-4]), expected).agrees
    # The same error in an output whose elements are all small.
    assert not compare(f32([1e-6, 1e-7]), f32([1e-6, 0.0])).agrees
    # One large element is no excuse; elements that are mostly large are.
    assert compare(f32([1e3, 1e3, 1e-3]), f32([1e3, 1e3, 0.0])).agrees
    assert not compare(f32([1e30, 1e-4]), f32([1e30, 0.0])).agrees


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, ml_dtypes.int4])
def test_integers_must_be_equal(dtype: Any) -> None:
    result = compare(np.array([3, 5], dtype), np.array([3, 4], dtype))
    assert not result.agrees
    assert (result.absolute_error, result.relative_error, result.ulps) == (1, 0.25, None)


def test_integer_errors_do_not_wrap() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    assert compare(np.array([low]), np.array([high])).absolute_error == 2.0**64
    assert compare(np.array([0], np.uint64), np.array([2**64 - 1], np.uint64)).absolute_error == 2.0**64


def test_booleans_must_be_equal() -> None:
    result = compare(np.array([True, False]), np.array([True, True]))
    assert (result.disagreements, result.first_disagreement, result.ulps) == (1, (1,), None)


def test_complex_numbers_compare_by_parts() -> None:
    expected = np.array([[1 + 2j], [3 + 4j]], np.complex64)
    actual = expected.copy()
    assert compare(actual, expected).agrees
    actual[1, 0] = 3 + 5j
    result = compare(actual, expected)
    assert (result.absolute_error, result.first_disagreement) == (1, (1, 0))


def test_empty_and_scalar_outputs() -> None:
    assert compare(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32)).agrees
    result = compare(f32(2.0), f32(1.0))
    assert result.first_disagreement == ()


def test_outputs_larger_than_a_chunk() -> None:
    expected = np.ones((1000, 1000), np.float32)
    actual = expected.copy()
    actual[999, 999] = actual[700, 1] = 2
    result = compare(actual, expected)
    assert (result.disagreements, result.first_disagreement) == (2, (700, 1))


def test_arrays_that_are_not_contiguous() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert compare(array.T, np.ascontiguousarray(array.T)).agrees


@pytest.mark.parametrize("actual", [np.zeros(3, np.float32), np.zeros(2, np.float64)])
def test_types_must_be_equal(actual: Array) -> None:
    with pytest.raises(CompilerError, match=r"expected an output of type f32\[2\], got f(32\[3\]|64\[2\])"):
        compare(actual, np.zeros(2, np.float32))


def test_parts_of_complex_numbers_are_as_accurate_as_their_magnitude():
    """The small part of a product is a difference of terms of the size of the large part."""
    expected = np.array([1000 + 1e-3j, 1e-3 - 1000j, 1000 + 1000j, 1e-3 + 1e-3j] * 8, np.complex64)
    assert compare(expected + np.complex64(2e-4j), expected).disagreements == 8
    error = np.tile(np.array([2e-4j, 2e-4, 0, 0], np.complex64), 8)
    found = compare(expected + error, expected)
    assert found.agrees
    assert found.excused == 16


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype.kind in ("float", "complex")], ids=str)
def test_nothing_warns_of_any_bits(dtype: Any) -> None:
    """Signalling NaN, infinities and the largest numbers among them, on one side or both."""
    array = np.frombuffer(np.random.default_rng(0).bytes(4096 * dtype.numpy.itemsize), dtype.numpy)
    if dtype.bits < 8:
        array = (array.view(np.uint8) % 2**dtype.bits).view(dtype.numpy)
    other = np.roll(array, 1)
    assert compare(array, array.copy()).agrees
    assert not compare(array, other).agrees
    assert difference(array, other) is not None
