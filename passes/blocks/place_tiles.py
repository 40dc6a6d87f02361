"""The pass `place-tiles`."""

from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.lifetimes import lifetimes
from xgpu.block_plan.storage import Block, overlaps, place
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.passes.blocks.support.decided import bytes_of, layouts_of, order_of, plan_of, refuse_decision
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark

ALIGNMENT = 128
"""Tiles begin at multiples of so many bytes, as copies of whole tiles ask for."""


@dataclass(frozen=True)
class PlaceTiles(Pass):
    """Decides where in the block's shared memory each tile lies.

    Tiles share memory if all threads meet between the last access to one and the first to the other.
    Needs schedule-tiles.

    ```mlir
    %x = "xgpu.tile"(%a, %i) {..., xgpu.place = "shared"} : ...
    // becomes
    %x = "xgpu.tile"(%a, %i) {..., xgpu.offset = 4096 : i64, xgpu.place = "shared"} : ...
    ```
    """

    NAME: ClassVar[str] = "place-tiles"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Write the offsets of every kernel's tiles."""
        for kernel in kernels_of(module):
            self._place(kernel)

    def _place(self, kernel: BlockKernel) -> None:
        plan = plan_of(kernel)
        layouts = layouts_of(kernel, plan)
        met = [number for number, op in enumerate(kernel.ops) if attributes.MEET in op.attributes]
        used = lifetimes(plan, order_of(kernel, plan), met)
        memories = sorted(used)
        blocks = [Block(bytes_of(kernel, plan, each, layouts[each]), ALIGNMENT, used[each]) for each in memories]
        number = {memory: place for place, memory in enumerate(memories)}
        wanted = {
            plan.memory[tile]: attributes.int_of(at)
            for tile, at in kernel.given(attributes.OFFSET).items()
            if tile in plan.memory
        }
        placement = place(blocks, {number[memory]: at for memory, at in wanted.items()})
        for first, second in overlaps(blocks, placement.offsets):
            op = kernel.ops[kernel.graph.maker[memories[second]]]
            other = kernel.ops[kernel.graph.maker[memories[first]]].name
            refuse_decision(op, attributes.OFFSET, f"no bytes of '{other}', in use at once", placement.offsets[second])
        remark(self.NAME, kernel.function, "{} bytes of shared memory; at least {}", placement.size, placement.bound)
        offsets = {
            tile: attributes.int_attribute(placement.offsets[number[memory]])
            for tile, memory in plan.memory.items()
            if memory in number
        }
        kernel.decide(attributes.OFFSET, offsets, attributes.int_attribute(-1))
