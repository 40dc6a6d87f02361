"""Gradients of `lax.associative_scan` are scans again, whatever is differentiated and used, and nothing else is."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu import ir
from xgpu.dtypes import parse_spec
from xgpu.frontend import from_stablehlo_text, load_source
from xgpu.passes.normalize.find_scan_gradients import FindScanGradients
from xgpu.runtime.reference import Reference

SCAN = '"xgpu.scan"('


def recurrence(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


def restarting(a, b):
    return a[0] | b[0], jnp.where(b[0], b[1], a[1] + b[1])


def matrices(a, b):
    return a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]


def scan(combine, **options):
    return lambda *x: lax.associative_scan(combine, x if len(x) > 1 else x[0], **options)


def last(combine, **options):
    return lambda *x: scan(combine, **options)(*x)[-1]


def loss(function, *numbers):
    """Return the value of a function's square and the gradients by the arguments of these numbers."""

    def total(*x):
        results = jax.tree.leaves(function(*x))
        floating = [y for y in results if jnp.issubdtype(y.dtype, jnp.inexact)]
        return sum(jnp.sum(jnp.abs(y) ** 2 * (i + 1)) for i, y in enumerate(floating))

    return jax.value_and_grad(total, numbers or (0, 1))


def inputs(specs):
    generator = np.random.default_rng(0)
    for spec in specs:
        dtype, shape = parse_spec(spec)
        x = generator.uniform(-1, 1, shape) + (1j * generator.uniform(-1, 1, shape) if dtype.kind == "complex" else 0)
        yield (generator.random(shape) < 0.2 if dtype.kind == "bool" else x).astype(dtype.numpy)


def check(function, *specs: str, scans: int = 2, others: int = 0) -> str:
    """Load a function that has so many scans and pads that spread arrays; compare with JAX; return the text."""
    source = load_source(function, list(specs))
    text = str(source.module)
    assert text.count(SCAN) == scans
    assert text.count("interior = [1") == others
    arrays = list(inputs(specs))
    expected = jax.tree.leaves(jax.jit(function)(*arrays))
    for result, other in zip(Reference(source.module)(arrays), expected, strict=True):
        np.testing.assert_allclose(result, np.asarray(other), rtol=1e-4, atol=1e-5)
    return text


@pytest.mark.parametrize("size", [4, 5, 6, 7, 8, 9, 31, 100])
def test_linear_recurrence(size):
    text = check(loss(last(recurrence)), f"f32[{size}]", f"f32[{size}]")
    assert text.count("reverse = true") == 1


def test_of_all_results():
    check(loss(scan(recurrence)), "f32[20]", "f32[20]")


@pytest.mark.parametrize("numbers", [(0,), (1,)])
def test_by_one_array(numbers):
    check(loss(last(recurrence), *numbers), "f32[20]", "f32[20]")


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_in_reverse(axis):
    text = check(loss(last(recurrence, axis=axis, reverse=True)), "f32[9,8,5]", "f32[9,8,5]")
    assert text.count("reverse = false") == 1


@pytest.mark.parametrize("combine", [jnp.add, jnp.multiply])
def test_one_array(combine):
    check(loss(scan(combine), 0), "f32[20]")


def test_sums_need_no_matrix():
    text = check(loss(scan(jnp.add), 0), "f32[20]")
    assert "reverse = true} : (tensor<20xf32>) -> tensor<20xf32>" in text


def test_products_of_matrices_by_element():
    """The derivatives are a matrix of 2 by 2 for each of two columns: 4 entries are scanned, and 4 vectors."""
    text = check(loss(scan(matrices), 0, 1, 2, 3), *["f32[20]"] * 4)
    (types,) = re.findall(r"reverse = true} : \((.*)\) ->", text)
    assert types.count("tensor") == 8


def test_complex_numbers():
    check(loss(last(recurrence)), "c64[20]", "c64[20]")


def test_flags_let_nothing_through():
    """What comes after a flag is not multiplied by zero: it may be infinite."""
    function = jax.grad(lambda x, f, weights: jnp.sum(scan(restarting)(f, x)[1] * weights))
    check(function, "f32[20]", "pred[20]", "f32[20]")
    x, flags, weights = np.ones(20, np.float32), np.arange(20) == 9, np.ones(20, np.float32)
    weights[15] = np.inf
    (result,) = xgpu.compile(function, "f32[20]", "pred[20]", "f32[20]").run(x, flags, weights)
    np.testing.assert_array_equal(result, np.asarray(jax.jit(function)(x, flags, weights)))
    assert np.isfinite(result[:9]).all()
    assert np.isinf(result[9:16]).all()


def test_of_rows_under_vmap_and_in_bf16():
    check(jax.vmap(loss(last(recurrence))), "f32[3,20]", "f32[3,20]")
    source = load_source(loss(last(recurrence)), ["bf16[20]", "bf16[20]"])
    assert "interior = [1" not in str(source.module)


def test_narrow_floats_stay():
    source = load_source(jax.grad(lambda x: jnp.sum(scan(jnp.multiply)(x).astype("f4"))), ["f8e4m3fn[9]"])
    assert "interior = [1" in str(source.module)


def test_when_the_scan_itself_is_computed_again():
    """Only its inner levels are there then."""
    function = jax.checkpoint(lambda a, b: jnp.sin(last(recurrence)(jnp.cos(a), b)))
    check(loss(function), "f32[20]", "f32[20]", scans=3)


def test_without_the_value():
    check(jax.grad(lambda a, b, c: jnp.vdot(last(recurrence)(a, b), c), (0, 1)), *["f32[20]"] * 3)


def test_one_after_another():
    """Cotangents of the first are gradients of the second."""
    both = lambda a, b, c: last(recurrence)(a, last(recurrence)(b, c))  # noqa: E731
    check(loss(both, 0, 1, 2), *["f32[20]"] * 3, scans=4)
    check(loss(lambda a, b: jnp.tanh(both(a, a, b)) * a), "f32[20]", "f32[20]", scans=4)


def test_what_else_an_array_is_used_for():
    check(loss(lambda a, b: last(recurrence)(a, b) * a + jnp.sin(a) * b), "f32[20]", "f32[20]")


def test_in_a_loop_over_layers():
    """The loop backwards computes the scan again, or has parts of it from the loop forwards."""
    layer = jax.checkpoint(lambda b, a: (jnp.tanh(last(recurrence)(a, b)), None))
    check(loss(lambda a, b: lax.scan(layer, b, a)[0]), "f32[3,20]", "f32[20]", scans=3)


@pytest.mark.parametrize("combine", [jnp.maximum, jnp.logaddexp])
def test_other_functions_stay(combine):
    source = load_source(loss(scan(combine), 0), ["f32[9]"])
    assert str(source.module).count(SCAN) == 1


def scaled(factor):
    """Return a function that is the identity, but whose gradient is multiplied by a factor."""
    function = jax.custom_vjp(lambda x: x * 1)
    function.defvjp(lambda x: (x * 1, None), lambda _, g: (g * np.float32(factor),))
    return function


STAYING = {
    # Numbers that are 1 in the field of 2^31 - 1 elements.
    "2^31": lambda a, b: scaled(2**31)(a) + b,
    "2^62": lambda a, b: scaled(2**62)(a) + b,
    # Products that are zero and infinite at once, in an order or another; zeros that make NaN of infinity.
    "1e-60": lambda a, b: a * 1e-30 * 1e-30 * b,
    "1e60": lambda a, b: a * 1e30 * 1e30 * b,
    "zero": lambda a, b: a * 0.0 + b,
    "cancelled": lambda a, b: (a + b) * (1 + b - b),
}


@pytest.mark.parametrize("combine", STAYING.values(), ids=STAYING)
@pytest.mark.parametrize("infinite", [False, True])
def test_what_is_another_polynomial_or_of_other_numbers_stays(combine, infinite):
    function = jax.grad(lambda x, weights: jnp.vdot(lax.associative_scan(combine, x), weights))
    source = load_source(function, ["f32[5]", "f32[5]"])
    assert "interior = [1" in str(source.module)
    arrays = [np.linspace(0.5, 1, 5, dtype=np.float32), np.array([1, 2, np.inf if infinite else 3, 4, 5], np.float32)]
    (result,) = Reference(source.module)(arrays)
    np.testing.assert_allclose(result, np.asarray(jax.jit(function)(*arrays)), rtol=1e-5)


def test_derivatives_of_many_operations_stay():
    long = lambda a, b: functools.reduce(lambda y, _: lax.sub(lax.mul(y, b), lax.mul(y, b + 1)), range(120), a)  # noqa: E731
    source = load_source(jax.grad(lambda x, weights: jnp.vdot(scan(long)(x), weights)), ["f32[4]", "f32[4]"])
    assert "interior = [1" in str(source.module)


@pytest.mark.parametrize("gate", [lambda f: jnp.where(f, 0.0, 1.0), lambda f: 1.0 - f.astype(np.float32)])
def test_products_with_zero_are_products(gate):
    """A flag by which a combination multiplies makes NaN of infinity; one that it selects by does not."""
    combine = lambda a, b: (a[0] | b[0], a[1] * gate(b[0]) + b[1])  # noqa: E731
    function = jax.grad(lambda x, f, weights: jnp.vdot(scan(combine)(f, x)[1], weights))
    arrays = [np.ones(9, np.float32), np.arange(9) == 4, np.where(np.arange(9) == 6, np.inf, 1).astype(np.float32)]
    (result,) = Reference(load_source(function, ["f32[9]", "pred[9]", "f32[9]"]).module)(arrays)
    np.testing.assert_array_equal(result, np.asarray(jax.jit(function)(*arrays)))
    assert np.isnan(result[:4]).all()


def test_truth_values_that_are_known():
    combine = lambda a, b: (a[0] | b[0], jnp.where(b[0] & True, b[1], a[1] + b[1]))  # noqa: E731
    check(jax.grad(lambda x, f, c: jnp.vdot(scan(combine)(f, x)[1], c)), "f32[20]", "pred[20]", "f32[20]")
    chosen = lambda a, b: lax.select(jnp.ones(a.shape, bool), a + b, a)  # noqa: E731
    check(jax.grad(lambda x, c: jnp.vdot(scan(chosen)(x), c)), "f32[20]", "f32[20]")


def test_the_time_for_sums_is_linear():
    """Additions that several read are not taken apart, nor is any one twice."""
    lines = ["%0 = stablehlo.add %padded, %x : tensor<4xf32>"]
    lines += [f"%{i + 1} = stablehlo.add %{i}, %{i} : tensor<4xf32>" for i in range(60)]
    lines += [f"%{i + 1} = stablehlo.add %x, %{i} : tensor<4xf32>" for i in range(60, 3000)]
    body = "\n".join([*lines, "%last = stablehlo.add %padded, %3000 : tensor<4xf32>"])
    module = ir.Module.parse(SUMS.replace("BODY", body), ir.make_context())
    with module.context:
        FindScanGradients().apply(module)
    assert str(module).count("stablehlo.add") == 3002


SUMS = """
func.func @main(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %scan = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %product = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %product : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<4xf32>) -> tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %padded = stablehlo.pad %y, %zero, low = [0], high = [1], interior = [1]
    : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  BODY
  return %scan, %last : tensor<4xf32>, tensor<4xf32>
}
"""


def test_zeros_lose_their_sign_as_in_jax():
    function = jax.grad(lambda a, b, c: jnp.vdot(last(recurrence)(a, b), c), (0, 1))
    x = [np.full(9, number, np.float32) for number in (0.0, -0.0, -0.0)]
    results = xgpu.compile(function, *["f32[9]"] * 3).run(*x)
    for result, other in zip(results, jax.jit(function)(*x), strict=True):
        np.testing.assert_array_equal(np.signbit(result), np.signbit(np.asarray(other)))


def test_what_differs_in_one_operation_stays():
    function = jax.value_and_grad(lambda a, b, c: jnp.vdot(last(recurrence)(a, b), c), (0, 1))
    shape = jax.ShapeDtypeStruct((6,), np.float32)
    text = jax.jit(function).lower(shape, shape, shape).as_text()
    assert str(from_stablehlo_text(text).module).count("reverse = true") == 1
    # The operations after the value are those of the gradients.
    backward = text.index("stablehlo.dot_general")
    places = [match.start() for match in re.finditer(r"stablehlo.(multiply|add) .*tensor<[1236]xf32>", text)]
    arrays = list(inputs(["f32[6]"] * 3))
    count = 0
    for place in (place for place in places if place > backward):
        changed = text[:place] + re.sub("multiply|add", "subtract", text[place:], count=1)
        source, as_given = from_stablehlo_text(changed), Reference(ir.Module.parse(changed, ir.make_context()))
        count += "interior = [1]" in str(source.module)
        for result, other in zip(Reference(source.module)(arrays), as_given(arrays), strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-5, atol=1e-6)
    assert count > 10
