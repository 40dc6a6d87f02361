"""Scatters with ``deterministic=True``: the same bits in whatever order updates are made, and as exact as can be."""

import math
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xgpu

OPTIONS = xgpu.Options(deterministic=True)
ROWS, UPDATES = 9, 331
_NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def add(x: Any, y: Any, i: Any) -> Any:
    return x.at[i].add(y)


def compiled(dtype: str, function: Any = add, columns: str = "") -> xgpu.Compiled:
    specs = (f"{dtype}[{ROWS}{columns}]", f"{dtype}[{UPDATES}{columns}]", f"s32[{UPDATES}]")
    return xgpu.compile(function, *specs, options=OPTIONS)


def drawn(dtype: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of all magnitudes and both signs, whose sums depend on the order in any float type."""
    generator = np.random.default_rng(seed)
    reach = {2: 6, 4: 30, 8: 300}[np.dtype(dtype).itemsize]
    x, y = (generator.standard_normal(n) * 2.0 ** generator.integers(-reach, reach // 4, n) for n in (ROWS, UPDATES))
    return x.astype(dtype), y.astype(dtype), generator.integers(-2, ROWS + 2, UPDATES).astype(np.int32)


def exact_sums(x: np.ndarray, y: np.ndarray, i: np.ndarray) -> list[float]:
    rows = [r + ROWS * (r < 0) for r in i.tolist()]
    return [
        math.fsum([float(x[r]), *(float(v) for v, row in zip(y, rows, strict=True) if row == r)]) for r in range(ROWS)
    ]


@pytest.mark.parametrize(("name", "dtype"), _NUMPY.items())
def test_sums_are_the_same_in_any_order_and_nearly_exact(name: str, dtype: Any) -> None:
    program = compiled(name)
    x, y, i = drawn(dtype)
    (first,) = program.run(x, y, i)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(UPDATES)
        np.testing.assert_array_equal(program.run(x, y[order], i[order])[0].view(np.uint8), first.view(np.uint8))
    # Rounded to the type, but for what is lost below the unit of the sums: at most half of it for each update.
    bits = 2 * 53 if name == "f64" else 53
    largest = np.abs(y.astype(np.float64)).max() * UPDATES
    for got, exact in zip(first, exact_sums(x, y, i), strict=True):
        rounded = float(np.asarray(exact, np.float64).astype(dtype))
        spacing = abs(
            float(np.nextafter(first.dtype.type(got), first.dtype.type(np.inf)).astype(np.float64)) - float(got)
        )
        assert abs(float(got) - rounded) <= spacing + largest * 2.0**-bits


def test_special_values() -> None:
    """Infinities and NaN where there are some, whatever the sums of the other rows are."""
    y = np.zeros(UPDATES, np.float32)
    i = np.full(UPDATES, 8, np.int32)
    values = {0: [np.inf], 1: [-np.inf, -np.inf, 5], 2: [np.inf, -np.inf], 3: [np.nan, 1], 4: [np.inf, np.nan]}
    values |= {5: [3e38, 3e38], 6: [1e-45, 1e-45], 7: [-3e9, 3e9, 1]}
    pairs = [(row, value) for row, several in values.items() for value in several]
    i[: len(pairs)], y[: len(pairs)] = zip(*pairs, strict=True)
    x = np.zeros(ROWS, np.float32)
    expected = np.array([np.inf, -np.inf, np.nan, np.nan, np.nan, np.inf, 3e-45, 1, 0], np.float32)
    np.testing.assert_array_equal(compiled("f32").run(x, y, i)[0], expected)
    x = np.array([1, 2, 3, 4, 5, 6, 7, np.nan, -np.inf], np.float32)
    expected[7:] = np.nan, -np.inf
    expected[6] = 7
    np.testing.assert_array_equal(compiled("f32").run(x, y, i)[0], expected)


def test_what_is_not_updated_keeps_its_bits() -> None:
    x = np.array([-0.0, np.nan, np.inf, 1e-45, 1, 2, 3, 4, 5], np.float32)
    y, i = np.ones(UPDATES, np.float32), np.full(UPDATES, 8, np.int32)
    (result,) = compiled("f32").run(x, y, i)
    np.testing.assert_array_equal(result[:8].view(np.uint32), x[:8].view(np.uint32))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_signs_of_zeros(dtype: str) -> None:
    """-0.0 stays if nothing but -0.0 is added to it."""
    program = compiled(dtype)
    i = np.arange(UPDATES, dtype=np.int32) % ROWS
    x = np.full(ROWS, -0.0)
    y = np.full(UPDATES, -0.0)
    y[[1, 11, 4 + ROWS]] = 0.0
    y[[3, 3 + ROWS]] = 1.0, -1.0
    (found,) = program.run(*(each.astype(_NUMPY[dtype]) for each in (x, y)), i)
    expected = np.full(ROWS, -0.0)
    expected[[1, 2, 3, 4]] = 0.0
    assert np.array_equal(np.signbit(found.astype(np.float64)), np.signbit(expected)) and not np.any(found)


def test_complex_sums() -> None:
    parts = [drawn(np.float32, seed) for seed in (0, 1)]
    x, y = (parts[0][k] + 1j * parts[1][k] for k in (0, 1))
    program, i = compiled("c64"), parts[0][2]
    (first,) = program.run(x.astype(np.complex64), y.astype(np.complex64), i)
    order = np.random.default_rng(0).permutation(UPDATES)
    (again,) = program.run(x.astype(np.complex64), y[order].astype(np.complex64), i[order])
    np.testing.assert_array_equal(first.view(np.uint32), again.view(np.uint32))


@pytest.mark.parametrize("columns", ["", ",3"])
def test_the_last_of_several_that_overwrite_wins(columns: str) -> None:
    program = compiled("f32", lambda x, y, i: x.at[i].set(y), columns)
    assert [kernel.emitter for kernel in program.kernels] == ["loop", "scatter", "scatter"]
    shape = (UPDATES, 3)[: 1 + bool(columns)]
    y = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    x, i = np.zeros((ROWS, *shape[1:]), np.float32), drawn(np.float32)[2]
    expected = x.copy()
    for row, value in zip(i, y, strict=True):
        if -ROWS <= row < ROWS:
            expected[row] = value
    np.testing.assert_array_equal(program.run(x, y, i)[0], expected)


@pytest.mark.parametrize(
    ("dtype", "function", "emitters"),
    [
        # No order of these can be told from the result.
        ("s32", add, ["scatter"]),
        ("u8", lambda x, y, i: x.at[i].multiply(y), ["scatter"]),
        ("f32", lambda x, y, i: x.at[i].max(y), ["scatter"]),
        ("f32", lambda x, y, i: x.at[i].add(y, unique_indices=True), ["scatter"]),
        # Of these it can, and there is no other way than to keep it.
        ("f32", lambda x, y, i: x.at[i].multiply(y), ["scatter_ordered"]),
        ("f32", lambda x, y, i: x.at[i].apply(jnp.cos), ["scatter_ordered"]),
    ],
)
def test_kernels(dtype: str, function: Any, emitters: list[str]) -> None:
    assert [kernel.emitter for kernel in compiled(dtype, function).kernels] == emitters


def test_products_are_made_in_order() -> None:
    program = compiled("f32", lambda x, y, i: x.at[i].multiply(y))
    generator = np.random.default_rng(0)
    x, y = (generator.uniform(0.5, 1.5, size).astype(np.float32) for size in (ROWS, UPDATES))
    i = drawn(np.float32)[2]
    expected = x.copy()
    for row, value in zip(i, y, strict=True):
        if -ROWS <= row < ROWS:
            expected[row] *= value
    np.testing.assert_array_equal(program.run(x, y, i)[0], expected)
