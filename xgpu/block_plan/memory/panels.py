"""Layouts of what warp groups multiply: rows of 32, 64 or 128 bytes, swizzled, as the matrix descriptors of wgmma say.

Tiles with longer rows are panels one after the other, each with all rows, of which it has so many bytes. (PTX ISA,
"Asynchronous warpgroup level matrix shared memory layout".)
"""

import math
from collections.abc import Mapping

from xgpu.block_plan.graph import Tile
from xgpu.block_plan.memory.strides import TilePanel
from xgpu.block_plan.order.events import StagedGraph
from xgpu.block_plan.warps import GROUP_ROWS, Arrangement
from xgpu.dialects.attributes import BY_WARP_GROUPS

MOST_ROW_BYTES = 128
"""Bytes of the widest row that a swizzle permutes."""


def read_together(plan: StagedGraph, arranged: Mapping[int, Arrangement]) -> dict[int, tuple[int, int]]:
    """Return the memory that warp groups multiply, with the elements of each dimension that one instruction reads.

    Of the contracted dimension it may read some panels after others. ``arranged`` is how warps share products, by node.
    """
    found: dict[int, tuple[int, int]] = {}
    for number, node in enumerate(plan.graph.nodes):
        if node.instruction != BY_WARP_GROUPS or node.dimensions is None:
            continue
        _, across = arranged[number]
        for operand, (tile, dimensions) in enumerate(zip(node.operands, node.dimensions, strict=True)):
            if tile not in plan.memory:
                continue
            shape = plan.graph.tiles[tile].shape
            (own,), (contracted,) = dimensions.own, dimensions.contracting
            sizes = {own: shape[own] // across if operand else GROUP_ROWS, contracted: shape[contracted]}
            known = found.get(plan.memory[tile], (0, 0))
            found[plan.memory[tile]] = (math.gcd(known[0], sizes[0]), math.gcd(known[1], sizes[1]))
    return found


def panel_layout(tile: Tile, innermost: int, together: tuple[int, int]) -> tuple[tuple[int, int], TilePanel | None]:
    """Return the strides of a tile of two dimensions, and its panels if there are several.

    ``together`` has how many elements of each dimension an instruction reads.
    """
    size = tile.element_bytes
    row = math.gcd(tile.shape[innermost], together[innermost], MOST_ROW_BYTES // size)
    strides = [row, row]
    strides[innermost] = 1
    lines = tile.shape[1 - innermost]
    panel = TilePanel(innermost, row, row * lines) if row < tile.shape[innermost] else None
    return (strides[0], strides[1]), panel
