"""The order in which the blocks of a kernel compute tiles."""

from xgpu.indexing.access import ranges
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap


def tile_order(grid: tuple[int, int, int], cluster: int, band: int) -> IndexingMap:
    """Return (number, rank) -> (matrix, row, column) of the tiles of clusters, which are one below the other.

    Of each matrix bands of so many rows of clusters come one after the other, each column by column, so that what works
    at the same time reads few rows and few columns. ``cluster`` divides the rows, and ``band`` the rows of clusters.
    """
    batch, rows, columns = grid
    rows //= cluster
    in_matrix = dim(0) % (rows * columns)
    in_band = in_matrix % (band * columns)
    row = in_matrix // (band * columns) * band + in_band % band
    results = (dim(0) // (rows * columns), row * cluster + dim(1), in_band // band)
    return IndexingMap(ranges((batch * rows * columns, cluster)), (), results).with_simple_results()
