"""Copies of tiles by TMA: one thread starts the boxes of a tile, and all wait for a step's bytes at an mbarrier."""

from collections.abc import Mapping

from xgpu import ir
from xgpu.block_plan.memory.boxes import BARRIER_BYTES, MAP_BYTES, BulkTile, bulk_bytes
from xgpu.dialects.block import copies, waits
from xgpu.dialects.block.tiles import TileOp
from xgpu.indexing.affine import AffineExpr, constant
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.blocks.memory.shared import SharedTile
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.program import ScheduledKernel
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.roles import equal
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.records import dataclass
from xgpu.structure import element_of
from xgpu.target_machine import WARP_SIZE


@dataclass(frozen=True)
class MappedTile:
    """A tile that TMA copies: its boxes, and the tensor map that the block has made of its array."""

    boxes: BulkTile
    map: ir.Value

    def start(
        self, tile: TileOp, space: AddressSpace, numbers: Mapping[ir.Value, AffineExpr], to: SharedTile, full: ir.Value
    ) -> None:
        """Start to copy the boxes of a tile at some numbers of block and step; their bytes complete at ``full``."""
        at = [numbers[value] for value in tile.at]
        for panel in range(self.boxes.view.panels):
            starts = self.boxes.view.starts(constant(panel), constant(0))
            coordinates = [as_i32(space.index(each.substitute(at))) for each in starts]
            place = offset(to.pointer, panel * self.boxes.panel_bytes)
            copies.TensorLoadOp.create([place, self.map, full, *coordinates])


@dataclass(frozen=True)
class FullBarriers:
    """The mbarriers of some steps: one for each buffer, where all bytes of a step complete."""

    memory: ir.Value
    stages: int
    bytes: int

    def at(self, slot: ir.Value) -> ir.Value:
        """Return the mbarrier of a buffer."""
        return offset(self.memory, ir.arith.muli(slot, i32(BARRIER_BYTES)))

    def expect(self, slot: ir.Value) -> None:
        """Say that a buffer's copies are about to start; the thread that starts them executes it."""
        waits.MbarrierExpectOp.create([self.at(slot), i32(self.bytes)])

    def wait(self, slot: ir.Value, phase: ir.Value) -> None:
        """Wait until a buffer is full, for the time that ``phase`` is the parity of."""
        waits.MbarrierWaitOp.create([self.at(slot), phase])

    def initialize(self) -> None:
        """Make the mbarriers; one thread executes it."""
        for stage in range(self.stages):
            waits.MbarrierInitOp.create([offset(self.memory, stage * BARRIER_BYTES)], attributes={"count": 1})


@dataclass(frozen=True)
class BulkCopies:
    """The copies by TMA of a kernel: its tiles, and the mbarriers of its steps."""

    tiles: Mapping[TileOp, MappedTile]
    full: Mapping[ir.Operation, FullBarriers]
    thread: ir.Value

    @classmethod
    def prepared(
        cls,
        kernel: ScheduledKernel,
        pointers: Mapping[ir.Value, ir.Value],
        room: ir.Value,
        maps: ir.Value,
        thread: ir.Value,
    ) -> "BulkCopies":
        """Write what a block begins with, before its threads meet: tensor maps, by several warps, and mbarriers.

        ``room`` is the memory of `bulk_bytes`, ``maps`` where the block's tensor maps go.
        """
        mapped, tiles = {}, kernel.bulk
        warp = ir.arith.divui(thread, create_index(WARP_SIZE))
        for number, (tile, boxes) in enumerate(tiles.items()):
            mapped[tile] = MappedTile(boxes, offset(maps, number * MAP_BYTES))
            with only_if(equal(warp, number % kernel.warps)):
                staging = offset(room, number * MAP_BYTES)
                _encode(boxes, element_of(tile.array), [mapped[tile].map, staging, pointers[tile.array]])
        full, begin = {}, bulk_bytes(len(tiles), 0)
        for op, stages in kernel.bulk_steps.items():
            total = sum(boxes.bytes for tile, boxes in tiles.items() if tile.operation.parent == op)
            full[op] = FullBarriers(offset(room, begin), stages, total)
            begin += stages * BARRIER_BYTES
        with only_if(equal(thread, 0)):
            for each in full.values():
                each.initialize()
            waits.FenceOp.create(attributes={"kind": "mbarrier_init"})
        return cls(mapped, full, thread)

    def acquire(self) -> None:
        """Have the thread that copies see the tensor maps, once all have met."""
        with only_if(equal(self.thread, 0)):
            for each in self.tiles.values():
                copies.AcquireTensorMapOp.create([each.map])


def _encode(boxes: BulkTile, element: ir.Type, operands: Values) -> None:
    described = {
        "element": copies.copied_as(element),
        "shape": boxes.view.shape,
        "strides": boxes.view.strides(boxes.element_bytes),
        "box": boxes.view.box(boxes.view.rows),
        "swizzle": str(boxes.swizzle or "none"),
    }
    copies.EncodeTensorMapOp.create(operands, attributes=described)
