"""The pass `place-tiles`."""

from collections.abc import Mapping
from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.memory.storage import Block, MemoryPlan, overlaps, place
from xgpu.block_plan.order.events import StagedGraph
from xgpu.block_plan.order.lifetimes import lifetimes
from xgpu.device import DEFAULT_DEVICE, DeviceName, device
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.errors import Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.passes.blocks.support.decided import (
    bytes_of,
    layouts_of,
    meetings_of,
    order_of,
    plan_of,
    read_by_groups,
    refuse_decision,
    text_of,
)
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass

ALIGNMENT, PATTERN_ALIGNMENT = 128, 1024
"""Tiles begin at multiples of so many bytes, as copies of whole tiles ask for; those whose swizzle goes by addresses,
as these and products of warp groups read them, of more."""
_LEAST_ALIGNMENT = 16
"""Bytes at a multiple of which tiles begin that are placed by hand: those of the widest access."""


@dataclass(frozen=True)
class PlaceTiles(Pass):
    """Allocates shared memory for the tiles of a block.

    Tiles share memory if all threads meet between the last access to one and the first to the other. They take as few
    bytes as CP-SAT of OR-tools finds, where it is installed, else as the best of several orders of first fit.
    Needs schedule-tiles.

    ```mlir
    %x = "xgpu.tile"(%a, %i) {..., xgpu.place = "shared"} : ...
    // becomes
    %x = "xgpu.tile"(%a, %i) {..., xgpu.offset = 4096 : i64, xgpu.place = "shared"} : ...
    ```
    """

    NAME: ClassVar[str] = "place-tiles"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that the kernel is for."""

    def apply(self, module: ir.Module) -> None:
        """Write the offsets of every kernel's tiles."""
        for kernel in kernels_of(module):
            self._place(kernel)

    def _place(self, kernel: BlockKernel) -> None:
        plan = plan_of(kernel)
        used = lifetimes(plan, order_of(kernel, plan), meetings_of(kernel))
        memories = sorted(used)
        number = {memory: place for place, memory in enumerate(memories)}
        blocks = _blocks(kernel, plan, used)
        wanted = {
            number[plan.memory[tile]]: attributes.int_of(at)
            for tile, at in kernel.given(attributes.OFFSET).items()
            if tile in plan.memory
        }
        for number_, at in wanted.items():
            alignment = blocks[number_].alignment
            is_bulk = memories[number_] in _copied_in_bulk(kernel)
            least = alignment if is_bulk or alignment == PATTERN_ALIGNMENT else _LEAST_ALIGNMENT
            if at % least:
                op = kernel.ops[kernel.graph.maker[memories[number_]]]
                refuse_decision(op, attributes.OFFSET, f"a multiple of {least} bytes", at)
        placement = place(blocks, wanted)
        for first, second in overlaps(blocks, placement.offsets):
            op = kernel.ops[kernel.graph.maker[memories[second]]]
            other = kernel.ops[kernel.graph.maker[memories[first]]].name
            expected = f"no bytes of a tile of '{other}' that is in use at the same time"
            refuse_decision(op, attributes.OFFSET, expected, placement.offsets[second])
        self._check(kernel, placement)
        offsets = {
            tile: attributes.int_attribute(placement.offsets[number[memory]])
            for tile, memory in plan.memory.items()
            if memory in number
        }
        kernel.decide(attributes.OFFSET, offsets, attributes.int_attribute(-1))

    def _check(self, kernel: BlockKernel, placement: MemoryPlan) -> None:
        remark(self.NAME, kernel.function, "{} bytes of shared memory; at least {}", placement.size, placement.bound)
        most = device(self.target).shared_bytes_optin
        if placement.size > most:
            raise Unsupported(
                f"'{kernel.function.name}': the tiles take {placement.size} bytes of shared memory, and a block of"
                f" {self.target} has {most}: take smaller tiles",
                source_of(kernel.function),
            )


def _blocks(kernel: BlockKernel, plan: StagedGraph, used: Mapping[int, int]) -> list[Block]:
    """Return the blocks of memory of the tiles, in order, with all their buffers."""
    layouts, swizzles, bulk = layouts_of(kernel, plan), kernel.given(attributes.SWIZZLE), _copied_in_bulk(kernel)
    by_groups = read_by_groups(kernel, plan)
    found = []
    for memory in sorted(used):
        by_patterns = memory in swizzles and (memory in bulk or memory in by_groups)
        alignment = PATTERN_ALIGNMENT if by_patterns else ALIGNMENT
        found.append(Block(bytes_of(kernel, plan, memory, layouts[memory]), alignment, used[memory]))
    return found


def _copied_in_bulk(kernel: BlockKernel) -> set[int]:
    """Return the memory of the tiles that TMA copies."""
    return {tile for tile, way in kernel.given(attributes.COPY).items() if text_of(way) == attributes.BULK}
