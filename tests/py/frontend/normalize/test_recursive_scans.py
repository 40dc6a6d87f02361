"""Scans written out for `lax.associative_scan` are found, whatever their size, and nothing else is taken for one."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.frontend import from_stablehlo_text, load_source

from .test_scans import check

SIZES = [4, 5, 6, 7, 8, 9, 31, 100]


def recurrence(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


def restarting(a, b):
    return a[0] | b[0], jnp.where(b[0], b[1], a[1] + b[1])


def scan(combine, **options):
    return lambda *x: lax.associative_scan(combine, x if len(x) > 1 else x[0], **options)


@pytest.mark.parametrize("size", [2, 3, *SIZES])
def test_one_array(size):
    text = check(scan(jnp.add), f"s32[{size}]")
    assert "stablehlo.pad" not in text
    assert "stablehlo.slice" not in text


@pytest.mark.parametrize("size", SIZES)
def test_several_arrays(size):
    text = check(scan(restarting), f"pred[{size}]", f"s32[{size}]")
    assert "stablehlo.pad" not in text


@pytest.mark.parametrize("size", SIZES)
def test_one_result_of_several_arrays(size):
    """The scan of the first array is not computed then, but what pairs of it are combined to is."""
    text = check(lambda a, b: scan(recurrence, axis=1)(a % 2, b)[1], f"s32[3,{size}]", f"s32[3,{size}]")
    assert "stablehlo.pad" not in text


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_in_reverse(axis):
    text = check(scan(jnp.maximum, axis=axis, reverse=True), "s32[9,8,5]")
    assert f"dimension = {axis} : i64, reverse = true" in text
    assert text.count("stablehlo.reverse") == 1  # Of no use to anyone.


def test_what_several_use_is_one_scan():
    def function(x):
        y = scan(jnp.add)(x)
        return y, y[::-1], y * 2

    check(function, "s32[40]")


def test_two_scans_of_one_array():
    check(lambda x: (scan(jnp.add)(x), scan(jnp.maximum)(x)), "s32[40]", scans=2)


def test_a_scan_of_a_scan():
    check(lambda x: scan(jnp.add)(scan(jnp.add)(x)), "s32[40]", scans=2)


def test_a_scan_of_what_is_computed_of_a_scan():
    """The operation between has another operand by the time that the second scan is made."""
    check(lambda x: scan(jnp.add)(scan(jnp.add)(x) % 7), "s32[40]", scans=2)


@pytest.mark.parametrize("size", SIZES)
def test_arrays_that_are_broadcast_where_they_are_combined(size):
    """A flag for each row, a factor of which only one is there under `jax.vmap`, and one with a dimension of one."""
    rows = lambda a, b: (a[0] | b[0], jnp.where(b[0][:, None], b[1], a[1] + b[1]))  # noqa: E731
    check(lambda f, x: scan(rows)(f, x)[1], f"pred[{size}]", f"s32[{size},3]")
    check(jax.vmap(lambda a, b: scan(recurrence)(a % 2, b)[1], (None, 0)), f"s32[{size}]", f"s32[3,{size}]")
    text = check(lambda a, b: scan(recurrence, axis=1)(a % 2, b)[1], f"s32[3,{size},1]", f"s32[3,{size},4]")
    assert "stablehlo.pad" not in text


def test_all_results_of_arrays_that_are_broadcast():
    """What is before an element is broadcast, too, and several results share what is broadcast."""

    def combine(a, b):
        both = (a[0] * b[0])[:, None]
        return a[0] + b[0], a[1] + b[1] + both, a[2] + b[2] - a[1] * 0 - both

    text = check(scan(combine), "s32[9]", "s32[9,3]", "s32[9,3]", scans=2)
    assert "stablehlo.pad" not in text


def test_what_is_broadcast_along_the_scan_stays():
    source = load_source(lambda a, b: scan(lambda x, y: x * y + a)(b), ["s32[3]", "s32[9,3]"])
    assert "xgpu.scan" not in str(source.module)


def test_a_number_of_python():
    """JAX converts it, to the type that it has."""
    text = check(lambda x: scan(recurrence)(jnp.full(40, 2), x % 2)[1] % 7, "s32[40]")
    assert "stablehlo.pad" not in text


def test_under_vmap_and_in_a_loop():
    check(jax.vmap(scan(jnp.add)), "s32[5,40]")
    check(lambda x: lax.fori_loop(0, 3, lambda _, x: scan(jnp.add)(x) % 100, x), "s32[40]")


def test_zeros_lose_their_sign_as_in_jax():
    x = np.full(9, -0.0, np.float32)
    function = scan(jnp.multiply)
    expected = np.asarray(jax.jit(function)(x))
    (result,) = xgpu.compile(function, "f32[9]").run(x)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


def test_products_of_matrices_stay():
    source = load_source(scan(jnp.matmul), ["f32[9,2,2]"])
    assert "xgpu.scan" not in str(source.module)


def restarting_maximum(a, b):
    return jnp.where(b[1], b[0], jnp.maximum(a[0], b[0])), a[1] | b[1]


def first_largest(a, b):
    is_first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] <= b[1]))
    return jnp.where(is_first, a[0], b[0]), jnp.where(is_first, a[1], b[1])


def sums_by_name(a, b):
    return jnp.where(a[1] == b[1], a[0] + b[0], b[0]), b[1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, flags: lax.cummax(x),
        lambda x, flags: lax.cummin(x, reverse=True),
        lambda x, flags: lax.associative_scan(restarting_maximum, (x, flags))[0],
    ],
    ids=["cummax", "cummin from the end", "in segments"],
)
def test_derivatives_of_extrema_are_taken_in_the_order_of_the_program(function, dtype):
    """Of equal elements they are means of means, which depend on the order; numbers are exact here."""
    generator = np.random.default_rng(0)
    x, tangents = (generator.integers(low, 3, 100).astype(jnp.dtype(dtype)) for low in (-2, -9))
    flags = generator.random(100) < 0.1

    def derivative(x, tangents, flags):
        return jax.jvp(lambda x: function(x, flags), (x,), (tangents,))

    (value, result), wanted = xgpu.jit(derivative)(x, tangents, flags), jax.jit(derivative)(x, tangents, flags)
    np.testing.assert_array_equal(value, wanted[0])
    np.testing.assert_array_equal(result, wanted[1])


@pytest.mark.parametrize(
    ("combine", "second"), [(restarting_maximum, "pred"), (first_largest, "s32"), (sums_by_name, "f32")]
)
def test_what_equal_neighbours_do_not_break_is_a_scan(combine, second):
    """The last is associative for names that are in order, of which equal ones are neighbours."""
    source = load_source(lambda a, b: scan(combine)(a, b), ["f32[40]", f"{second}[40]"])
    assert str(source.module).count('"xgpu.scan"') == 1
    assert "stablehlo.pad" not in str(source.module)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Another function at one level only, other elements, another order, and a number that is not zero between.
        ("stablehlo.add %A, %B : tensor<4xi32>", "stablehlo.multiply %A, %B : tensor<4xi32>"),
        ("[0:7:2]", "[1:8:2]"),
        (
            "low = [0], high = [1], interior = [1] : (tensor<2",
            "low = [1], high = [0], interior = [1] : (tensor<2",
        ),
        ("dense<0>", "dense<1>"),
    ],
)
def test_what_differs_at_one_place_stays(old, new):
    text = jax.jit(lambda x: scan(jnp.add)(x)).lower(jax.ShapeDtypeStruct((8,), np.int32)).as_text()
    assert "xgpu.scan" in str(from_stablehlo_text(text).module)
    pattern = re.escape(old).replace("%A", r"(%\w+)").replace("%B", r"(%\w+)")
    changed, count = re.subn(pattern, new.replace("%A", r"\1").replace("%B", r"\2"), text, count=1)
    assert count == 1
    module = str(from_stablehlo_text(changed).module)
    assert "reverse = false} : (tensor<8xi32>)" not in module
