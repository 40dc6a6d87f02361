"""The pass `split-scans`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.captures import maker
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.scan_shape import ScanShape
from xgpu.costs.occupancy import blocks_that_fill, elements_of_a_launch
from xgpu.device import DEFAULT_DEVICE, Device, device
from xgpu.hlo.scan_op import SCAN, binary_function, build_scan, identity_of, is_elementwise
from xgpu.hlo.stablehlo_builder import (
    Value,
    element_of,
    fill_region,
    hlo,
    inline_block,
    replace,
    reshape,
    shape_of,
    splat,
    tensor,
)
from xgpu.passes.framework.base import BlockRewrite, operations_of

LAUNCHES = 2
"""Kernels that a split adds."""
SCANNED = 4
"""Elements that a block reads in the time in which it scans one."""
SHORTEST_CHUNK = 1 << 11
"""Elements of a chunk at least: more blocks are not faster, and more chunks are to be scanned."""
LONGEST_CHUNK = 1 << 16
"""Elements of a chunk at most: blocks then end together, and few are idle at the end."""
LINE = 16
"""Columns that a block scans as a rule, 64 bytes of f32."""


type _Combine = Callable[[Sequence[Value], Sequence[Value]], Sequence[Value]]


@dataclass(frozen=True)
class SplitScans(BlockRewrite):
    """Splits scans in chunks where one kernel would leave most of a device idle.

    What each chunk is combined to is a reduction, which reads the array once more; a scan of these says what comes
    before each chunk, and there the scan itself goes on. Results do not depend on timing, as they would if blocks
    waited for whichever others before them are done. (Source: the scans in three phases of Sengupta and others, "Scan
    primitives for GPU computing".) Needs: widen-packed.

    ```mlir
    %sums = "xgpu.scan"(%x) <{chunk = 1048576 : i64, ...}> ({ ... stablehlo.add ... })
        : (tensor<1048576xf32>) -> tensor<1048576xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.slice %x [0:1046528] : (tensor<1048576xf32>) -> tensor<1046528xf32>
    %1 = stablehlo.reshape %0 : (tensor<1046528xf32>) -> tensor<511x2048xf32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (...) -> tensor<511xf32>
    %3 = "xgpu.scan"(%2) <{chunk = 511 : i64, ...}> ({ ... }) : (tensor<511xf32>) -> tensor<511xf32>
    %sums = "xgpu.scan"(%x, %3) <{chunk = 2048 : i64, ...}> ({ ... }) : (...) -> tensor<1048576xf32>
    ```
    """

    NAME: ClassVar[str] = "split-scans"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCAN,))
    target: str = DEFAULT_DEVICE
    """The GPU that kernels are for."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Split the scans of ``block`` that need it, and again what that leaves."""
        pending, gpu = operations_of(block, self.OPERATIONS)[::-1], device(self.target)
        while pending:
            op = pending.pop()
            if not any(map(is_packed, op.results)) and (chunk := _chunk(op, gpu)) is not None:
                with op.location, ir.InsertionPoint(op):
                    pending += _split(op, chunk)


def _chunk(op: ir.Operation, target: Device) -> int | None:
    """Return of how many elements chunks are to be, None if the scan is to stay as it is."""
    shape = ScanShape.of(op)
    if not math.prod(shape.shape) or shape.chunks > 1 or not is_elementwise(op.regions[0].blocks[0]):
        return None
    columns = min(shape.inner, LINE)
    blocks = shape.outer * -(-shape.inner // LINE)
    if SCANNED * shape.size * columns * (1 - blocks / target.sm_count) <= LAUNCHES * elements_of_a_launch(target):
        return None
    wanted = blocks_that_fill(target) / blocks
    length = max(SHORTEST_CHUNK / columns, min(LONGEST_CHUNK / columns, shape.size / wanted))
    chunk = 1 << math.ceil(math.log2(length))
    return chunk if chunk < shape.size else None


def _split(op: ir.Operation, chunk: int) -> list[ir.Operation]:
    """Rewrite a scan to work by chunks, each from the chunks before; return the scan of the chunks, if there is one."""
    shape, block = ScanShape.of(op), op.regions[0].blocks[0]
    chunks = -(-shape.size // chunk)
    totals = _totals(op, shape, chunk, chunks - 1)

    def region(values: list[Value]) -> Sequence[Value]:
        return inline_block(block, values)

    ends = build_scan(totals, shape.dimension, shape.reverse, region)
    replace(op, build_scan(list(op.operands), shape.dimension, shape.reverse, region, chunk, ends))
    return [maker(ends[0])] if chunks > 2 else []


def _totals(op: ir.Operation, shape: ScanShape, chunk: int, count: int) -> list[Value]:
    """Return what each of the first ``count`` chunks is combined to, along the dimension, in the order of memory."""
    block = op.regions[0].blocks[0]
    first = shape.size - count * chunk if shape.reverse else 0
    starts, ends = [0] * len(shape.shape), list(shape.shape)
    starts[shape.dimension], ends[shape.dimension] = first, first + count * chunk
    apart = [*shape.shape[: shape.dimension], count, chunk, *shape.shape[shape.dimension + 1 :]]
    parts = [reshape(hlo.slice(v, starts, ends, [1] * len(starts)), apart) for v in op.operands]
    if (function := binary_function(block)) is not None:
        inits = [identity_of(function, element_of(parts[0]))]
        return _reduced(parts, inits, shape, lambda left, right: inline_block(block, [*left, *right]))
    # No identity is known: a flag tells elements from the initial value of a reduction.
    is_element = splat(1, tensor(apart, "i1"))
    inits = [splat(0, tensor([], "i1")), *(_zero(element_of(part)) for part in parts)]

    def combine(left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        combined = inline_block(block, [*left[1:], *right[1:]])
        chosen = [
            hlo.select(left[0], hlo.select(right[0], both, before), after)
            for both, before, after in zip(combined, left[1:], right[1:], strict=True)
        ]
        return [hlo.or_(left[0], right[0]), *chosen]

    return _reduced([is_element, *parts], inits, shape, combine)[1:]


def _reduced(parts: Sequence[Value], inits: Sequence[Value], shape: ScanShape, combine: _Combine) -> list[Value]:
    """Return what the chunks of ``parts`` are combined to; ``combine`` takes what is before in the scan first."""
    dimension = shape.dimension + 1
    sizes = [size for i, size in enumerate(shape_of(parts[0])) if i != dimension]
    types = [tensor(sizes, element_of(part)) for part in parts]
    op = hlo.ReduceOp(types, list(parts), list(inits), ir.DenseI64ArrayAttr.get([dimension])).operation
    scalars = [tensor([], element_of(part)) for part in parts]
    count = len(parts)

    def body(values: list[Value]) -> Sequence[Value]:
        before, after = values[:count], values[count:]
        return combine(after, before) if shape.reverse else combine(before, after)

    fill_region(op, [*scalars, *scalars], body)
    return list(op.results)


def _zero(element: ir.Type) -> Value:
    if isinstance(element, ir.ComplexType):
        part = splat(0, tensor([], element.element_type))
        return hlo.complex(part, part)
    return splat(0, tensor([], element))
