"""The fragments of a matrix that the threads of a warp or warp group hold (PTX ISA, 9.7.14)."""

from functools import cached_property

from xgpu.indexing.affine import AffineExpr, constant, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_ROWS_OF_WARP = 16
WARPGROUP_ROWS = WARPGROUP_SIZE // WARP_SIZE * _ROWS_OF_WARP
"""Rows of a product of a warp group."""


@dataclass(frozen=True)
class Holders:
    """Threads that together hold a tile of sums: teams of ``warps`` warps, and for each ``share`` products of its rows.

    There are ``across`` teams for the same rows, each with ``columns`` of them. Of the two rows that a thread has of a
    product of its warp, one is eight after the other, or the next one if rows are ``paired``.
    """

    teams: int
    warps: int
    share: int
    across: int
    columns: int
    paired: bool = False

    @property
    def size(self) -> int:
        """The threads of a team."""
        return self.warps * WARP_SIZE

    @property
    def threads(self) -> int:
        """The threads of all teams."""
        return self.teams * self.size

    @property
    def rows(self) -> int:
        """The rows of one product of a team."""
        return self.warps * _ROWS_OF_WARP

    @cached_property
    def accumulators(self) -> IndexingMap:
        """(thread)[half, eighth, neighbour] -> row and column in a team's product, and the number in the vector."""
        map_ = warpgroup_accumulators(self.columns, self.paired)
        results = tuple(each.substitute([dim(0) % self.size]) for each in map_.results)
        return IndexingMap((Interval(0, self.threads - 1),), map_.symbols, results)

    def first_row(self, number: AffineExpr | int) -> AffineExpr:
        """Return the row of the tile with which a thread's product of a number begins."""
        return (dim(0) // (self.size * self.across) * self.share + number) * self.rows

    @property
    def first_column(self) -> AffineExpr:
        """The column of the tile with which a thread's products begin."""
        return constant(0) if self.across == 1 else dim(0) // self.size % self.across * self.columns


def warpgroup_accumulators(columns: int, paired: bool = False) -> IndexingMap:
    """Return (thread)[row's half, eighth of the columns, neighbour] -> (row, column, number in the thread's vector).

    The matrix is 64 x ``columns``, the result of a product of a warp group; thread 0 is the group's first. Which row
    of an operand is which of the product's is free: the halves of ``paired`` rows are neighbours.
    """
    eighth, neighbour = symbol(1), symbol(2)
    column = eighth * 8 + dim(0) % WARP_SIZE % 4 * 2 + neighbour
    number = eighth * 4 + symbol(0) * 2 + neighbour
    threads = Interval(0, WARPGROUP_SIZE - 1)
    symbols = (Interval(0, 1), Interval(0, columns // 8 - 1), Interval(0, 1))
    return IndexingMap((threads,), symbols, (_row(symbol(0), paired), column, number))


def warpgroup_left(contracted: int, paired: bool = False) -> IndexingMap:
    """Return (thread)[sixteenth of the columns, eighth, row's half, neighbour] -> (row, column) of a left operand.

    It is 64 x ``contracted`` elements of 16 bits, a multiple of 16: those of a sixteenth are the fragments of a
    product of a warp group, in the order of the symbols. Rows are those of `warpgroup_accumulators`.
    """
    part, eighth, half, neighbour = (symbol(number) for number in range(4))
    column = part * _ROWS_OF_WARP + eighth * 8 + dim(0) % WARP_SIZE % 4 * 2 + neighbour
    symbols = (Interval(0, contracted // _ROWS_OF_WARP - 1), *[Interval(0, 1)] * 3)
    return IndexingMap((Interval(0, WARPGROUP_SIZE - 1),), symbols, (_row(half, paired), column))


def _row(half: AffineExpr, paired: bool) -> AffineExpr:
    """Return the row of a thread's elements in a half of its rows."""
    lane, warp = dim(0) % WARP_SIZE, dim(0) // WARP_SIZE
    row = lane // 4 * 2 + half if paired else lane // 4 + half * 8
    return warp * _ROWS_OF_WARP + row
