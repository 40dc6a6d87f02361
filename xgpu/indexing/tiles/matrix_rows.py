"""The rows in shared memory from which the lanes of a warp read fragments of a tile (PTX ISA, ``ldmatrix``)."""

from xgpu.indexing.affine import dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.fragments import Holders
from xgpu.indexing.tiles.row_tiles import RowTile
from xgpu.target_machine import WARP_SIZE

FRAGMENT = 16
"""Rows or columns, and contracted elements, of what a warp reads at once."""
_EIGHT = 8


def is_transposed(tile: RowTile, number: int) -> bool:
    """Whether the rows of operand ``number`` do not go along the contracted dimension."""
    return tile.inner != 1 - number


def matrix_rows(tile: RowTile, number: int, holders: Holders) -> IndexingMap:
    """Return (thread)[contracted part, block of 16] -> the four numbers of where a row of eight elements is.

    Of operand ``number`` a warp reads four matrices of 8 x 8 at once, of which lane ``8 m + r`` gives the place of row
    ``r`` of matrix ``m``: for the left operand first the upper and lower ones, for the right one first those with the
    first and last contracted elements. So fragments are as `xgpu.mma` needs them, the right operand's two by two.
    """
    lane, eight = dim(0) % WARP_SIZE, dim(0) % WARP_SIZE // _EIGHT
    upper, later = (eight % 2, eight // 2) if number == 0 else (eight // 2, eight % 2)
    count = holders.share if number == 0 else holders.columns // FRAGMENT
    first = holders.first_row(symbol(1)) if number == 0 else holders.first_column + symbol(1) * FRAGMENT
    free, contracted = first + upper * _EIGHT, symbol(0) * FRAGMENT + later * _EIGHT
    along, across = (free, contracted) if is_transposed(tile, number) else (contracted, free)
    place = tile.shared.place(across + lane % _EIGHT, along * tile.size)
    symbols = (Interval(0, tile.map.symbols[1 - number].size // FRAGMENT - 1), Interval(0, count - 1))
    return IndexingMap((Interval(0, holders.threads - 1),), symbols, place).with_simple_results()
