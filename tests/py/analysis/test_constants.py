"""What is computed of constants alone is folded to the bits that XLA computes, and only where that saves something."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

_RANDOM = np.random.default_rng(0)
INTEGERS = _RANDOM.integers(-50, 50, (6, 7)).astype(np.int32)
BYTES = _RANDOM.integers(-128, 128, 33).astype(np.int8)
WORDS = _RANDOM.integers(0, 2**32, 40, np.uint32)
FLOATS = _RANDOM.standard_normal((5, 9)).astype(np.float32)
FLOATS[0, :5] = [np.nan, -0.0, 0.0, np.inf, -np.nan]
TRUTHS = _RANDOM.random((4, 5)) > 0.5

Programs = dict[str, Callable[[], Any]]


def _each(array: Any, *functions: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return results that are sorted, so that folding them saves something."""
    return lambda: [jnp.sort(function(jnp.array(array))) for function in functions]


PROGRAMS: Programs = {
    "sorts": lambda: (
        jnp.sort(jnp.array(INTEGERS), 0),
        jnp.sort(jnp.array(INTEGERS), 1, descending=True),
        jnp.argsort(jnp.array(FLOATS), 1),
        jnp.sort(jnp.array(FLOATS), 0),
        jnp.lexsort((jnp.array(INTEGERS[0]), jnp.array(INTEGERS[1] % 3))),
        lax.sort((jnp.array(INTEGERS) % 3, jnp.array(INTEGERS), jnp.array(INTEGERS) + 1), num_keys=2),
        jnp.unique(jnp.array(INTEGERS), size=30, return_counts=True),
    ),
    "integers": _each(
        INTEGERS,
        lambda x: x // 7,
        lambda x: x % 7,
        lambda x: -x >> 1,
        lambda x: x << 30,
        lambda x: lax.shift_right_logical(x, jnp.int32(40)),
        lambda x: lax.shift_right_arithmetic(x, jnp.int32(99)),
        lambda x: x**6,
        jnp.sign,
        jnp.abs,
        lax.population_count,
        lambda x: jnp.clip(x, -5, 9),
        lambda x: ~x ^ (x << 3) | 5,
        lambda x: lax.rem(x, jnp.int32(-7)),
        lambda x: lax.div(x, jnp.int32(-7)),
    ),
    "bytes": _each(BYTES, lambda x: x * x, lambda x: x // 3, jnp.negative, jnp.abs, lambda x: x.astype(jnp.uint16)),
    "words": _each(WORDS, lambda x: x >> 7, lambda x: x // 3, lambda x: x * x, jnp.negative, lambda x: x << 33),
    "conversions": _each(
        INTEGERS,
        lambda x: x.astype(jnp.int8),
        lambda x: x.astype(jnp.uint8) // 3,
        lambda x: x.astype(jnp.float32) / 3,
        lambda x: (x * 0.37).astype(jnp.int32),
        lambda x: lax.bitcast_convert_type(x, jnp.float32),
        lambda x: x.astype(bool),
    ),
    "floats": _each(
        INTEGERS.astype(np.float32) / 4 + np.float32(0.125),
        lambda x: jnp.clip(x, -2.25, 1),
        lambda x: jnp.maximum(jnp.round(x), 2.5),
        lambda x: jnp.minimum(jnp.floor(x), jnp.ceil(x * 3)),
        lambda x: jnp.array(INTEGERS)[:, jnp.clip(jnp.round(x[0]), 1, 4).astype(jnp.int32)],
        lambda x: jnp.clip(x.astype(jnp.bfloat16), -2, 3),
    ),
    "reductions": lambda: (
        jnp.array(INTEGERS).sum(),
        jnp.array(INTEGERS).max(0),
        jnp.array(INTEGERS).prod(1),
        jnp.array(TRUTHS).sum(0),
        jnp.array(TRUTHS).any(1),
        jnp.array(TRUTHS).all(0),
        lax.reduce_xor(jnp.array(INTEGERS), (0,)),
    ),
    "scans": lambda: (
        jnp.cumsum(jnp.array(INTEGERS), 0),
        jnp.cumprod(jnp.array(INTEGERS), 1),
        lax.cummax(jnp.array(INTEGERS), 1, reverse=True),
        jnp.cumsum(jnp.array(TRUTHS), 1),
    ),
    "moves": lambda: (
        jnp.array(INTEGERS)[jnp.array([0, 2, -1])],
        jnp.array(FLOATS)[:, jnp.array([9, 3])],
        lax.pad(jnp.array(INTEGERS), jnp.int32(3), ((-1, 2, 1), (1, -2, 2)))[jnp.array([1, 1])],
        jnp.flip(jnp.array(INTEGERS))[jnp.array([3, 1])],
        jnp.concatenate([jnp.array(INTEGERS), jnp.array(INTEGERS) + 1], 1).T[jnp.array([3, 13])],
        jnp.take_along_axis(jnp.array(INTEGERS), jnp.array(INTEGERS) % 6, 0),
        lax.dynamic_slice(jnp.array(INTEGERS), (jnp.array(INTEGERS)[0, 0], 4), (2, 3)).sum(),
        lax.dynamic_update_slice(jnp.array(INTEGERS), jnp.array(INTEGERS)[:2, :2] * 3, (1, 9)),
    ),
    "scatters": lambda: (
        jnp.array(INTEGERS).at[jnp.array([0, 2, 2, -1, 40])].add(5),
        jnp.array(INTEGERS).at[:, jnp.array([0, 2])].set(7),
        jnp.zeros((5, 9), bool).at[jnp.array([1, 3])].set(True),
        jnp.array(FLOATS).at[jnp.array([1, 2]), 3].set(jnp.array([2.0, 3.0])),
        jnp.array(INTEGERS).at[jnp.array([[0], [3]]), jnp.array([[1, 2]])].multiply(3),
        jax.ops.segment_max(jnp.array(INTEGERS), jnp.array([0, 1, 1, 4, -1, 2]), 5),
    ),
    "indices": lambda: (
        jnp.insert(jnp.array(INTEGERS), jnp.array([1, 3]), jnp.array([7]), axis=1),
        jnp.nonzero(jnp.array(TRUTHS), size=12),
        jnp.repeat(jnp.array(FLOATS), jnp.array([1, 0, 2, 3, 0]), axis=0, total_repeat_length=7),
        jnp.triu_indices(5),
        jnp.bincount(jnp.array(INTEGERS).reshape(-1) % 9, length=9),
    ),
}


def _bits(value: Any) -> bytes:
    """Return the bits of an array; all NaN are one."""
    array = np.asarray(value)
    return (np.where(np.isnan(array), np.float32(np.nan), array) if array.dtype.kind == "f" else array).tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits_as_xla_and_nothing_left_to_run(name: str) -> None:
    """All of it is constant: what is left is at most one kernel, the one of the argument."""

    def program(x: Any) -> Any:
        return PROGRAMS[name](), x + 1

    expected, found = (jax.tree.leaves(jit(program)(jnp.ones(3))) for jit in (jax.jit, xgpu.jit))
    for left, right in zip(expected, found, strict=True):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        assert _bits(left) == _bits(right)
    compiled = xgpu.compile(program, "f32[3]")
    text = compiled.ir("prepared")
    assert not any(f"stablehlo.{each}" in text for each in ("sort", "scatter", "gather", "reduce")), text
    assert "xgpu.scan" not in text


@pytest.mark.parametrize("value", [0.0, 2.0], ids=["values that are folded too", "several constants"])
def test_insert_is_a_fill_and_scatters(value: float) -> None:
    """One kernel fills, one scatters the argument; a value that is no zero may be scattered by another."""
    compiled = xgpu.compile(lambda x: jnp.insert(x, jnp.array([3, 7, 7]), value), "f32[100000]")
    assert len(compiled.launches) <= 3
    assert "stablehlo.sort" not in compiled.ir("fusions")
    assert "xgpu.scan" not in compiled.ir("fusions")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + jnp.sum(jnp.array(FLOATS)),
        lambda x: x + jnp.argsort(lax.rem(jnp.array(INTEGERS[0, :3]).repeat(6), jnp.zeros(18, jnp.int32)))[:3],
        lambda x: x + jnp.sort(jnp.sin(jnp.array(FLOATS[0, :3]).repeat(6)))[:3],
        lambda x: x + jnp.sort(jnp.array(FLOATS[0, 3:6]).repeat(6) * 0)[:3],
    ],
    ids=["sum of floats", "division by zero", "function", "NaN that is made"],
)
def test_what_machines_may_compute_differently_stays(function: Callable[[Any], Any]) -> None:
    """The rounding of sums and functions, quotients by zero and the sign of NaN are not folded."""
    text = xgpu.compile(function, "f32[3]").ir("prepared")
    assert "stablehlo.sort" in text or "stablehlo.reduce" in text


@pytest.mark.parametrize("other", [-0.0, np.nan])
@pytest.mark.parametrize("function", [jnp.maximum, jnp.minimum, lambda x, y: lax.clamp(y, x, x)])
def test_extremes_of_zeros_and_of_nan_stay(function: Callable[..., Any], other: float) -> None:
    numbers = jnp.array([0.0, 1.0]), jnp.array([other, 2.0])
    text = xgpu.compile(lambda x: x + function(*numbers), "f32[2]").ir("prepared")
    assert any(f"stablehlo.{name}" in text for name in ("maximum", "minimum", "clamp"))


def test_the_place_of_a_median_is_known() -> None:
    """It is a constant that is clamped: a slice of the sorted row."""
    text = xgpu.compile(lambda x: jnp.median(x, 1), "f32[64,9]").ir("prepared")
    assert not any(f"stablehlo.{name}" in text for name in ("gather", "dynamic_slice"))


def test_arrays_of_the_largest_unsigned_number_are_folded() -> None:
    """The bindings take 64 signed bits where one number stands for a whole array."""
    text = """func.func @main(%x: tensor<2xui64>) -> tensor<2xui64> {
      %c = stablehlo.constant dense<[18446744073709551615, 18446744073709551615]> : tensor<2xui64>
      %s = "stablehlo.sort"(%c) <{dimension = 0 : i64}> ({
      ^bb0(%a: tensor<ui64>, %b: tensor<ui64>):
        %less = stablehlo.compare LT, %a, %b : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
        stablehlo.return %less : tensor<i1>
      }) : (tensor<2xui64>) -> tensor<2xui64>
      %r = stablehlo.subtract %s, %x : tensor<2xui64>
      return %r : tensor<2xui64>
    }"""
    compiled = xgpu.compile(text)
    assert "stablehlo.sort" not in compiled.ir("prepared")
    (result,) = compiled.run(np.array([1, 2], np.uint64))
    np.testing.assert_array_equal(result, np.array([2**64 - 2, 2**64 - 3], np.uint64))


def test_the_order_of_the_bits_of_packed_floats_is_folded() -> None:
    """NumPy has each of them in a byte, whose sign is not theirs."""
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c = stablehlo.constant dense<[1.0, -6.0, 0.5, -0.0]> : tensor<4xf4E2M1FN>
      %s = "stablehlo.sort"(%c) <{dimension = 0 : i64}> ({
      ^bb0(%a: tensor<f4E2M1FN>, %b: tensor<f4E2M1FN>):
        %less = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f4E2M1FN>, tensor<f4E2M1FN>) -> tensor<i1>
        stablehlo.return %less : tensor<i1>
      }) : (tensor<4xf4E2M1FN>) -> tensor<4xf4E2M1FN>
      %w = stablehlo.convert %s : (tensor<4xf4E2M1FN>) -> tensor<4xf32>
      %r = stablehlo.add %w, %x : tensor<4xf32>
      return %r : tensor<4xf32>
    }"""
    (result,) = xgpu.compile(text).run(np.full(4, 8, np.float32))
    np.testing.assert_array_equal(result, [2, 8, 8.5, 9])


def test_bits_of_single_numbers_are_read_as_another_type() -> None:
    text = """func.func @main(%x: tensor<4xi32>) -> tensor<2xi32> {
      %c = stablehlo.constant dense<254> : tensor<ui8>
      %start = stablehlo.bitcast_convert %c : (tensor<ui8>) -> tensor<i8>
      %bits = stablehlo.negate %start : tensor<i8>
      %r = stablehlo.dynamic_slice %x, %bits, sizes = [2] : (tensor<4xi32>, tensor<i8>) -> tensor<2xi32>
      return %r : tensor<2xi32>
    }"""
    compiled = xgpu.compile(text)
    assert "bitcast_convert" not in compiled.ir("prepared")
    (result,) = compiled.run(np.arange(4, dtype=np.int32))
    np.testing.assert_array_equal(result, [2, 3])


def test_masks_stay_code() -> None:
    """A mask of a shape takes no memory in a kernel; as a constant it would."""
    text = xgpu.compile(lambda x: jnp.where(jnp.tri(64, dtype=bool), x, 0), "f32[64,64]").ir("prepared")
    assert "stablehlo.iota" in text
    assert 'dense<"0x' not in text


def test_too_large_arrays_are_not_evaluated() -> None:
    """Compiling does not take as long as running."""
    text = xgpu.compile(lambda x: x + jnp.cumsum(jnp.arange(1 << 21) % 3)[5], "f32[3]").ir("prepared")
    assert "xgpu.scan" in text or "stablehlo.reduce" in text


def test_blocks_of_control_flow() -> None:
    """A loop's body is folded as well: its constants are in it."""

    def program(x: Any) -> Any:
        def body(state: Any) -> Any:
            count, x = state
            return count + 1, jnp.sort(jnp.tile(x, 2))[::2] + jnp.sort(jnp.array(FLOATS[1]))

        return lax.while_loop(lambda state: state[0] < 3, body, (0, x))

    x = jnp.asarray(FLOATS[2])
    assert xgpu.compile(program, "f32[9]").ir("prepared").count("stablehlo.sort") == 1
    np.testing.assert_array_equal(xgpu.jit(program)(x)[1], jax.jit(program)(x)[1])


TABLE = _RANDOM.standard_normal(8192).astype(np.float32)
PLACES = _RANDOM.permutation(8192).astype(np.int32)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (jnp.sin(x) + TABLE, x[::-1] * TABLE, (x * jnp.array(TABLE)).sum()),
        lambda x: (jnp.array(TABLE).at[3].set(x[0]), jnp.array(TABLE).at[jnp.array([1, 5])].add(x[:2])),
        lambda x: (jnp.array(TABLE), x + 1, jnp.array(TABLE).reshape(64, 128)),
        lambda x: x.at[PLACES].add(TABLE),
        lambda x: x.at[PLACES[:3]].set(TABLE[:3]),
        lambda x: lax.dynamic_update_slice(jnp.array(TABLE), x[:10], (5,)),
        lambda x: lax.scan(lambda c, i: (c * 0.5 + jnp.array(TABLE)[i], c[0]), x, jnp.arange(9)),
        lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sort(c + TABLE), x),
        lambda x: lax.cond(x[0] > 0, lambda x: jnp.sort(x) + TABLE, lambda x: x - TABLE, x),
    ],
)
def test_large_constants_are_operands(function: Callable[[Any], Any]) -> None:
    """No kernel has a large table in its text, and results are those of XLA."""
    x = jnp.asarray(_RANDOM.standard_normal(8192), jnp.float32)
    for left, right in zip(*(jax.tree.leaves(jit(function)(x)) for jit in (jax.jit, xgpu.jit)), strict=True):
        np.testing.assert_allclose(left, right, rtol=2e-5, atol=1e-6)
    if "scan" not in function.__code__.co_names:
        assert all(len(kernel.ptx) < 60_000 for kernel in xgpu.compile(function, "f32[8192]").kernels)


def test_a_package_has_its_tables() -> None:
    """With all of a program in kernels nothing is left to XLA."""
    compiled = xgpu.compile(lambda x: x + TABLE, "f32[8192]", options=xgpu.Options(products="all"))
    assert "xgpu.fallback" not in compiled.ir("fusions")
