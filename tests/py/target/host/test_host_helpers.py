"""The conversions that CPUs without the instructions call, against NumPy and ml_dtypes, called by name."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest


def sweep(dtype: Any) -> Any:
    """Bit patterns of ``dtype``: random ones, all exponents with round and nearly round fractions, specials."""
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    generator = np.random.default_rng(2)
    patterns = generator.integers(0, np.iinfo(unsigned).max, 20000, dtype=unsigned, endpoint=True)
    scales = np.ldexp(1.0, np.arange(-150, 128)).astype(dtype)
    fractions = np.array([1, 1 + 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-23, 1.99999988], dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        products = np.outer(scales, fractions).reshape(-1)
    specials = np.array([0, np.inf, np.nan, 65504, 65519.996, 65520, 3.3961776e38], dtype)
    values = np.concatenate([patterns.view(dtype), products, specials])
    return np.concatenate([values, -values])


def same(result: Any, expected: Any) -> bool:
    """Whether two 16- or 32-bit float arrays agree: NaN for NaN, and bit for bit elsewhere."""
    result_nan, expected_nan = result != result, expected != expected  # NaN is what differs from itself
    unsigned = np.dtype(f"u{result.itemsize}")
    equal = result.view(unsigned) == expected.view(unsigned)
    return bool((result_nan == expected_nan).all() and equal[~expected_nan].all())


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("__truncsfhf2", np.float32, np.float16),
        ("__truncdfhf2", np.float64, np.float16),
        ("__truncsfbf2", np.float32, ml_dtypes.bfloat16),
    ],
)
def test_narrowing(elementwise: Callable[..., Any], name: str, source: Any, target: Any) -> None:
    wide, narrow = {np.float32: "f32", np.float64: "f64"}[source], "f16" if target is np.float16 else "bf16"
    values = sweep(source)
    result = elementwise(
        f"%r = llvm.call @{name}(%x0) : ({wide}) -> {narrow}",
        [values],
        target,
        f"llvm.func @{name}({wide}) -> {narrow}",
    )
    with np.errstate(over="ignore", invalid="ignore"):
        assert same(result, values.astype(target))


def test_double_to_bfloat_rounds_once(elementwise: Callable[..., Any]) -> None:
    values = np.array([1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8 - 2.0**-40, 2.0**-133, 1e300, -1e-300])
    result = elementwise(
        "%r = llvm.call @__truncdfbf2(%x0) : (f64) -> bf16",
        [values],
        ml_dtypes.bfloat16,
        "llvm.func @__truncdfbf2(f64) -> bf16",
    )
    expected = np.array([1, 1 + 2.0**-7, 1 + 2.0**-7, 2.0**-133, np.inf, -0.0], ml_dtypes.bfloat16)
    assert same(result, expected)


def test_half_to_float_of_every_value(elementwise: Callable[..., Any]) -> None:
    values = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    result = elementwise(
        "%r = llvm.call @__extendhfsf2(%x0) : (f16) -> f32",
        [values],
        np.float32,
        "llvm.func @__extendhfsf2(f16) -> f32",
    )
    assert same(result, values.astype(np.float32))
