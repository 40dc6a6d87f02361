"""Which element of a matrix each thread of a warp or warp group holds, and where in its vector: PTX ISA, 9.7.14."""

from xgpu.indexing.affine import dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_ROWS_OF_WARP = 16
WARPGROUP_ROWS = WARPGROUP_SIZE // WARP_SIZE * _ROWS_OF_WARP
"""Rows of a product of a warp group."""


def warpgroup_accumulators(columns: int) -> IndexingMap:
    """Return (thread)[row's half, eighth of the columns, neighbour] -> (row, column, number in the thread's vector).

    The matrix is 64 x ``columns``, the result of a product of a warp group; thread 0 is the group's first.
    """
    lane, warp = dim(0) % WARP_SIZE, dim(0) // WARP_SIZE
    half, eighth, neighbour = symbol(0), symbol(1), symbol(2)
    row = warp * _ROWS_OF_WARP + lane // 4 + half * 8
    column = eighth * 8 + lane % 4 * 2 + neighbour
    number = eighth * 4 + half * 2 + neighbour
    threads = Interval(0, WARPGROUP_SIZE - 1)
    symbols = (Interval(0, 1), Interval(0, columns // 8 - 1), Interval(0, 1))
    return IndexingMap((threads,), symbols, (row, column, number))
