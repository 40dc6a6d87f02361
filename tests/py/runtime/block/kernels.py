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
