"""Threads' reads of single elements of a tile in shared memory, two neighbours at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from xgpu import ir
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.llvm.memory import load
from xgpu.passes.tiles.boxes import Boxes
from xgpu.passes.tiles.prologues.elements import Place
from xgpu.passes.tiles.ring import offset
from xgpu.passes.tiles.structured import Values
from xgpu.passes.tiles.vectors import elements
from xgpu.passes.tiles.warp_copies import address

_CHUNK = 16
_LINE = 128
"""Bytes after which chunks are permuted otherwise."""


@dataclass(frozen=True, eq=False)
class NarrowTile:
    """A tile of narrow elements that lies at ``memory`` as its boxes were copied, read by a thread of a number."""

    boxes: Boxes
    memory: ir.Value
    thread: ir.Value
    threads: Interval

    def read(self, places: Sequence[Place]) -> Values:
        """Return the elements at some places, of which pairs are neighbours in memory."""
        along = self.boxes.view.inner
        found: dict[Place, ir.Value] = {}
        for place in places:
            if place in found:
                continue
            after = (place[0] + (along == 0), place[1] + (along == 1))
            if after in places:
                found[place], found[after] = self._pair(place)
        return [found[place] for place in places]

    def _pair(self, place: Place) -> list[ir.Value]:
        """Return the element at a place and its neighbour in memory."""
        type_ = ir.VectorType.get([2], self.boxes.element)
        where = ApplyIndexingOp.build(self._byte(place), [self.thread])
        return elements(load(offset(self.memory, address(where)), type_, 2 * self.boxes.element_bytes))

    def _byte(self, place: Place) -> IndexingMap:
        """Return the map of a thread to where the element at a place is, as `address` takes it."""
        along, row_bytes = self.boxes.view.inner, self.boxes.row_bytes
        line, byte = place[1 - along], place[along] * self.boxes.element_bytes
        first = byte // row_bytes * self.boxes.panel_bytes + line * row_bytes
        turn = line * row_bytes // _LINE % (row_bytes // _CHUNK)
        results = (first, byte % row_bytes // _CHUNK, turn, byte % _CHUNK)
        return IndexingMap((self.threads,), (), results).with_simple_results()
