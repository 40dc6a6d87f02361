"""The division of a product among a block's warps: so many down its rows, so many across its columns."""

import math

from xgpu.records import dataclass

ATOM_ROWS, ATOM_COLUMNS = 16, 8
"""Rows and columns of the result of one matrix instruction of a warp."""


@dataclass(frozen=True)
class WarpProduct:
    """A product of tiles: ``batch`` of them, of ``rows`` by ``contracted`` and ``contracted`` by ``columns``."""

    batch: int
    rows: int
    columns: int
    contracted: int


def elements_read(product: WarpProduct, down: int, across: int) -> int:
    """Return how many elements of the operands all warps read: each those of its rows and of its columns."""
    rows, columns = (
        math.ceil(product.rows / ATOM_ROWS) * ATOM_ROWS,
        math.ceil(product.columns / ATOM_COLUMNS) * ATOM_COLUMNS,
    )
    return product.batch * product.contracted * (rows * across + columns * down)


def busiest(product: WarpProduct, down: int, across: int) -> int:
    """Return how many instructions the busiest warp has for each of the contracted dimension."""
    rows, columns = math.ceil(product.rows / ATOM_ROWS), math.ceil(product.columns / ATOM_COLUMNS)
    return product.batch * math.ceil(rows / down) * math.ceil(columns / across)


def arrange(products: list[WarpProduct], warps: int) -> tuple[int, int]:
    """Return how many warps are down the rows and across the columns of products that share registers' form.

    The busiest warp has as little to do as can be, then as few elements are read as can be. (Mirage: `thr_layout`.)
    """
    ways = [(down, warps // down) for down in range(1, warps + 1) if warps % down == 0]

    def cost(way: tuple[int, int]) -> tuple[int, int, int]:
        work = sum(busiest(each, *way) * each.contracted for each in products)
        return work, sum(elements_read(each, *way) for each in products), way[1]

    return min(ways, key=cost)
