"""How sums that threads hold as fragments go through shared memory, so that each thread then has neighbours of a row.

A panel has the rows of a team's product, and some columns of 32 bits; each team has room for one at a time.
"""

from dataclasses import dataclass

from xgpu.indexing.affine import dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.fragments import Holders

PANEL_COLUMNS = 64
NEIGHBOURS = 8
"""Elements of a row that a thread takes at once, at most."""
_BYTES = 4
_PADDING = 8 * _BYTES
"""Bytes between rows: pairs that 16 threads of four rows write are then in different banks."""


@dataclass(frozen=True)
class Panels:
    """The panels of teams of threads, of up to ``most`` columns; a thread takes ``neighbours`` elements at once."""

    holders: Holders
    neighbours: int = NEIGHBOURS
    most: int = PANEL_COLUMNS

    @property
    def _pitch(self) -> int:
        return self.most * _BYTES + _PADDING

    @property
    def bytes(self) -> int:
        """The bytes of a team's panel."""
        return self.holders.rows * self._pitch

    @property
    def together(self) -> int:
        """How many passes are code beside each other, so that a thread has the most elements of a row under way."""
        return NEIGHBOURS // self.neighbours

    def written(self, first: int, columns: int) -> IndexingMap:
        """Return (thread)[half, eighth] -> (byte in the panel, number in the thread's vector) of pairs of neighbours.

        The panel has the ``columns`` from ``first`` on of what threads hold.
        """
        own = self.holders.accumulators
        eighth = symbol(1) + first // 8
        row, column, number = (each.substitute(None, [symbol(0), eighth, symbol(0) * 0]) for each in own.results)
        symbols = (Interval(0, 1), Interval(0, columns // 8 - 1))
        byte = row * self._pitch + (column - first) * _BYTES
        return IndexingMap(own.dims, symbols, (byte, number)).with_simple_results()

    def read(self, columns: int) -> IndexingMap:
        """Return (thread)[pass] -> (row, first column, byte in the panel) of the neighbours that a thread takes."""
        size, of_row = self.holders.size, self.most // self.neighbours
        taken = dim(0) % size + symbol(0) * size
        row, column = taken // of_row, taken % of_row * self.neighbours
        passes = Interval(0, self.holders.rows * of_row // size - 1)
        bounds = () if columns == self.most else ((column, Interval(0, columns - 1)),)
        results = (row, column, row * self._pitch + column * _BYTES)
        threads = Interval(0, self.holders.threads - 1)
        return IndexingMap((threads,), (passes,), results, bounds).with_simple_results()
