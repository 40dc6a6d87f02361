"""Facts of a fusion around a product that single warps multiply, before it is scheduled."""

from xgpu.emit.families.products.facts import Products
from xgpu.indexing.access import shape_of
from xgpu.indexing.tiles.product_maps import TileSizes
from xgpu.indexing.tiles.row_panels import NEIGHBOURS
from xgpu.indexing.tiles.row_tiles import RowTile
from xgpu.records import dataclass


@dataclass(frozen=True)
class WarpProducts(Products):
    """A fusion around one product that warps multiply."""

    def neighbours(self, sizes: TileSizes) -> int:
        """Return how many elements of a row of the results lie together such that threads write them as one."""
        least = NEIGHBOURS
        for value, size in zip(self.fusion.results, self.result_bytes, strict=True):
            tile = RowTile.of(self.product.result_map(sizes), shape_of(value), size)
            least = min(least, tile.unit // size if isinstance(tile, RowTile) and tile.inner == 1 else 1)
        return max(1, least)
