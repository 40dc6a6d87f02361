"""Products of warps and warp groups: all types of elements, and where operands may lie in shared memory."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tests.py.runtime.block.kernels import Array, at, constants, host_kernel, kernel, memory, placed
from xgpu.dialects.block.matrices import MatrixLayout

DTYPES: dict[str, type] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "si8": np.int8,
    "ui8": np.uint8,
    "f64": np.float64,
}
PAIRS = [(name, name) for name in DTYPES if name != "f64"] + [("f8E4M3FN", "f8E5M2"), ("si8", "ui8")]


def draw(element: str, shape: tuple[int, ...], seed: int) -> Array:
    """Return random elements; those of f32 have low bits, which tf32 does not."""
    generator = np.random.default_rng(seed)
    if element in ("si8", "ui8"):
        info = np.iinfo(DTYPES[element])
        return generator.integers(info.min, info.max + 1, shape).astype(DTYPES[element])
    return generator.standard_normal(shape).astype(DTYPES[element])


def known(element: str, values: Array) -> Array:
    """Return the numbers that the hardware takes elements for."""
    if element == "tf32":
        return (values.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(np.float64)
    return values.astype(np.float64)


def check(result: Array, left: Array, right: Array, elements: tuple[str, str], start: Array) -> None:
    """Compare a result with the product of the numbers, left by the transposed right one."""
    expected = known(elements[0], left) @ known(elements[1], right).T + start
    if result.dtype == np.int32:
        np.testing.assert_array_equal(result, expected.astype(np.int64).astype(np.int32))
    else:
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


def fragments(matrix: Array, registers: int, by_column: bool) -> Array:
    """Return the words of each lane of an operand of ``mma`` (PTX ISA, matrix fragments): of its rows, or its columns.

    The rows of ``matrix`` go along the contracted dimension: of the right operand they are the columns.
    """
    per_word = 4 // matrix.dtype.itemsize
    lanes = np.zeros((32, registers, per_word), matrix.dtype)
    for lane in range(32):
        for register in range(registers):
            lower = 0 if by_column else register % 2 * 8
            part = register if by_column else register // 2
            first = lane % 4 * per_word + part * 4 * per_word
            lanes[lane, register] = matrix[lane // 4 + lower, first : first + per_word]
    return lanes.view(np.int32).reshape(32, registers)


def sum_of(lanes: Array) -> Array:
    """Return the 16 x 8 matrix of whose elements each lane has four."""
    matrix = np.zeros((16, 8), lanes.dtype)
    for lane in range(32):
        for e in range(4):
            matrix[lane // 4 + e // 2 * 8, lane % 4 * 2 + e % 2] = lanes[lane, e]
    return matrix


@pytest.mark.parametrize("elements", PAIRS, ids="-".join)
def test_warp(elements: tuple[str, str]) -> None:
    type_ = "i32" if elements[0] in ("si8", "ui8") else "f32"
    body = f"""{constants(1, 2)}
  %t4 = arith.shli %t, %c2 : i32
  %t2 = arith.shli %t, %c1 : i32
  %pa = llvm.getelementptr %a[%t4] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %pb = llvm.getelementptr %b[%t2] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %pc = llvm.getelementptr %c[%t4] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %pd = llvm.getelementptr %d[%t4] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %va = llvm.load %pa : !llvm.ptr<1> -> vector<4xi32>
  %vb = llvm.load %pb : !llvm.ptr<1> -> vector<2xi32>
  %vc = llvm.load %pc : !llvm.ptr<1> -> vector<4x{type_}>
  %vd = "xgpu.mma"(%va, %vb, %vc) {{a_element = {elements[0]}, b_element = {elements[1]}}}
      : (vector<4xi32>, vector<2xi32>, vector<4x{type_}>) -> vector<4x{type_}>
  llvm.store %vd, %pd : vector<4x{type_}>, !llvm.ptr<1>"""
    k = 32 // np.dtype(DTYPES[elements[0]]).itemsize
    left, right = draw(elements[0], (16, k), 1), draw(elements[1], (8, k), 2)
    start = (100 * draw("tf32", (32, 4), 3)).astype(np.int32 if type_ == "i32" else np.float32)
    out = memory((32, 4), start.dtype)
    arrays = [placed(fragments(left, 4, False)), placed(fragments(right, 2, True)), placed(start), out]
    host_kernel(kernel(body, ["a", "b", "c", "d"])).launch(arrays)
    check(sum_of(out), left, right, elements, sum_of(start).astype(np.float64))


def test_warp_of_f64() -> None:
    body = f"""{constants(1)}
  %t2 = arith.shli %t, %c1 : i32
  %pa = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f64
  %pb = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f64
  %pd = llvm.getelementptr %d[%t2] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f64
  %va = llvm.load %pa : !llvm.ptr<1> -> vector<1xf64>
  %vb = llvm.load %pb : !llvm.ptr<1> -> vector<1xf64>
  %vc = llvm.load %pd : !llvm.ptr<1> -> vector<2xf64>
  %vd = "xgpu.mma"(%va, %vb, %vc) {{a_element = f64, b_element = f64}}
      : (vector<1xf64>, vector<1xf64>, vector<2xf64>) -> vector<2xf64>
  llvm.store %vd, %pd : vector<2xf64>, !llvm.ptr<1>"""
    left, right, start = (draw("f64", shape, seed) for seed, shape in enumerate(((8, 4), (8, 4), (8, 8))))
    out = placed(start)
    # The lanes have the elements of all three in their order.
    host_kernel(kernel(body, ["a", "b", "d"])).launch([placed(left), placed(right), out])
    np.testing.assert_allclose(out, left @ right.T + start, rtol=1e-14)


@dataclass(frozen=True)
class Operand:
    """A matrix in shared memory: ``rows`` along the contracted dimension, or across it if transposed."""

    layout: MatrixLayout
    rows: int
    row_bytes: int

    @property
    def size(self) -> int:
        """Bytes that it may take, of whole swizzles."""
        panels = -(-self.row_bytes // self.layout.row_bytes)
        last = (panels - 1) * self.layout.panel + -(-self.rows // 8) * self.layout.group
        return -(-last // 1024) * 1024

    def bytes(self, matrix: Array) -> Array:
        """Return the memory that holds a matrix."""
        stored = np.ascontiguousarray(matrix.T if self.layout.transposed else matrix).view(np.uint8)
        result = memory((self.size,), np.uint8)
        width, swizzle = self.layout.row_bytes, self.layout.swizzle
        for row in range(self.rows):
            for byte in range(self.row_bytes):
                place = (
                    byte // width * self.layout.panel + row // 8 * self.layout.group + row % 8 * width + byte % width
                )
                chunk = place // 128 % (swizzle // 16) * 16 if swizzle else 0
                result[place ^ chunk] = stored[row, byte]
        return result

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} = {getattr(self.layout, name)} : i64" for name in ("group", "panel", "swizzle"))
        return f"{{{numbers}, transposed = {str(self.layout.transposed).lower()}}}"


def operand(rows: int, element: str, swizzle: int, transposed: bool) -> Operand:
    """Return an operand of so many rows, whose groups of rows lie one after the other, and then its panels."""
    size = np.dtype(DTYPES[element]).itemsize
    count, row_bytes = (32 // size, rows * size) if transposed else (rows, 32)
    group = 8 * (swizzle or 16)
    return Operand(MatrixLayout(swizzle, group, count // 8 * group, transposed), count, row_bytes)


_LOAD = ": (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()"


def group_kernel(elements: tuple[str, str], columns: int, a: Operand | None, b: Operand) -> str:
    """A product of a warp group of bytes that are copied as they are, twice: not added to what was before, then added.

    The left operand is one of fragments if ``a`` is None.
    """
    type_ = "i32" if elements[0] in ("si8", "ui8") else "f32"
    result, a_type, a_bytes = f"vector<{columns // 2}x{type_}>", "vector<4xi32>", 0
    loads = f"""    "xgpu.bulk_load"(%to_b, %b, %b_bytes, %barrier) {_LOAD}"""
    left = """  %t4 = arith.shli %t, %c2 : i32
  %pa = llvm.getelementptr %a[%t4] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %left = llvm.load %pa : !llvm.ptr<1> -> vector<4xi32>"""
    if a:
        a_type, a_bytes = "!llvm.ptr<3>", a.size
        left = "  %left = llvm.getelementptr %shared[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8"
        loads += f"""
    "xgpu.bulk_load"(%shared, %a, %a_bytes, %barrier) {_LOAD}"""
    product = f"""{{a_element = {elements[0]}, b_element = {elements[1]},
      a_layout = {a or b}, b_layout = {b}}} : ({result}, {a_type}, !llvm.ptr<3>, i1) -> {result}"""
    zero = f"dense<0> : {result}" if type_ == "i32" else f"dense<0x7FC00000> : {result}"
    body = f"""{constants(0, 1, 2)}
  %a_bytes = arith.constant {a_bytes} : i32
  %b_bytes = arith.constant {b.size} : i32
  %all_bytes = arith.constant {a_bytes + b.size} : i32
  %true = arith.constant true
  %false = arith.constant false
  %before = arith.constant {zero}
{at("to_b", "shared", str(a_bytes))}
{at("barrier", "shared", str(a_bytes + b.size))}
  %is_first = arith.cmpi eq, %t, %c0 : i32
  scf.if %is_first {{
    "xgpu.mbarrier_init"(%barrier) {{count = 1 : i64}} : (!llvm.ptr<3>) -> ()
    "xgpu.fence"() {{kind = "mbarrier_init"}} : () -> ()
  }}
  gpu.barrier
  scf.if %is_first {{
    "xgpu.mbarrier_expect"(%barrier, %all_bytes) : (!llvm.ptr<3>, i32) -> ()
{loads}
  }}
  "xgpu.mbarrier_wait"(%barrier, %c0) : (!llvm.ptr<3>, i32) -> ()
{left}
  "xgpu.warpgroup_fence"() : () -> ()
  %first = "xgpu.warpgroup_mma"(%before, %left, %to_b, %false) {product}
  %second = "xgpu.warpgroup_mma"(%first, %left, %to_b, %true) {product}
  "xgpu.warpgroup_commit"() : () -> ()
  %sum = "xgpu.warpgroup_wait"(%second) {{pending = 0 : i64}} : ({result}) -> {result}
  %n = arith.constant {columns // 2} : i32
  %start = arith.muli %t, %n : i32
  %to = llvm.getelementptr %out[%start] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  "llvm.store"(%sum, %to) <{{alignment = 4 : i64, ordering = 0 : i64}}> : ({result}, !llvm.ptr<1>) -> ()"""
    return kernel(body, ["a", "b", "out"], block=(128, 1, 1), shared=a_bytes + b.size + 8)


def group_sum(lanes: Array, columns: int) -> Array:
    """Return the 64 x n matrix of whose elements each thread has n / 2 (PTX ISA, wgmma, fragment of D)."""
    matrix = np.zeros((64, columns), lanes.dtype)
    for thread in range(128):
        for e in range(columns // 2):
            row = thread // 32 * 16 + thread % 32 // 4 + e // 2 % 2 * 8
            matrix[row, e // 4 * 8 + thread % 4 * 2 + e % 2] = lanes[thread, e]
    return matrix


def run_group(elements: tuple[str, str], columns: int, a: Operand | None, b: Operand) -> None:
    k = 32 // np.dtype(DTYPES[elements[0]]).itemsize
    left, right = draw(elements[0], (64, k), 1), draw(elements[1], (columns, k), 2)
    dtype = np.int32 if elements[0] in ("si8", "ui8") else np.float32
    out = memory((128, columns // 2), dtype)
    parts = np.concatenate([fragments(left[16 * warp : 16 * warp + 16], 4, False) for warp in range(4)])
    a_memory = a.bytes(left) if a else placed(parts)
    host_kernel(group_kernel(elements, columns, a, b), sanitize=True).launch([a_memory, b.bytes(right), out])
    half = known(elements[0], left) @ known(elements[1], right).T
    check(group_sum(out, columns), left, right, elements, half)


@pytest.mark.parametrize("elements", PAIRS, ids="-".join)
def test_warp_group(elements: tuple[str, str]) -> None:
    run_group(elements, 32, operand(64, elements[0], 128, False), operand(32, elements[1], 32, False))


@pytest.mark.parametrize("elements", PAIRS, ids="-".join)
def test_warp_group_with_fragments(elements: tuple[str, str]) -> None:
    run_group(elements, 16, None, operand(16, elements[1], 64, False))


LAYOUTS = [(0, False, 0, False), (32, True, 64, False), (64, True, 128, True), (128, False, 0, True)]


@pytest.mark.parametrize(("a_swizzle", "a_transposed", "b_swizzle", "b_transposed"), LAYOUTS)
def test_layouts(a_swizzle: int, a_transposed: bool, b_swizzle: int, b_transposed: bool) -> None:
    a, b = operand(64, "bf16", a_swizzle, a_transposed), operand(128, "bf16", b_swizzle, b_transposed)
    run_group(("bf16", "bf16"), 128, a, b)


@pytest.mark.parametrize("columns", [8, 24, 256])
def test_columns(columns: int) -> None:
    run_group(("f16", "f16"), columns, operand(64, "f16", 128, False), operand(columns, "f16", 128, False))
