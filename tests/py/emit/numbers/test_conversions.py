"""The expected results of conversions are XLA's, from every 8- and 16-bit value and many others.

That kernels give it is tested by the programs of the group "types".
"""

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from xgpu.dtypes import DType, dtype_named
from xgpu.runtime.compare import difference
from xgpu.tools import conversion_table
from xgpu.tools.programs.scalars.conversions import REAL_TYPES, all_values, convert_exactly, other_xla_results


def convert_to_all(x: Any, targets: list[DType]) -> list[Any]:
    return [lax.convert_element_type(x, target.numpy) for target in targets]


def bits(values: Any) -> Any:
    return np.asarray(values).view(f"u{np.asarray(values).itemsize}")


@pytest.mark.parametrize("source", REAL_TYPES, ids=str)
def test_expected_results_are_those_of_xla(source: DType) -> None:
    targets = [target for target in REAL_TYPES if target != source]
    values = all_values(source)
    with jax.enable_x64(True):
        function = partial(convert_to_all, targets=targets)
        options = {"xla_allow_excess_precision": False}
        results = jax.jit(function, compiler_options=options)(jax.device_put(values, jax.devices("cpu")[0]))
    for target, result in zip(targets, results, strict=True):
        expected = convert_exactly(values, source, target)
        for other in other_xla_results(values, source, target):
            is_other = bits(result) == bits(other)
            expected[is_other] = other[is_other]
        assert difference(np.asarray(result), expected) is None, f"{source} to {target}"


@pytest.mark.parametrize("source", REAL_TYPES, ids=str)
def test_values_are_all_or_many(source: DType) -> None:
    values = all_values(source)
    assert values.dtype == source.numpy
    if source.bits <= 16:
        assert np.unique(values.view(f"u{values.itemsize}")).size == 1 << source.bits
        return
    assert np.unique(values.view(f"u{values.itemsize}")).size > 30_000
    if source.is_float:
        assert np.isnan(values).any() and np.isinf(values).any()
        assert (np.abs(values) < np.finfo(values.dtype).smallest_normal).sum() > 10
        assert (values == 0).any()
    else:
        assert values.min() < np.iinfo(values.dtype).min // 2 or not source.is_signed
        assert values.max() > np.iinfo(values.dtype).max // 2


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        # Halfway to f32, and beyond it by less than f32 can tell: rounding twice would give the even neighbour.
        ("f64", "bf16", 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-7),
        ("s64", "f16", 2049 * 2**50 + 1, np.inf),
        ("s64", "bf16", (257 << 40) + 1, float(258 << 40)),
        ("u32", "bf16", (257 << 20) + 1, float(258 << 20)),
        ("f32", "f8e4m3fn", 464.0, 448.0),
        ("f32", "f8e4m3fn", 464.001, np.nan),
        ("f32", "f8e5m2", 61440.0, np.inf),
        ("f32", "f4e2m1fn", 1e30, 6.0),
        ("f32", "f8e8m0fnu", 3.0, 4.0),
        ("f32", "f8e8m0fnu", 0.0, np.nan),
        ("f4e2m1fn", "s8", 6.0, 6),
        ("f32", "s8", -1000.0, -128),
        ("f32", "u4", -1.0, 0),
        ("f32", "s2", np.nan, 0),
        ("s32", "u4", -1, 15),
    ],
)
def test_edges(source: str, target: str, value: float, expected: float) -> None:
    values = np.array([value]).astype(dtype_named(source).numpy)
    result = convert_exactly(values, dtype_named(source), dtype_named(target))
    assert difference(result, np.array([expected]).astype(dtype_named(target).numpy)) is None


def test_the_document_is_current() -> None:
    assert conversion_table.PLACE.read_text() == conversion_table.document(), "python -m xgpu.tools.conversion_table"
