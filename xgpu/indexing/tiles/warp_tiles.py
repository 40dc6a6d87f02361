"""The operands of a product that warps multiply, as the threads of a block copy their tiles."""

from xgpu.dtypes import DType
from xgpu.indexing.access import shape_of
from xgpu.indexing.tiles.product_maps import Product, TileSizes
from xgpu.indexing.tiles.row_tiles import RowTile

_MULTIPLIED = ("bf16", "f16")
"""Types of elements that warps multiply."""
_SMALLEST = TileSizes(16, 16, 16)


def warp_problem(product: Product) -> str | None:
    """Return why no warps multiply a product; None if they do."""
    if problem := type_problem(product.dtype) or product.common_problem():
        return problem
    for number in range(2):
        if isinstance(tile := row_tile(product, number, _SMALLEST), str):
            return f"expected operands with elements that are neighbours in memory, but of operand {number} {tile}"
    return None


def type_problem(left: DType) -> str | None:
    """Return why warps do not multiply such elements of the left operand; None if they do."""
    if left.hlo in _MULTIPLIED:
        return None
    return f"expected operands of {' or '.join(_MULTIPLIED)}, which warps multiply, got {left}"


def row_tile(product: Product, number: int, sizes: TileSizes) -> RowTile | str:
    """Return an operand's tile as threads copy it, or why they do not."""
    shape = shape_of(product.op.operands[number])
    return RowTile.of(product.operand_map(number, sizes), shape, product.element_bytes)


def units(product: Product, sizes: TileSizes = _SMALLEST) -> tuple[int, int]:
    """Return the most bytes that a thread can copy at once of each operand."""
    tiles = [row_tile(product, number, sizes) for number in range(2)]
    left, right = (each.unit if isinstance(each, RowTile) else 0 for each in tiles)
    return left, right
