"""The pass `swizzle-tiles`."""

from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.memory.swizzles import conflicts, order_of, row_chunks, swizzle_of
from xgpu.block_plan.order.events import StagedGraph
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.passes.blocks.support.decided import layouts_of, plan_of, read_by_groups, read_down
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass


@dataclass(frozen=True)
class SwizzleTiles(Pass):
    """Chooses the swizzle of each tile in shared memory: how chunks of 16 bytes are permuted within rows.

    Matrix instructions read chunks of one column of their operands: where rows are a power of two of chunks, the number
    of the row is xored into that of the chunk, so that no banks conflict. Other rows are an odd number of chunks apart,
    as assign-layouts has left them, and stay. Nor do tiles change of which only elements of a row are read together.
    Warp groups multiply matrices that are swizzled so in any case: their rows are of 32, 64 or 128 bytes.
    Needs assign-layouts.

    ```mlir
    %x = "xgpu.tile"(%a, %i) {..., xgpu.layout = array<i64: 64, 1>} : (tensor<64x64xf16>, index) -> tensor<64x64xf16>
    // becomes
    %x = "xgpu.tile"(%a, %i) {..., xgpu.layout = array<i64: 64, 1>, xgpu.swizzle = array<i64: 3, 3, 6>} : ...
    ```
    """

    NAME: ClassVar[str] = "swizzle-tiles"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Write the swizzles of every kernel's tiles."""
        for kernel in kernels_of(module):
            plan = plan_of(kernel)
            given = {plan.memory[t]: each for t, each in kernel.given(attributes.SWIZZLE).items() if t in plan.memory}
            found = dict(given)
            by_groups = read_by_groups(kernel, plan)
            for memory in read_down(plan) - given.keys():
                by_rows = _by_rows(kernel, plan, memory) if memory in by_groups else None
                swizzle = by_rows or self._swizzle(kernel, plan, memory)
                if swizzle is not None:
                    found[memory] = attributes.int_array(swizzle)
            decided = {tile: found[memory] for tile, memory in plan.memory.items() if memory in found}
            kernel.decide(attributes.SWIZZLE, decided, attributes.int_array(()))

    def _swizzle(self, kernel: BlockKernel, plan: StagedGraph, memory: int) -> tuple[int, int, int] | None:
        """Return the swizzle of an operand of a product; None if its columns do not conflict, or none would help."""
        tile, strides = kernel.graph.tiles[memory], layouts_of(kernel, plan)[memory]
        order = order_of(tile, strides)
        op = kernel.ops[kernel.graph.maker[memory]]
        if len(order) < 2 or strides[order[0]] != 1:
            return None
        chunks = row_chunks(strides[order[1]], tile.element_bytes)
        swizzle = None if chunks is None else swizzle_of(chunks, tile.element_bytes)
        before, after = (sum(conflicts(tile, strides, each)) for each in (None, swizzle))
        if swizzle is None or after >= before:
            if before:
                why = "accesses to its columns take {} wavefronts more than they need: rows are {} elements apart"
                remark(self.NAME, op, why, before, strides[order[1]])
            return None
        return swizzle.bits, swizzle.base, swizzle.shift


def _by_rows(kernel: BlockKernel, plan: StagedGraph, memory: int) -> tuple[int, int, int] | None:
    """Return the swizzle of a matrix that warp groups multiply, by the bytes of its rows; None for a single chunk."""
    tile, strides = kernel.graph.tiles[memory], layouts_of(kernel, plan)[memory]
    chunks = row_chunks(max(strides), tile.element_bytes)
    swizzle = None if chunks is None else swizzle_of(chunks, tile.element_bytes)
    return None if swizzle is None else (swizzle.bits, swizzle.base, swizzle.shift)
