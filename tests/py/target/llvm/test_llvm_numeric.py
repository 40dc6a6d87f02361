"""Operations whose meaning depends on a flag, width or predicate give the numbers that NumPy gives."""

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

INTEGERS = np.array([0, 1, -1, 7, -8, 100, -128, 127], np.int8)
FLOATS = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-40], np.float32)

SIGNED = [("slt", operator.lt), ("sle", operator.le), ("sgt", operator.gt), ("sge", operator.ge)]
UNSIGNED = [("ult", operator.lt), ("ule", operator.le), ("ugt", operator.gt), ("uge", operator.ge)]
ORDERED = [("oeq", operator.eq), ("olt", operator.lt), ("ole", operator.le), ("ogt", operator.gt), ("oge", operator.ge)]


def pairs(values: Any) -> tuple[Any, Any]:
    lhs, rhs = np.meshgrid(values, values)
    return np.ascontiguousarray(lhs).reshape(-1), np.ascontiguousarray(rhs).reshape(-1)


@pytest.mark.parametrize(("predicate", "function"), [("eq", operator.eq), ("ne", operator.ne), *SIGNED, *UNSIGNED])
def test_integer_comparison(elementwise: Callable[..., Any], predicate: str, function: Callable[..., Any]) -> None:
    lhs, rhs = pairs(INTEGERS)
    body = f'%c = llvm.icmp "{predicate}" %x0, %x1 : i8\n%r = llvm.zext %c : i1 to i8'
    as_type = np.uint8 if predicate.startswith("u") else np.int8
    expected = function(lhs.view(as_type), rhs.view(as_type))
    assert (elementwise(body, [lhs, rhs], np.bool_) == expected).all()


@pytest.mark.parametrize(("predicate", "function"), ORDERED)
@pytest.mark.parametrize("is_ordered", [True, False])
def test_float_comparison(
    elementwise: Callable[..., Any], predicate: str, function: Callable[..., Any], is_ordered: bool
) -> None:
    lhs, rhs = pairs(FLOATS)
    predicate = predicate if is_ordered else f"u{predicate[1:]}"
    body = f'%c = llvm.fcmp "{predicate}" %x0, %x1 : f32\n%r = llvm.zext %c : i1 to i8'
    unordered = np.isnan(lhs) | np.isnan(rhs)
    expected = function(lhs, rhs) if is_ordered else function(lhs, rhs) | unordered
    assert (elementwise(body, [lhs, rhs], np.bool_) == expected).all()


@pytest.mark.parametrize(
    ("operation", "dtype", "function"),
    [
        ("llvm.add", np.int8, np.add),
        ("llvm.mul", np.int32, np.multiply),
        ("llvm.udiv", np.uint16, np.floor_divide),
        ("llvm.urem", np.uint64, np.remainder),
        ("llvm.ashr", np.int32, np.right_shift),
        ("llvm.lshr", np.uint32, np.right_shift),
        ("llvm.shl", np.uint8, np.left_shift),
        ("llvm.xor", np.int64, np.bitwise_xor),
        ("llvm.fsub", np.float64, np.subtract),
        ("llvm.fdiv", np.float32, np.divide),
    ],
)
def test_arithmetic(elementwise: Callable[..., Any], operation: str, dtype: Any, function: Callable[..., Any]) -> None:
    dtype = np.dtype(dtype)
    lhs, rhs = np.array([90, 3, 200, 17], np.uint8).astype(dtype), np.array([3, 5, 7, 2], dtype)
    type_ = f"f{dtype.itemsize * 8}" if dtype.kind == "f" else f"i{dtype.itemsize * 8}"
    result = elementwise(f"%r = {operation} %x0, %x1 : {type_}", [lhs, rhs], dtype)
    assert (result == function(lhs, rhs)).all()


@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("wide", [np.float32, np.float64])
def test_rounding_to_16_bits(elementwise: Callable[..., Any], narrow: Any, wide: Any) -> None:
    """Also at subnormals, which some CPUs' own bf16 instructions flush to zero, ties and overflow."""
    generator = np.random.default_rng(0)
    exponents = np.concatenate([np.full(500, e, np.float64) for e in (1e-41, 1e-39, 1e-8, 1e-5, 1.0, 6e4, 1e38)])
    tie = 1.0 + 2.0**-11 + 2.0**-40
    values = np.concatenate([generator.normal(size=3500) * exponents, [tie, 1 + 2.0**-9, 65519.9, 65520, np.inf, 0]])
    values = np.concatenate([values, -values, [np.nan]]).astype(wide)
    names = {np.float16: "f16", ml_dtypes.bfloat16: "bf16", np.float32: "f32", np.float64: "f64"}
    result = elementwise(f"%r = llvm.fptrunc %x0 : {names[wide]} to {names[narrow]}", [values], narrow)
    with np.errstate(over="ignore"):
        expected = round_once(values, narrow)
    assert (np.isnan(result.astype(np.float32)) == np.isnan(values)).all()
    finite = ~np.isnan(values)
    assert (result[finite].view(np.uint16) == expected[finite].view(np.uint16)).all()


def round_once(values: Any, narrow: Any) -> Any:
    """Round to a 16-bit type once: ml_dtypes converts a double to bf16 by way of float."""
    if narrow is np.float16 or values.dtype == np.float32:
        return values.astype(narrow)
    nearest = values.astype(np.float32)
    away = np.abs(nearest.astype(np.float64)) > np.abs(values)
    inexact = nearest.astype(np.float64) != values
    bits = nearest.view(np.uint32) - away.astype(np.uint32)
    return (bits | (inexact & ~np.isnan(values)).astype(np.uint32)).view(np.float32).astype(narrow)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("operation", ["fadd", "fmul", "fdiv"])
def test_16_bit_arithmetic(elementwise: Callable[..., Any], dtype: Any, operation: str) -> None:
    generator = np.random.default_rng(1)
    lhs, rhs = (generator.normal(size=512).astype(dtype) for _ in range(2))
    type_ = "f16" if dtype is np.float16 else "bf16"
    result = elementwise(f"%r = llvm.{operation} %x0, %x1 : {type_}", [lhs, rhs], dtype)
    function = {"fadd": np.add, "fmul": np.multiply, "fdiv": np.divide}[operation]
    expected = function(lhs.astype(np.float32), rhs.astype(np.float32)).astype(dtype)
    assert (result.view(np.uint16) == expected.view(np.uint16)).all()


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("llvm.intr.floor", np.floor),
        ("llvm.intr.ceil", np.ceil),
        ("llvm.intr.trunc", np.trunc),
        ("llvm.intr.rint", np.rint),
        ("llvm.intr.roundeven", np.rint),
        ("llvm.intr.fabs", np.abs),
        ("llvm.intr.exp", np.exp),
        ("llvm.intr.tanh", np.tanh),
    ],
)
def test_float_intrinsic(elementwise: Callable[..., Any], call: str, function: Callable[..., Any]) -> None:
    values = np.array([0.5, 1.5, -2.5, 2.4999, -0.3, 7.0], np.float32)
    result = elementwise(f"%r = {call}(%x0) : (f32) -> f32", [values], np.float32)
    np.testing.assert_allclose(result, function(values), rtol=3e-7)


def test_bit_intrinsics(elementwise: Callable[..., Any]) -> None:
    values = np.array([0, 1, 0x00F0, -1], np.int32)
    body = """%a = llvm.intr.ctpop(%x0) : (i32) -> i32
        %b = "llvm.intr.ctlz"(%x0) <{is_zero_poison = false}> : (i32) -> i32
        %c = "llvm.intr.cttz"(%x0) <{is_zero_poison = false}> : (i32) -> i32
        %k = llvm.mlir.constant(100 : i32) : i32
        %d = llvm.mul %a, %k : i32
        %e = llvm.add %d, %b : i32
        %f = llvm.mul %e, %k : i32
        %r = llvm.add %f, %c : i32"""
    assert elementwise(body, [values], np.int32).tolist() == [3232, 13100, 42404, 320000]


def test_struct_result_of_an_intrinsic(elementwise: Callable[..., Any]) -> None:
    body = """%s = "llvm.intr.sadd.with.overflow"(%x0, %x1) : (i8, i8) -> !llvm.struct<(i8, i1)>
        %c = llvm.extractvalue %s[1] : !llvm.struct<(i8, i1)>
        %r = llvm.zext %c : i1 to i8"""
    lhs, rhs = np.array([100, 100, -100], np.int8), np.array([27, 28, -29], np.int8)
    assert elementwise(body, [lhs, rhs], np.int8).tolist() == [0, 1, 1]


def test_atomic_add_counts_every_thread(elementwise: Callable[..., Any]) -> None:
    counter = np.zeros(64, np.int32)
    body = """%one = llvm.mlir.constant(1 : i32) : i32
        %old = llvm.atomicrmw add %p0, %one monotonic : !llvm.ptr, i32
        %r = llvm.add %old, %one : i32"""
    assert sorted(elementwise(body, [counter], np.int32).tolist()) == list(range(1, 65))
    assert counter[0] == 64


def test_call_of_a_private_function(elementwise: Callable[..., Any]) -> None:
    declarations = """llvm.func private @"twice more"(%a: f32) -> f32 attributes {no_inline} {
        %0 = llvm.fadd %a, %a : f32
        llvm.return %0 : f32
      }"""
    body = '%r = llvm.call @"twice more"(%x0) : (f32) -> f32'
    assert elementwise(body, [np.array([1.5], np.float32)], np.float32, declarations)[0] == 3.0
