"""How the blocks of a cluster, each of which has a part of a tile's sums, add them up: each its share of the tile."""

from collections.abc import Sequence
from dataclasses import dataclass

from xgpu import ir
from xgpu.dialects.block import waits
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.row_panels import Panels
from xgpu.passes.llvm.memory import load, store
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.roles import Place, below
from xgpu.passes.tiles.structured import Values, only_if

_CHUNK = 16


@dataclass(frozen=True)
class Panel:
    """Sums in a team's memory: the ``columns`` from the ``first`` on of its product of a number."""

    memory: ir.Value
    number: int
    first: int
    columns: int


@dataclass(frozen=True)
class SplitSums:
    """Adds up panels, which lie at the same place in each block of the cluster; their elements are of a type."""

    panels: Panels
    place: Place
    element: ir.Type

    def add_up(self, panels: Sequence[Panel]) -> None:
        """Write the block's share of the whole sums over its own parts of them; all blocks have met before.

        The panels have as many columns each. The order of ranks is that of the sum, in each of its elements.
        """
        share, size = self.panels.share(panels[0].columns), self.panels.holders.size
        self._add([(panel, number) for panel in panels for number in range(share // size)])
        if share % size:
            last = share // size
            with only_if(below(self._number(last), share)):
                self._add([(panel, last) for panel in panels])

    def _add(self, taken: Sequence[tuple[Panel, int]]) -> None:
        """Add up what a thread takes of some panels in some passes.

        All parts are read before the first sum is written, so that it waits for other blocks about once.
        """
        places = [self._place(*each) for each in taken]
        sums = [self._sum([self._read(place, rank) for rank in range(self.panels.split)]) for place in places]
        for place, total in zip(places, sums, strict=True):
            store(total, place, _CHUNK)

    def _number(self, number: int) -> ir.Value:
        """Return the number in the share of what a thread takes in a pass, which may be beyond the share."""
        size = self.panels.holders.size
        map_ = IndexingMap(ranges((self.place.threads,)), (), (dim(0) % size + number * size,))
        return ApplyIndexingOp.build(map_, [self.place.thread])[0]

    def _place(self, panel: Panel, number: int) -> ir.Value:
        """Return where in a panel of this block the sums are that a thread takes in a pass."""
        map_ = self.panels.shared(panel.columns)
        return offset(panel.memory, as_i32(ApplyIndexingOp.build(map_, [self._number(number), self.place.rank])[0]))

    def _read(self, place: ir.Value, rank: int) -> ir.Value:
        pointer = ir.llvm.PointerType.get(7)
        there = waits.ClusterPointerOp.create([place, i32(rank)], [pointer]).operation.results[0]
        return load(there, ir.VectorType.get([self.panels.neighbours], self.element), _CHUNK)

    def _sum(self, parts: Values) -> ir.Value:
        add = ir.arith.addi if isinstance(self.element, ir.IntegerType) else ir.arith.addf
        total = parts[0]
        for each in parts[1:]:
            total = add(total, each)
        return total


def meet_cluster() -> None:
    """Wait until all threads of the cluster are here, which then see what each has done."""
    waits.ClusterArriveOp.create()
    waits.ClusterWaitOp.create()
