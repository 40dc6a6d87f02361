"""Sums of arrays that zeros surround are concatenations, with the same elements to the sign of zeros."""

import random
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.effort import by_level, seed_of_commit
from xgpu import ir
from xgpu.interface.explanation import explain
from xgpu.passes.prepare.concatenations.concatenate_pads import ConcatenatePads

Array = np.ndarray[Any, Any]


def agrees(compiled: xgpu.Compiled, inputs: tuple[Array, ...]) -> None:
    """Check that the results are XLA's, to the sign of zeros."""
    for got, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(got, expected)
        if np.issubdtype(expected.dtype, np.inexact):
            is_number = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got.real[is_number]), np.signbit(expected.real[is_number]))
            np.testing.assert_array_equal(np.signbit(got.imag[is_number]), np.signbit(expected.imag[is_number]))


def elements(generator: random.Random, shape: tuple[int, ...], dtype: str) -> Array:
    """Return an array with zeros of both signs, infinities and NaNs; integers if ``dtype`` is their type."""
    special = [0, 1, -1, 2, 3] if np.dtype(dtype).kind == "i" else [0.0, -0.0, -0.0, 1.5, -2.5, 1e30, np.inf, np.nan]
    values = [generator.choice(special) for _ in range(int(np.prod(shape)))]
    return np.array(values, dtype).reshape(shape)


def padded(generator: random.Random, shape: tuple[int, ...]) -> tuple[tuple[int, ...], list[tuple[int, int, int]]]:
    """Return the shape of an array, and how it is padded: a column, a half, every second element, or any box."""
    sizes, padding = [], []
    for size in shape:
        kind = generator.choice(("all", "one", "half", "strided", "any"))
        low, part, apart = 0, size, 1
        if kind == "one":
            low, part = generator.randrange(size), 1
        elif kind == "half":
            low, part = generator.choice((0, size // 2)), size // 2
        elif kind == "strided":
            low, part, apart = generator.randrange(2), size // 2, 2
        elif kind == "any":
            low = generator.randrange(size)
            part = generator.randint(1, size - low)
        sizes.append(part)
        padding.append((low, size - low - (part - 1) * apart - 1, apart - 1))
    return tuple(sizes), padding


def random_sum(generator: random.Random) -> tuple[Callable[..., Any], list[Array]]:
    """Return a sum of padded arrays, and at times of others, in any order, and its arguments."""
    shape = generator.choice([(8,), (4, 6), (2, 4, 4)])
    dtype = generator.choice(("float32", "float32", "int32", "complex64"))
    zero = np.array(generator.choice((0, 0, 0, 0, 0, -0.0, 1)), dtype)
    pads = [padded(generator, shape) if generator.random() < 0.9 else None for _ in range(generator.randint(2, 7))]
    arguments = [elements(generator, shape if each is None else each[0], dtype) for each in pads]
    order = [generator.randrange(2) for _ in pads]

    def function(*arrays: Any) -> Any:
        values = [a if pad is None else lax.pad(a, zero, pad[1]) for a, pad in zip(arrays, pads, strict=True)]
        for each in order[1:]:
            # The first two, or the last two: chains and trees.
            values = [values[0] + values[1], *values[2:]] if each else [*values[:-2], values[-2] + values[-1]]
        return values[0]

    return function, arguments


@pytest.mark.parametrize("part", range(4))
def test_random_sums(part: int) -> None:
    generator = random.Random(seed_of_commit() + part)
    sums = [random_sum(generator) for _ in range(by_level(4, 12, 100))]
    counts = [len(arguments) for _, arguments in sums]

    def function(*arrays: Any) -> list[Any]:
        starts = np.cumsum([0, *counts])
        return [each(*arrays[start : start + n]) for (each, _), start, n in zip(sums, starts, counts, strict=False)]

    inputs = tuple(array for _, arguments in sums for array in arguments)
    agrees(xgpu.compile(function, *inputs), inputs)


SAME_PLACE = {
    "two": lambda p, a, b, c: p(a) + p(b),
    "after another": lambda p, a, b, c: c + (p(a) + p(b)),
    "zeros first": lambda p, a, b, c: (jnp.zeros(6) + p(a)) + p(b),
    "zeros between": lambda p, a, b, c: p(a) + (jnp.zeros(6) + p(b)),
    "one that overlaps": lambda p, a, b, c: lax.pad(c[:5], np.float32(0), [(0, 1, 0)]) + (p(a) + p(b)),
}


@pytest.mark.parametrize("function", SAME_PLACE.values(), ids=SAME_PLACE)
def test_negative_zeros_at_one_place_stay_negative(function: Any) -> None:
    """No zero is added there, unless the program adds an array of zeros, which XLA takes to change nothing."""

    def total(*arrays: Any) -> Any:
        return function(lambda x: lax.pad(x, np.float32(0), [(1, 3, 0)]), *arrays)

    inputs = tuple(np.full(size, -0.0, np.float32) for size in (2, 2, 6))
    (got,) = xgpu.compile(total, *inputs).run(*inputs)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(total(*map(jnp.asarray, inputs))))


def _columns(x: Any) -> Any:
    return jnp.sum(jnp.sin(x[:, 0]) * x[:, 1] + x[:, 2] * x[:, 0])


def _determinant(a: Any) -> Any:
    first = a[:, 0, 0] * (a[:, 1, 1] * a[:, 2, 2] - a[:, 1, 2] * a[:, 2, 1])
    second = a[:, 0, 1] * (a[:, 1, 0] * a[:, 2, 2] - a[:, 1, 2] * a[:, 2, 0])
    return jnp.sum(first - second + a[:, 0, 2] * (a[:, 1, 0] * a[:, 2, 1] - a[:, 1, 1] * a[:, 2, 0]))


def _rotated(x: Any) -> Any:
    even, odd = x[:, ::2], x[:, 1::2]
    return jnp.sum(even * jnp.cos(odd) - odd * even * even)


def _halves(x: Any) -> Any:
    first, second = jnp.split(x, 2, axis=1)
    return jnp.sum(jax.nn.silu(first) * second)


GRADIENTS = {
    "columns": (_columns, "f32[300,3]"),
    "elements of matrices": (_determinant, "f32[300,3,3]"),
    "every second element": (_rotated, "f32[100,16]"),
    "halves": (_halves, "bf16[100,64]"),
    "integers between": (lambda x: jnp.sum(x[:, 4] * x[:, 2] ** 2), "f32[100,7]"),
}


@pytest.mark.parametrize(("function", "spec"), GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_of_parts_are_concatenations(function: Any, spec: str) -> None:
    compiled = xgpu.compile(jax.grad(function), spec)
    text = compiled.ir("prepared")
    assert "stablehlo.concatenate" in text
    assert "stablehlo.pad" not in text
    assert len(compiled.launches) == 1
    inputs = compiled.random_inputs(1)
    tolerance = {"rtol": 1e-2} if spec.startswith("bf16") else {"rtol": 1e-5, "atol": 1e-6}
    for got, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(np.float64(got), np.float64(expected), **tolerance)


def test_a_matrix_of_padded_columns_is_written_by_tiles() -> None:
    """A thread of a loop would ask of every element for each of the columns."""
    report = explain(xgpu.compile(jax.grad(lambda x: sum(jnp.sum(jnp.sin(x[:, k])) for k in range(24))), "f32[512,24]"))
    assert [kernel.emitter for kernel in report.kernels] == ["concatenate_tiled"]


def test_sums_in_loops() -> None:
    def function(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, y: y + jax.grad(_columns)(y), x)

    compiled = xgpu.compile(function, "f32[40,3]")
    assert "stablehlo.pad" not in compiled.ir("prepared")
    inputs = compiled.random_inputs(1)
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("is_left", [True, False], ids=["from the left", "from the right"])
@pytest.mark.parametrize("count", [40, 1200])
def test_long_sums(count: int, is_left: bool) -> None:
    """Deeper than Python recurses, two arrays in each place: right where few, and soon made where many."""

    def function(x: Any) -> Any:
        total: Any = 0
        for k in range(count):
            each = lax.pad(x[k], np.float32(0), [(k // 2, count // 2 - 1 - k // 2, 0)])
            total = total + each if is_left else each + total
        return total

    inputs = (np.linspace(-1, 1, count, dtype=np.float32).reshape(count, 1),)
    if count < 100:
        agrees(xgpu.compile(function, *inputs), inputs)
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(jax.jit(function).lower(*inputs).as_text())
        start = time.process_time()
        ConcatenatePads().apply(module)
        assert time.process_time() - start < 3
        assert str(module).count("stablehlo.concatenate") == 1
        assert str(module).count("stablehlo.pad") == 0
