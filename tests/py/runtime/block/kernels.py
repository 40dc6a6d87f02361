"""Kernels of blocks that work on tiles, as text at level ``lowered``, and how they are run on the host."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.levels import pipeline
from xgpu.passes.framework import manager
from xgpu.runtime.host_executor import HostKernel, aligned_empty
from xgpu.target.host.labels import label_operations
from xgpu.target_machine import HOST

type Array = np.ndarray[Any, Any]


def lowered(text: str, is_labelled: bool = False) -> ir.Module:
    """Lower a kernel at level ``lowered`` for the host; a context is current. Labels are for messages."""
    module = ir.Module.parse(text)
    if is_labelled:
        label_operations(module)
    manager.run(module, pipeline.to_llvm(HOST, device(DEFAULT_DEVICE)))
    return module


def host_kernel(text: str, sanitize: bool = False) -> HostKernel:
    """Lower a kernel at level ``lowered`` for the host, and compile it."""
    with ir.make_context(), ir.Location.unknown():
        return HostKernel(lowered(text, is_labelled=sanitize), sanitize=sanitize)


def kernel(
    body: str,
    buffers: Sequence[str],
    grid: Sequence[int] = (1, 1, 1),
    block: Sequence[int] = (32, 1, 1),
    shared: int = 1024,
    attributes: str = "",
) -> str:
    """Return a kernel named k, whose last buffers are outputs, with ``shared`` bytes at ``%shared``."""
    parameters = ", ".join(f"%{name}: !llvm.ptr<1>" for name in buffers)
    return f"""module attributes {{xgpu.level = "lowered"}} {{
llvm.mlir.global internal @tile() {{addr_space = 3 : i32, alignment = 1024 : i64}} : !llvm.array<{shared} x i8>
func.func @k({parameters}) attributes {{xgpu.kernel, xgpu.index_bits = 32 : i64,
    xgpu.grid = array<i64: {", ".join(map(str, grid))}>, xgpu.block = array<i64: {", ".join(map(str, block))}>
    {attributes}}} {{
  %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %tx = gpu.thread_id x
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %t = arith.index_cast %tx : index to i32
  %block_x = arith.index_cast %bx : index to i32
  %block_y = arith.index_cast %by : index to i32
{body}
  func.return
}}
}}
"""


def constants(*values: int) -> str:
    """Return definitions of ``%c0``, ``%c1``... of type i32, and ``%i0``, ``%i1``... of type index."""
    lines = []
    for value in sorted(set(values)):
        lines.append(f"  %c{value} = arith.constant {value} : i32")
        lines.append(f"  %i{value} = arith.constant {value} : index")
    return "\n".join(lines)


def at(result: str, base: str, offset: str, space: int = 3) -> str:
    """Return the address so many bytes after another; ``offset`` is a value, or a number."""
    pointer = f"!llvm.ptr<{space}>"
    if offset.startswith("%"):
        return f"  %{result} = llvm.getelementptr %{base}[{offset}] : ({pointer}, i32) -> {pointer}, i8"
    return f"  %{result} = llvm.getelementptr %{base}[{offset}] : ({pointer}) -> {pointer}, i8"


LANE = """  %warp = arith.divui %t, %c32 : i32
  %lane = arith.andi %t, %c31 : i32
  %warp_row = arith.muli %warp, %c16 : i32"""
"""The numbers of a thread's warp and lane, and the first of the 16 rows that its warp has of a product."""


def store_sums(elements: Sequence[str], rows: int, columns: int) -> str:
    """Return the stores to ``%out`` of a thread's sums, each an operation, that are in bounds; `LANE` comes before."""
    stores = "\n".join(
        f"""  %e{e} = {element}
  %row{e} = arith.addi %row_first, %c{e // 2 % 2 * 8} : i32
  %column{e} = arith.addi %column_first, %c{e // 4 * 8 + e % 2} : i32
  %row_ok{e} = arith.cmpi ult, %row{e}, %c{rows} : i32
  %column_ok{e} = arith.cmpi ult, %column{e}, %c{columns} : i32
  %ok{e} = arith.andi %row_ok{e}, %column_ok{e} : i1
  scf.if %ok{e} {{
    %line{e} = arith.muli %row{e}, %c{columns} : i32
    %place{e} = arith.addi %line{e}, %column{e} : i32
    %to{e} = llvm.getelementptr %out[%place{e}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %e{e}, %to{e} : f32, !llvm.ptr<1>
  }}"""
        for e, element in enumerate(elements)
    )
    return f"""  %lane_row = arith.divui %lane, %c4 : i32
  %lane_pair = arith.andi %lane, %c3 : i32
  %lane_column = arith.muli %lane_pair, %c2 : i32
  %row_in_block = arith.addi %warp_row, %lane_row : i32
  %row_first = arith.addi %row_in_block, %first_row : i32
  %column_first = arith.addi %lane_column, %first_column : i32
{stores}"""


def without(text: str, operation: str, count: int = 1) -> str:
    """Return a kernel without the first operations that start with a text; none has results, or regions."""
    for _ in range(count):
        start = text.index(operation)
        end = text.index("-> ()", start) + len("-> ()")
        text = text[:start] + text[end:]
    return text


def memory(shape: Sequence[int], dtype: DTypeLike) -> Array:
    """Return an array of zeros that is aligned as one in global memory."""
    array = aligned_empty(shape, dtype, 256)
    array[...] = 0
    return array


def placed(values: Array) -> Array:
    """Return an array of these values that is aligned as one in global memory."""
    array = memory(values.shape, values.dtype)
    array[...] = values
    return array
