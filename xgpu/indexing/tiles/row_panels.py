"""How sums that threads hold as fragments go through shared memory, so that each thread then has neighbours of a row.

A panel has 64 rows and up to 64 columns of 32 bits; a warp group has room for one at a time.
"""

from xgpu.indexing.affine import dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS, warpgroup_accumulators
from xgpu.target_machine import WARPGROUP_SIZE

PANEL_COLUMNS = 64
NEIGHBOURS = 8
"""Elements of a row that a thread takes at once."""
_BYTES = 4
_PITCH = (PANEL_COLUMNS + 8) * _BYTES
"""Bytes from a row to the next: pairs that 16 threads of four rows write are then in different banks."""
PANEL_BYTES = WARPGROUP_ROWS * _PITCH
_THREADS_OF_ROW = PANEL_COLUMNS // NEIGHBOURS


def written_panel(threads: int, first: int, columns: int) -> IndexingMap:
    """Return (thread)[half, eighth] -> (byte in the panel, number in the thread's vector) of pairs of neighbours.

    The panel has the ``columns`` from ``first`` on of what `warpgroup_accumulators` describes.
    """
    own = warpgroup_accumulators(first + columns)
    eighth = symbol(1) + first // 8
    row, column, number = (
        each.substitute([dim(0) % WARPGROUP_SIZE], [symbol(0), eighth, symbol(0) * 0]) for each in own.results
    )
    symbols = (Interval(0, 1), Interval(0, columns // 8 - 1))
    byte = row * _PITCH + (column - first) * _BYTES
    return IndexingMap((Interval(0, threads - 1),), symbols, (byte, number)).with_simple_results()


def read_panel(threads: int, columns: int) -> IndexingMap:
    """Return (thread)[pass] -> (row, first column, byte in the panel) of the neighbours that a thread takes."""
    thread = dim(0) % WARPGROUP_SIZE
    row = thread // _THREADS_OF_ROW + symbol(0) * (WARPGROUP_SIZE // _THREADS_OF_ROW)
    column = thread % _THREADS_OF_ROW * NEIGHBOURS
    passes = Interval(0, WARPGROUP_ROWS * _THREADS_OF_ROW // WARPGROUP_SIZE - 1)
    bounds = () if columns == PANEL_COLUMNS else ((column, Interval(0, columns - 1)),)
    results = (row, column, row * _PITCH + column * _BYTES)
    return IndexingMap((Interval(0, threads - 1),), (passes,), results, bounds)
