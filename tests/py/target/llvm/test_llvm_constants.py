"""Constants of every type reach the machine bit for bit."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

UNSIGNED = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}

FLOATS = [
    ("f16", "1.0", 0x3C00),
    ("f16", "0x7C01", 0x7C01),
    ("f16", "0xFE55", 0xFE55),
    ("f16", "5.9604645e-08", 0x0001),
    ("f16", "65504.0", 0x7BFF),
    ("bf16", "0.30078125", 0x3E9A),
    ("bf16", "0x7F81", 0x7F81),
    ("bf16", "0xFF80", 0xFF80),
    ("bf16", "9.183550e-41", 0x0001),
    ("f32", "0.1", 0x3DCCCCCD),
    ("f32", "-0.0", 0x80000000),
    ("f32", "0x7F800000", 0x7F800000),
    ("f32", "0xFFC12345", 0xFFC12345),
    ("f32", "0x7FA00001", 0x7FA00001),
    ("f32", "1.401298e-45", 0x00000001),
    ("f64", "0.1", 0x3FB999999999999A),
    ("f64", "0x7FF0000000000001", 0x7FF0000000000001),
    ("f64", "0xFFF0000000000000", 0xFFF0000000000000),
    ("f64", "4.9406564584124654e-324", 0x0000000000000001),
]


def bits_of(elementwise: Callable[..., Any], type_: str, constant: str, select: str = "") -> int:
    unsigned = np.dtype(UNSIGNED[type_])
    result = f"%r = llvm.bitcast %k : {type_} to i{unsigned.itemsize * 8}"
    return int(elementwise(f"{constant}\n{select}\n{result}", [np.zeros(1, np.int32)], unsigned)[0])


@pytest.mark.parametrize(("type_", "text", "bits"), FLOATS)
def test_scalar_float(elementwise: Callable[..., Any], type_: str, text: str, bits: int) -> None:
    assert bits_of(elementwise, type_, f"%k = llvm.mlir.constant({text} : {type_}) : {type_}") == bits


@pytest.mark.parametrize(("type_", "text", "bits"), FLOATS)
@pytest.mark.parametrize("is_splat", [False, True])
def test_vector_of_floats(elementwise: Callable[..., Any], type_: str, text: str, bits: int, is_splat: bool) -> None:
    literal = text if is_splat else f"[1.0, {text}]"
    vector = f"%v = llvm.mlir.constant(dense<{literal}> : vector<2x{type_}>) : vector<2x{type_}>"
    element = f"%one = llvm.mlir.constant(1 : i32) : i32\n%k = llvm.extractelement %v[%one : i32] : vector<2x{type_}>"
    assert bits_of(elementwise, type_, vector, element) == bits


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("i8", "-128", -128),
        ("i8", "255", -1),
        ("i16", "-2", -2),
        ("i32", "2147483647", 2147483647),
        ("i64", "-9223372036854775808", -(2**63)),
        ("i64", "18446744073709551615", -1),
    ],
)
def test_integer(elementwise: Callable[..., Any], type_: str, text: str, expected: int) -> None:
    dtype = np.dtype(f"int{type_[1:]}")
    result = elementwise(f"%r = llvm.mlir.constant({text} : {type_}) : {type_}", [np.zeros(1, np.int32)], dtype)
    assert result[0] == expected


@pytest.mark.parametrize("text", ["true", "false"])
def test_boolean(elementwise: Callable[..., Any], text: str) -> None:
    body = f"%k = llvm.mlir.constant({text}) : i1\n%r = llvm.zext %k : i1 to i8"
    assert elementwise(body, [np.zeros(1, np.int32)], np.int8)[0] == (text == "true")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("size", [3, 300])
def test_table(elementwise: Callable[..., Any], dtype: Any, size: int) -> None:
    """A global of many elements; MLIR prints the larger one as hexadecimal data."""
    dtype = np.dtype(dtype)
    values = np.arange(size) - 7
    table = (values * 0.37 if dtype.kind not in "iu" else values).astype(dtype)
    type_ = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}.get(dtype.name)
    type_ = type_ or f"i{dtype.itemsize * 8}"
    data = f'"0x{table.tobytes().hex().upper()}"'
    declarations = f"""llvm.mlir.global private constant @table(dense<{data}> : tensor<{size}x{type_}>)
        : !llvm.array<{size} x {type_}>"""
    body = f"""%t = llvm.mlir.addressof @table : !llvm.ptr
        %e = llvm.getelementptr %t[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {type_}
        %r = llvm.load %e : !llvm.ptr -> {type_}"""
    result = elementwise(body, [np.zeros(size, np.int32)], dtype, declarations)
    assert result.tobytes() == table.tobytes()


def test_table_of_two_dimensions(elementwise: Callable[..., Any]) -> None:
    declarations = """llvm.mlir.global internal constant @table(dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>)
        : !llvm.array<2 x array<3 x i32>>"""
    body = """%t = llvm.mlir.addressof @table : !llvm.ptr
        %e = llvm.getelementptr %t[0, 1, %i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x array<3 x i32>>
        %r = llvm.load %e : !llvm.ptr -> i32"""
    assert elementwise(body, [np.zeros(3, np.int32)], np.int32, declarations).tolist() == [4, 5, 6]


def test_boolean_vector(export_body: Callable[..., str]) -> None:
    text = export_body("""%k = llvm.mlir.constant(dense<[true, false, true, true]> : vector<4xi1>) : vector<4xi1>
        %r = llvm.select %k, %v, %v : vector<4xi1>, vector<4xf32>""")
    assert "<4 x i1> <i1 true, i1 false, i1 true, i1 true>" in text


def test_zero_undef_and_poison(export_body: Callable[..., str]) -> None:
    text = export_body("""%n = llvm.mlir.zero : !llvm.ptr<1>
        %z = llvm.mlir.zero : !llvm.struct<(i32, f32)>
        %u = llvm.mlir.undef : !llvm.struct<(i32, f32)>
        %o = llvm.mlir.poison : f32
        llvm.store %o, %n : f32, !llvm.ptr<1>
        llvm.store %z, %p : !llvm.struct<(i32, f32)>, !llvm.ptr<1>
        llvm.store %u, %p : !llvm.struct<(i32, f32)>, !llvm.ptr<1>""")
    assert "store float poison, ptr addrspace(1) null" in text
    assert "store { i32, float } zeroinitializer" in text
    assert "store { i32, float } undef" in text


@pytest.mark.parametrize("type_", [np.float32, ml_dtypes.bfloat16, np.float64, np.int8, np.int16, np.int64])
def test_large_tables_are_bytes(export: Callable[..., str], type_: Any) -> None:
    values = np.arange(5000).astype(type_)
    element = {"float32": "f32", "bfloat16": "bf16", "float64": "f64"}.get(values.dtype.name, "")
    element = element or f"i{values.itemsize * 8}"
    dense = f'dense<"0x{values.tobytes().hex()}"> : tensor<5000x{element}>'
    text = export(
        f'"llvm.mlir.global"() ({{}}) {{sym_name = "table", global_type = !llvm.array<5000 x {element}>, '
        f"linkage = #llvm.linkage<private>, constant, value = {dense}, addr_space = 1 : i32, alignment = 16 : i64}} "
        ": () -> ()"
    )
    (line,) = (line for line in text.splitlines() if line.startswith("@table"))
    written = "".join(f"\\{byte:02x}" for byte in values.tobytes())
    assert line == f'@table = private addrspace(1) constant [{values.nbytes} x i8] c"{written}", align 16'
