"""Conversions between number types, on the host: each rounds once, and those to integers saturate."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

type Array = np.ndarray[Any, Any]
type Evaluate = Callable[..., list[Array]]

SMALL = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
}
WIDE = {"f32": np.float32, "f64": np.float64}
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def all_codes(dtype: Any) -> Array:
    bits = 8 * np.dtype(dtype).itemsize
    return np.arange(1 << bits).astype(f"uint{bits}").view(dtype)


@pytest.mark.parametrize("name", SMALL)
def test_widening_every_code(evaluate: Evaluate, assert_same: Any, name: str) -> None:
    codes = all_codes(SMALL[name])
    body = f"""
      %r32 = arith.extf %x0 : {name} to f32
      %r64 = arith.extf %x0 : {name} to f64"""
    to_f32, to_f64 = evaluate(body, [codes], [("%r32", np.float32), ("%r64", np.float64)])
    assert_same(to_f32, codes.astype(np.float32), f"{name} to f32")
    assert_same(to_f64, codes.astype(np.float32).astype(np.float64), f"{name} to f64")


def around_halfway(dtype: Any) -> Array:
    """Values of a small type, the points halfway between neighbours, and the f64 just beside both, of both signs."""
    finite = all_codes(dtype).astype(np.float64)
    finite = np.unique(np.abs(finite[np.isfinite(finite)]))
    finite = np.append(finite, 2 * finite[-1] - finite[-2])
    if finite.size > 3000:
        keep = np.random.default_rng(3).integers(0, finite.size - 1, 1000)
        keep = np.concatenate([keep, np.arange(20), np.arange(finite.size - 20, finite.size - 1)])
        halves = (finite[keep] + finite[keep + 1]) / 2
    else:
        halves = (finite[:-1] + finite[1:]) / 2
    points = np.concatenate([halves, finite[:50], finite[-50:]])
    special = np.array([np.inf, np.nan, 1e300, 5e-324, 1e-50])
    positive = np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, 0), special])
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("source", WIDE)
def test_narrowing_rounds_once(
    evaluate: Evaluate, assert_same: Any, exact_rounding: Any, source: str, name: str
) -> None:
    dtype = SMALL[name]
    values = around_halfway(dtype).astype(WIDE[source])
    if source == "f32":
        points = values[np.isfinite(values)]
        values = np.concatenate([values, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(0))])
    (result,) = evaluate(f"%r = arith.truncf %x0 : {source} to {name}", [values], [("%r", dtype)])
    exact = exact_rounding(dtype)
    expected = np.array([exact(value) for value in values.astype(np.float64).tolist()]).astype(dtype)
    assert_same(result, expected, f"{source} to {name}")


@pytest.mark.parametrize("name", SMALL)
def test_narrowing_random_bits(evaluate: Evaluate, assert_same: Any, name: str) -> None:
    bits = np.random.default_rng(4).integers(0, 1 << 32, 20000, np.uint32)
    values = np.concatenate([bits.view(np.float32), all_codes(SMALL[name]).astype(np.float32)])
    (result,) = evaluate(f"%r = arith.truncf %x0 : f32 to {name}", [values], [("%r", SMALL[name])])
    assert_same(result, values.astype(SMALL[name]), f"f32 to {name}")


def test_f64_to_f32(evaluate: Evaluate, assert_same: Any, float_values: Any) -> None:
    values = float_values(np.float64, 3000)
    narrow, wide = evaluate(
        "%r = arith.truncf %x0 : f64 to f32\n%w = arith.extf %r : f32 to f64",
        [values],
        [("%r", np.float32), ("%w", np.float64)],
    )
    assert_same(narrow, values.astype(np.float32))
    assert_same(wide, values.astype(np.float32).astype(np.float64))


def test_between_small_types(evaluate: Evaluate, assert_same: Any) -> None:
    codes = all_codes(ml_dtypes.float8_e4m3fn)
    body = """
      %half = arith.extf %x0 : f8E4M3FN to f16
      %brain = arith.extf %x0 : f8E4M3FN to bf16
      %back = arith.truncf %half : f16 to f8E4M3FN
      %other = arith.truncf %brain : bf16 to f8E5M2"""
    types = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
    names = ["%half", "%brain", "%back", "%other"]
    results = evaluate(body, [codes], list(zip(names, types, strict=True)))
    for name, result, dtype in zip(names, results, types, strict=True):
        assert_same(result, codes.astype(np.float32).astype(dtype), name)


def integer_values(name: str) -> Array:
    """Edges, powers of two and their neighbours, and numbers that two roundings would get wrong."""
    info = np.iinfo(name)
    bits = info.bits
    values = {0, 1, 2, 3, 100, info.max, info.max - 1}
    for power in range(3, bits):
        for half in range(3, power):
            # Exactly halfway for a type of this many bits, and one beside it.
            base = (1 << power) + (1 << half)
            values |= {base, base + 1, base - 1, (1 << power) + 3 * (1 << (half - 1)) + 1}
    signed = {sign * value for value in values for sign in ((1, -1) if info.min else (1,))}
    return np.array(sorted(value for value in signed | {int(info.min)} if info.min <= value <= info.max), name)


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_floats_round_once(evaluate: Evaluate, assert_same: Any, exact_rounding: Any, source: str) -> None:
    values = integer_values(source)
    operation = "uitofp" if source.startswith("u") else "sitofp"
    bits = np.iinfo(source).bits
    targets = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8E5M2": ml_dtypes.float8_e5m2, **WIDE}
    body = "\n".join(f"%{name} = arith.{operation} %x0 : i{bits} to {name}" for name in targets)
    results = evaluate(body, [values], [(f"%{name}", dtype) for name, dtype in targets.items()])
    for (name, dtype), result in zip(targets.items(), results, strict=True):
        if name in WIDE:
            expected = values.astype(dtype)
        else:
            exact = exact_rounding(dtype)
            expected = np.array([exact(value) for value in values.tolist()]).astype(dtype)
        assert_same(result, expected, f"{source} to {name}")


@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64", "f8E4M3FN"])
def test_floats_to_integers_saturate(evaluate: Evaluate, float_values: Any, source: str) -> None:
    dtype = {**SMALL, **WIDE}[source]
    values = float_values(dtype, 2000)
    limits = [sign * 2.0**power for sign in (1, -1) for power in (7, 8, 15, 16, 31, 32, 63, 64)]
    values = np.concatenate([values, np.array([*limits, *np.nextafter(limits, 0)]).astype(dtype)])
    names = {f"%{name}": name for name in INTEGERS}
    lines = []
    for value, name in names.items():
        operation = "fptoui" if name.startswith("u") else "fptosi"
        lines.append(f"{value} = arith.{operation} %x0 : {source} to i{np.iinfo(name).bits}")
    results = evaluate("\n".join(lines), [values], list(names.items()))
    for name, result in zip(names.values(), results, strict=True):
        np.testing.assert_array_equal(result, saturated(values, name), err_msg=f"{source} to {name}")


def saturated(values: Array, name: str) -> Array:
    info = np.iinfo(name)

    def convert(value: float) -> int:
        if np.isnan(value):
            return 0
        if np.isinf(value):
            return int(info.max if value > 0 else info.min)
        return min(max(int(value), int(info.min)), int(info.max))

    return np.array([convert(value) for value in values.astype(np.float64).tolist()], name)


@pytest.mark.parametrize(("kind", "bits"), [("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64), ("f8E5M2", 8)])
def test_bitcast(evaluate: Evaluate, kind: str, bits: int) -> None:
    dtype = {**SMALL, **WIDE}[kind]
    codes = np.random.default_rng(5).integers(0, 1 << (bits - 1), 500, np.dtype(f"uint{bits}"))
    body = f"%r = arith.bitcast %x0 : i{bits} to {kind}\n%i = arith.bitcast %r : {kind} to i{bits}"
    floats, integers = evaluate(body, [codes], [("%r", dtype), ("%i", codes.dtype)])
    np.testing.assert_array_equal(floats.view(codes.dtype), codes)
    np.testing.assert_array_equal(integers, codes)
