"""Panels in shared memory through which threads exchange sums, so that each then has neighbours of a line.

A line is a row of the sums, or a column where those of a column are neighbours in memory. A panel has the rows of a
team's product, and some columns of 32 bits.
"""

from xgpu.indexing.affine import AffineExpr, constant, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.fragments import Holders
from xgpu.records import dataclass

PANEL_COLUMNS = 64
NEIGHBOURS = 8
"""Elements of a line that a thread takes at once, at most."""
ADDED = 4
"""Elements that a thread reads of another block at once: 16 bytes."""
_BYTES = 4
_PADDING = 8 * _BYTES
"""Bytes between rows: pairs that 16 threads of four rows write are then in different banks."""
_PADDING_OF_COLUMNS = 4 * _BYTES
"""Bytes between columns: what the threads of a warp write, of eight rows in every other column, is then so, too."""


@dataclass(frozen=True)
class Panels:
    """The panels of teams of threads, of up to ``most`` columns; a thread takes ``neighbours`` elements at once.

    If ``is_down``, lines are columns. The blocks of a cluster share each panel, which are ``split``: what a team takes
    is its block's share.
    """

    holders: Holders
    neighbours: int = NEIGHBOURS
    most: int = PANEL_COLUMNS
    split: int = 1
    is_down: bool = False

    @property
    def _pitch(self) -> int:
        if self.is_down:
            return self.holders.rows * _BYTES + _PADDING_OF_COLUMNS
        return self.most * _BYTES + _PADDING

    @property
    def bytes(self) -> int:
        """The bytes of a team's panel."""
        return (self.most if self.is_down else self.holders.rows) * self._pitch

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The panels of a product: the first column of each, and how many it has."""
        columns = self.holders.columns
        return [(first, min(self.most, columns - first)) for first in range(0, columns, self.most)]

    @property
    def together(self) -> int:
        """The number of passes unrolled together, so that a thread has the most elements of a line under way."""
        return NEIGHBOURS // self.neighbours

    @property
    def written_together(self) -> int:
        """The number of elements that a thread holds beside each other and that are neighbours in a panel."""
        return 1 if self.is_down else 2

    def written(self, first: int, columns: int) -> IndexingMap:
        """Return (thread)[half, eighth, ...] -> (byte in the panel, number in the thread's vector) of what it writes.

        That are pairs of neighbours, or single elements. The panel has the ``columns`` from ``first`` on of what
        threads hold.
        """
        own = self.holders.accumulators
        eighth = symbol(1) + first // 8
        neighbour = symbol(2) if self.is_down else constant(0)
        row, column, number = (each.substitute(None, [symbol(0), eighth, neighbour]) for each in own.results)
        symbols = (Interval(0, 1), Interval(0, columns // 8 - 1), Interval(0, 1))[: 3 if self.is_down else 2]
        return IndexingMap(own.dims, symbols, (self._byte(row, column - first), number)).with_simple_results()

    def read(self, columns: int) -> IndexingMap:
        """Return (thread)[pass] -> (row, first column, byte in the panel) of the neighbours that a thread takes.

        Where blocks share panels, a dimension more is the block's rank among them.
        """
        taken, symbols, bounds = self._taken(self.share(columns))
        row, column = self._place(taken, columns, self.neighbours)
        if not self.is_down and self.split == 1 and columns != self.most:
            bounds = (*bounds, (column, Interval(0, columns - 1)))
        results = (row, column, self._byte(row, column))
        return IndexingMap(self._dims, symbols, results, bounds).with_simple_results()

    def moved(self, place: tuple[AffineExpr, AffineExpr], by: AffineExpr) -> tuple[AffineExpr, AffineExpr]:
        """Return the row and column so many neighbours after those of a place."""
        row, column = place
        return (row + by, column) if self.is_down else (row, column + by)

    def share(self, columns: int) -> int:
        """The number of times that a block's team takes neighbours of a panel."""
        whole = self.most if not self.is_down and self.split == 1 else columns
        return self.holders.rows * whole // self.neighbours // self.split

    def added(self, columns: int) -> IndexingMap:
        """Return (thread, rank)[pass] -> byte in the panel of the `ADDED` elements of a line that a thread adds up.

        Threads side by side have those side by side, all of them of their block's share.
        """
        share = self.share(columns) * self.neighbours // ADDED
        taken, symbols, bounds = self._taken(share)
        byte = self._byte(*self._place(taken, columns, ADDED))
        return IndexingMap(self._dims, symbols, (byte,), bounds).with_simple_results()

    @property
    def _dims(self) -> tuple[Interval, ...]:
        threads = Interval(0, self.holders.threads - 1)
        return (threads,) if self.split == 1 else (threads, Interval(0, self.split - 1))

    def _taken(self, share: int) -> tuple[AffineExpr, tuple[Interval, ...], tuple[tuple[AffineExpr, Interval], ...]]:
        """Return the number of what a thread takes of a panel in a pass, and where it takes anything."""
        size = self.holders.size
        own = dim(0) % size + symbol(0) * size
        bounds = ((own, Interval(0, share - 1)),) if share % size else ()
        return own if self.split == 1 else own + dim(1) * share, (Interval(0, -(-share // size) - 1),), bounds

    def _place(self, number: AffineExpr, columns: int, neighbours: int) -> tuple[AffineExpr, AffineExpr]:
        """Return the row and the column at which the neighbours of a number begin."""
        if self.is_down:
            of_line = self.holders.rows // neighbours
            return number % of_line * neighbours, number // of_line
        of_line = (self.most if self.split == 1 else columns) // neighbours
        return number // of_line, number % of_line * neighbours

    def _byte(self, row: AffineExpr, column: AffineExpr) -> AffineExpr:
        line, place = (column, row) if self.is_down else (row, column)
        return line * self._pitch + place * _BYTES
