"""Code of the lowering passes for the GPU: every operation assembles, and takes no more instructions than it should."""

import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from xgpu.target.nvptx.cubin import assemble, find_ptxas

TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
}
INTEGERS = {f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)}
FLOAT_BINARY = [f"arith.{name}f" for name in "add sub mul div rem maximum minimum maxnum minnum".split()]
FLOAT_UNARY = ["arith.negf", *(f"math.{name}" for name in "absf sqrt floor ceil trunc round roundeven".split())]
INTEGER_BINARY = [
    f"arith.{name}"
    for name in (
        "addi subi muli andi ori xori divsi divui remsi remui floordivsi ceildivsi ceildivui shli shrsi shrui "
        "maxsi minsi maxui minui"
    ).split()
]
INTEGER_UNARY = [f"math.{name}" for name in "absi ctpop ctlz cttz".split()]

type Compile = Callable[..., str]


def check_assembles(ptx: str, target: str) -> None:
    if find_ptxas() is not None:
        assemble(ptx, target)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", [*TYPES, *INTEGERS])
def test_every_operation_has_code(compile_ptx: Compile, name: str, target: str) -> None:
    dtype = {**TYPES, **INTEGERS}[name]
    binary, unary = (FLOAT_BINARY, FLOAT_UNARY) if name in TYPES else (INTEGER_BINARY, INTEGER_UNARY)
    lines = [f"%b{number} = {op} %x0, %x1 : {name}" for number, op in enumerate(binary)]
    lines += [f"%u{number}_ = {op} %x0 : {name}" for number, op in enumerate(unary)]
    if name in TYPES:
        lines.append(f"%fma = math.fma %x0, %x1, %b0 : {name}")
    values = [line.split(" ", 1)[0] for line in lines]
    ptx = compile_ptx("\n".join(lines), [dtype, dtype], [(value, dtype) for value in values], target)
    check_assembles(ptx, target)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", TYPES)
def test_every_conversion_has_code(compile_ptx: Compile, name: str, target: str) -> None:
    inputs = [TYPES[name], *INTEGERS.values(), np.float64]
    lines, outputs = [], []
    for number, (integer, dtype) in enumerate(INTEGERS.items(), 1):
        for kind in "su":
            lines.append(f"%to{integer}{kind} = arith.fpto{kind}i %x0 : {name} to {integer}")
            lines.append(f"%from{integer}{kind} = arith.{kind}itofp %x{number} : {integer} to {name}")
            outputs += [(f"%to{integer}{kind}", dtype), (f"%from{integer}{kind}", TYPES[name])]
    if name != "f64":
        lines.append(f"%wide = arith.extf %x0 : {name} to f64\n%narrow = arith.truncf %x5 : f64 to {name}")
        outputs += [("%wide", np.float64), ("%narrow", TYPES[name])]
    check_assembles(compile_ptx("\n".join(lines), inputs, outputs, target), target)


def instructions(ptx: str) -> set[str]:
    return set(re.findall(r"^\s+(?:@!?%p\d+ )?([a-z][\w.]*)", ptx, re.MULTILINE))


def test_products_are_rounded_before_sums(compile_ptx: Compile) -> None:
    body = "%m = arith.mulf %x0, %x1 : f32\n%s = arith.addf %m, %x0 : f32"
    found = instructions(compile_ptx(body, [np.float32, np.float32], [("%s", np.float32)]))
    assert {"mul.rn.f32", "add.rn.f32"} <= found
    assert not any(name.startswith("fma") for name in found)


def test_division_and_root_are_exact(compile_ptx: Compile) -> None:
    body = "%q = arith.divf %x0, %x1 : f32\n%s = math.sqrt %q : f32"
    found = instructions(compile_ptx(body, [np.float32, np.float32], [("%s", np.float32)]))
    assert {"div.rn.f32", "sqrt.rn.f32"} <= found


def test_bf16_uses_the_instructions_there_are(compile_ptx: Compile) -> None:
    body = "%s = arith.addf %x0, %x1 : bf16"
    types = [ml_dtypes.bfloat16] * 2
    assert "add.rn.bf16" in instructions(compile_ptx(body, types, [("%s", ml_dtypes.bfloat16)], "sm_90a"))
    assert "add.rn.bf16" not in instructions(compile_ptx(body, types, [("%s", ml_dtypes.bfloat16)], "sm_80"))


def test_index_division_is_32_bits_wide(compile_ptx: Compile) -> None:
    body = """
      %c = arith.constant 1000 : index
      %q = arith.divui %at, %c : index
      %r = arith.remui %at, %c : index
      %y = arith.index_cast %q : index to i32
      %z = arith.index_cast %r : index to i32"""
    found = instructions(compile_ptx(body, [np.int32], [("%y", np.int32), ("%z", np.int32)]))
    assert any(name.startswith("mul.hi.u32") or name == "mul.wide.u32" for name in found)
    assert not any(name.startswith(("div", "rem")) or name.endswith(("hi.u64", "hi.s64")) for name in found)


def vector_copy(element: str, length: int) -> str:
    tensor, vector = f"tensor<4096x{element}>", f"vector<{length}x{element}>"
    padding = "0.0" if "f" in element else "0"
    return f"""
      func.func @k(%a: {tensor}, %o: {tensor}) -> {tensor} attributes {{xgpu.kernel, xgpu.inputs = 1 : i64,
          xgpu.index_bits = 32 : i64, xgpu.block = array<i64: 128, 1, 1>}} {{
        %t = gpu.thread_id x upper_bound 128
        %n = arith.constant {length} : index
        %i = arith.muli %t, %n : index
        %none = "arith.constant"() <{{value = {padding} : {element}}}> : () -> {element}
        %v = vector.transfer_read %a[%i], %none {{in_bounds = [true]}} : {tensor}, {vector}
        %r = vector.transfer_write %v, %o[%i] {{in_bounds = [true]}} : {vector}, {tensor}
        return %r : {tensor}
      }}"""


@pytest.mark.parametrize(
    ("element", "length"),
    [("f32", 4), ("i32", 4), ("f64", 2), ("i64", 2), ("bf16", 8), ("f16", 8), ("i16", 8), ("i8", 16), ("i1", 16)],
)
def test_sixteen_bytes_are_one_access(lower_to_ptx: Callable[[str], str], element: str, length: int) -> None:
    ptx = lower_to_ptx(vector_copy(element, length))
    assert len(re.findall(r"ld\.global\.nc\.v\d\.b\d+", ptx)) == len(re.findall("ld.global", ptx)) == 1
    assert len(re.findall(r"st\.global\.v\d\.b\d+", ptx)) == len(re.findall("st.global", ptx)) == 1
    check_assembles(ptx, "sm_90a")


def test_unroll_annotations_are_followed(lower_to_ptx: Callable[[str], str]) -> None:
    text = """
      func.func @k(%a: tensor<512xf32>, %o: tensor<512xf32>) -> tensor<512xf32> attributes {xgpu.kernel,
          xgpu.inputs = 1 : i64, xgpu.index_bits = 32 : i64, xgpu.block = array<i64: 128, 1, 1>} {
        %t = gpu.thread_id x upper_bound 128
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c4 = arith.constant 4 : index
        %b = arith.muli %t, %c4 : index
        %r = scf.for %j = %c0 to %c4 step %c1 iter_args(%acc = %o) -> (tensor<512xf32>) {
          %i = arith.addi %b, %j : index
          %x = tensor.extract %a[%i] : tensor<512xf32>
          %y = math.sqrt %x : f32
          %u = tensor.insert %y into %acc[%i] : tensor<512xf32>
          scf.yield %u : tensor<512xf32>
        } {xgpu.unroll = "WORD"}
        return %r : tensor<512xf32>
      }"""
    assert lower_to_ptx(text.replace("WORD", "none")).count("sqrt.rn.f32") == 1
    assert lower_to_ptx(text.replace("WORD", "full")).count("sqrt.rn.f32") == 4
