"""Prefix sums and the like become scans, whichever operation they are written as, and XLA still computes them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xgpu.dtypes import parse_spec
from xgpu.frontend import from_stablehlo_text, load_source
from xgpu.runtime.reference import Reference

SCAN = '"xgpu.scan"('


def check(function, *specs: str, scans: int = 1) -> str:
    """Load a function, which has so many scans, and compare what XLA makes of them with JAX; return the text."""
    source = load_source(function, list(specs))
    text = str(source.module)
    assert text.count(SCAN) == scans
    generator = np.random.default_rng(0)
    arrays = []
    for spec in specs:
        dtype, shape = parse_spec(spec)
        arrays.append(
            (generator.random(shape) < 0.2 if dtype.kind == "bool" else generator.integers(-9, 9, shape)).astype(
                dtype.numpy
            )
        )
    expected = jax.tree.leaves(jax.jit(function)(*arrays))
    for result, other in zip(Reference(source.module)(arrays), expected, strict=True):
        np.testing.assert_allclose(result, np.asarray(other), rtol=1e-5)
    return text


@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("function", [lax.cumsum, lax.cummax, lax.cummin, lax.cumprod, lax.cumlogsumexp])
def test_cumulative_functions(function, is_reverse):
    spec = "f32[3,40]" if function is lax.cumlogsumexp else "s32[3,40]"
    text = check(lambda x: function(x, 1, reverse=is_reverse), spec)
    assert "stablehlo.while" not in text
    assert "reduce_window" not in text
    assert f"dimension = 1 : i64, reverse = {str(is_reverse).lower()}" in text


def test_sums_of_bf16_are_in_f32():
    text = check(lambda x: jnp.cumsum(x, 0), "bf16[30]")
    assert "dimension = 0 : i64, reverse = false} : (tensor<30xf32>)" in text


def windows(low: int, high: int, length: int = 9, init: int = 0):
    return lambda x: lax.reduce_window(x, np.int32(init), lax.add, (length,), (1,), ((low, high),))


@pytest.mark.parametrize(
    ("low", "high", "length"),
    [(8, 0, 9), (0, 8, 9), (9, -1, 9), (-1, 9, 9), (10, -2, 9), (10, 0, 11), (0, 12, 13), (8, -3, 9), (12, -4, 9)],
)
def test_windows_that_are_prefixes(low, high, length):
    check(windows(low, high, length), "s32[9]")


@pytest.mark.parametrize(("low", "high", "length"), [(7, 1, 9), (7, 0, 8), (8, 8, 9), (8, 1, 9), (4, 4, 9), (0, 0, 9)])
def test_other_windows_stay(low, high, length):
    check(windows(low, high, length), "s32[9]", scans=0)


def test_windows_with_strides_and_several_dimensions_stay():
    check(lambda x: lax.reduce_window(x, 0, lax.add, (9,), (2,), ((8, 0),)), "s32[9]", scans=0)
    check(lambda x: lax.reduce_window(x, 0, lax.add, (9, 2), (1, 1), ((8, 0), (1, 0))), "s32[9,3]", scans=0)
    check(lambda x: lax.reduce_window(x, 0, lax.add, (1,), (1,), ((0, 0),)), "s32[9]", scans=0)


@pytest.mark.parametrize("dtype", ["u8", "u32", "u64", "s64"])
@pytest.mark.parametrize("is_least", [True, False])
def test_extrema_that_start_from_any_number_of_the_type(dtype, is_least):
    numpy_dtype = parse_spec(f"{dtype}[]")[0].numpy
    ends = np.iinfo(numpy_dtype)
    for start in (ends.min, 1, ends.max):
        combine, init = lax.min if is_least else lax.max, numpy_dtype.type(start)
        source = load_source(
            lambda x, c=combine, i=init: lax.reduce_window(x, i, c, (4,), (1,), ((3, 0),)), [f"{dtype}[4]"]
        )
        assert str(source.module).count(SCAN) == 1
        array = np.array([5, ends.max, ends.min, 3], numpy_dtype)
        function = np.minimum if is_least else np.maximum
        (result,) = Reference(source.module)([array])
        np.testing.assert_array_equal(result, function(init, function.accumulate(array)))


def test_a_negative_zero_plus_the_initial_zero_is_zero():
    source = load_source(lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), ((2, 0),)), ["f32[3]"])
    (result,) = Reference(source.module)([np.full(3, -0.0, np.float32)])
    assert not np.signbit(result).any()


def test_several_operands():
    def function(x, y):
        def combine(a, b):
            return a[0] + b[0], lax.max(a[1], b[1])

        return lax.reduce_window((x, y), (0, -(2**31)), combine, (1, 9), (1, 1), ((0, 0), (8, 0)))

    check(function, "s32[3,9]", "s32[3,9]")


def test_scans_of_nothing_are_no_scans():
    check(lambda x: (jnp.cumsum(x, 1), jnp.cumsum(x, 0), jnp.cumsum(x.T, 0)), "s32[3,0]", scans=0)
    check(lambda x: jnp.cumsum(x, 0), "s32[1,3]", scans=0)


def scan(attributes, body, init="%zero", results="%y#0, %y#1"):
    return f"""func.func @main(%x: tensor<4x5xf32>, %i: tensor<4xf32>) -> (tensor<4x5xf32>, tensor<4xf32>) {{
        %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
        %y:2 = chlo.scan(%x) inits ({init}) dimension=1 attributes {{{attributes}}} {{
        ^bb0(%input: tensor<4xf32>, %carry: tensor<4xf32>):
          {body}
        }} : (tensor<4x5xf32>, tensor<4xf32>) -> (tensor<4x5xf32>, tensor<4xf32>)
        return {results} : tensor<4x5xf32>, tensor<4xf32>
    }}"""


ADDS = "%s = stablehlo.add %input, %carry : tensor<4xf32>\nstablehlo.return %s, %s : tensor<4xf32>, tensor<4xf32>"
RETURNS_INPUT = ADDS.replace("return %s,", "return %input,")


@pytest.mark.parametrize("init", ["%zero", "%i"])
def test_a_scan_gives_its_last_carry(init):
    source = from_stablehlo_text(scan("is_associative = true, is_reverse = true", ADDS, init))
    array, start = np.arange(20, dtype=np.float32).reshape(4, 5), np.arange(4, dtype=np.float32)
    sums, last = Reference(source.module)([array, start])
    before = start[:, None] * (init == "%i")
    np.testing.assert_array_equal(sums, before + np.cumsum(array[:, ::-1], axis=1)[:, ::-1])
    np.testing.assert_array_equal(last, before[:, 0] + array.sum(axis=1))


@pytest.mark.parametrize(
    ("attributes", "body"),
    [
        ("is_associative = false, is_reverse = false", ADDS),
        ("is_associative = true, is_reverse = false", RETURNS_INPUT),
    ],
)
def test_other_scans_become_loops(attributes, body):
    assert "stablehlo.while" in str(from_stablehlo_text(scan(attributes, body)).module)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_in_text_for_xla(reverse):
    """With a region of which no identity is known: the later element where it is not zero."""
    attributes = f"dimension = 1 : i64, reverse = {str(reverse).lower()}"
    text = f"""func.func @main(%x: tensor<3x9xi32>) -> tensor<3x9xi32> {{
        %0 = "xgpu.scan"(%x) ({{
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %is = stablehlo.compare NE, %b, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
          %r = stablehlo.select %is, %b, %a : tensor<i1>, tensor<i32>
          stablehlo.return %r : tensor<i32>
        }}) {{{attributes}}} : (tensor<3x9xi32>) -> tensor<3x9xi32>
        return %0 : tensor<3x9xi32>
    }}"""
    array = np.random.default_rng(0).integers(0, 3, (3, 9)).astype(np.int32)
    (result,) = Reference(from_stablehlo_text(text).module)([array])
    expected = array[:, ::-1].copy() if reverse else array.copy()
    for i in range(1, 9):
        expected[:, i] = np.where(expected[:, i], expected[:, i], expected[:, i - 1])
    np.testing.assert_array_equal(result, expected[:, ::-1] if reverse else expected)
