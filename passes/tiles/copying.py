"""The warp that copies the tiles of each step into the ring."""

from xgpu import ir
from xgpu.dialects.block import copies, waits
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.boxes import Boxes
from xgpu.passes.tiles.ring import Ring, as_i32, i32, offset
from xgpu.passes.tiles.roles import TileOrder
from xgpu.passes.tiles.structured import Values
from xgpu.records import dataclass

_READ_AHEAD = 4
"""Parts of a tile whose numbers are computed at once: the thread that copies has few registers."""


@dataclass(frozen=True)
class CopySource:
    """An operand of the products: its boxes, their tensor map, and where the ring has room for its tiles.

    From a slot's tile to that of the next are ``slot_bytes``: the right operands' tiles of a slot are side by side.

    If ``is_shared``, the blocks of a cluster, which are ``cluster``, all need the same tile: each copies its share of
    it, to all of them.
    """

    boxes: Boxes
    map: ir.Value
    memory: ir.Value
    slot_bytes: int
    cluster: int

    @staticmethod
    def is_shared(boxes: Boxes) -> bool:
        """Whether blocks one below the other need the same tile."""
        used = {atom for each in boxes.map.results for atom in each.variables()[0]}
        return 1 not in used

    @property
    def splits_panels(self) -> bool:
        """Whether a block's share is some panels; else it is some rows of each."""
        return self.boxes.view.panels % self.cluster == 0

    @property
    def rows(self) -> int:
        """The rows of a box."""
        return self.boxes.view.rows // (1 if self.splits_panels else self.cluster)

    def buffer(self, slot: ir.Value) -> ir.Value:
        """Return where the tile of a slot is."""
        return offset(self.memory, ir.arith.muli(slot, i32(self.slot_bytes)))


@dataclass(frozen=True)
class Copies:
    """The code of the warp; one lane executes it."""

    order: TileOrder
    ring: Ring
    sources: tuple[CopySource, ...]

    def write(self) -> None:
        """Write it at the insertion point."""
        for source in self.sources:
            copies.AcquireTensorMapOp.create([source.map])
        total = sum(source.boxes.bytes for source in self.sources)
        with self.order.tiles([i32(0), i32(0)]) as tiles:
            at = self.order.numbers(tiles.counter)
            with self.order.steps(tiles.carried) as steps:
                slot, phase = steps.carried
                self.ring.wait_empty(slot, phase)
                full = self.ring.full(slot)
                waits.MbarrierExpectOp.create([full, i32(total)])
                for source in self.sources:
                    copy_tile(source, self.order.place.rank, slot, full, [*at, steps.counter])
                steps.carried = list(self.ring.next(slot, phase))
            tiles.carried = steps.results


def copy_tile(source: CopySource, rank: ir.Value, slot: ir.Value, full: ir.Value, at: Values) -> None:
    """Copy a tile into a slot, or this block's share of it; ``full`` is the mbarrier that counts the bytes."""
    view = source.boxes.view
    parts = source.cluster if source.splits_panels else 1
    for number in range(view.panels // parts):
        panel, row = create_index(number), create_index(0)
        if source.cluster > 1 and source.splits_panels:
            panel = ir.arith.addi(panel, ir.arith.muli(rank, create_index(view.panels // parts)))
        elif source.cluster > 1:
            row = ir.arith.muli(rank, create_index(source.rows))
        first = ir.arith.muli(as_i32(panel), i32(source.boxes.panel_bytes))
        to = offset(source.buffer(slot), ir.arith.addi(first, ir.arith.muli(as_i32(row), i32(source.boxes.row_bytes))))
        where = source.boxes.coordinates(at, panel, row)
        if source.cluster == 1:
            copies.TensorLoadOp.create([to, source.map, full, *where])
        else:
            blocks = i32((1 << source.cluster) - 1)
            copies.TensorLoadMulticastOp.create([to, source.map, full, blocks, *where])


def copy_parts(source: CopySource, slot: ir.Value, full: ir.Value, at: Values) -> None:
    """Copy a tile part by part, each at its numbers, of a few parts at once; by a block alone."""
    boxes = source.boxes
    assert boxes.lookup is not None
    for first in range(0, boxes.parts, _READ_AHEAD):
        several = range(first, min(first + _READ_AHEAD, boxes.parts))
        numbers = [boxes.lookup.at(at, part) for part in several]
        for part, read in zip(several, numbers, strict=True):
            for panel in range(boxes.view.panels):
                place = panel * boxes.panel_bytes + part * boxes.view.rows * boxes.row_bytes
                where = boxes.coordinates([*at, *read, create_index(part)], create_index(panel), create_index(0))
                copies.TensorLoadOp.create([offset(source.buffer(slot), place), source.map, full, *where])
