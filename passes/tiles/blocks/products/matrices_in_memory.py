"""Operands of products in shared memory as instructions of warp groups read them: by a descriptor of their layout."""

from typing import Any

import numpy as np

from xgpu import ir
from xgpu.dialects.block.matrices import ROW_GROUP, MatrixLayout
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.interval import Interval
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.blocks.memory.shared import SharedTile, TileLayout
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.memory.stored import MOST_BYTES, element_bytes
from xgpu.passes.tiles.blocks.products.operands import LEFT, Operand
from xgpu.passes.tiles.ring import as_i32, offset
from xgpu.records import dataclass

_LINE_BYTES = 128
"""Bytes after which the chunk that a swizzle turns to changes."""


@dataclass(frozen=True, eq=False)
class MatrixInMemory:
    """A matrix that warp groups multiply: the tile in shared memory that has its elements, and their layout there."""

    operand: Operand
    tile: SharedTile
    layout: MatrixLayout

    @classmethod
    def of(cls, operand: Operand, at_once: int) -> "MatrixInMemory":
        """Return an operand's matrix, of which an instruction reads so many rows, or columns of the right one.

        Raises `CompilerError` where the tile lies otherwise than these instructions can read it.
        """
        problem: MatrixLayout | str = "expected it in shared memory"
        tile = operand.in_memory()
        if tile is not None:
            sizes = Interval(0, operand.free - 1), Interval(0, operand.contracted - 1)
            position = operand.position(AddressSpace(sizes, ()), constant(0), dim(0), dim(1))
            rows, terms = np.ogrid[: operand.free, : operand.contracted]
            elements = np.broadcast_to(position.evaluate((rows, terms)), (operand.free, operand.contracted))  # type: ignore[arg-type]
            problem = matrix_layout(elements, tile.layout, at_once)
        if isinstance(problem, str):
            number = "left" if operand.number == LEFT else "right"
            refuse(PASS, operand.product, f"warp groups cannot multiply the {number} operand as it lies: {problem}")
        assert tile is not None
        return cls(operand, tile, problem)

    def address(self, space: AddressSpace, free: AffineExpr, contracted: int) -> ir.Value:
        """Write where the part of the matrix begins that has these elements first."""
        position = self.operand.position(space, constant(0), free, constant(contracted))
        size = element_bytes(self.operand.dtype)
        begin = offset(self.tile.pointer, as_i32(space.index((position - position.constant) * size)))
        return offset(begin, position.constant * size)


def matrix_layout(elements: "np.ndarray[Any, Any]", layout: TileLayout, at_once: int) -> MatrixLayout | str:
    """Return how a matrix lies, given the number of each element by row and contracted index; or why not so.

    ``elements`` has the rows of a left operand, or the columns of a right one, of which an instruction reads so many
    ``at_once``.
    """
    size = element_bytes(layout.dtype)
    row = _row_bytes(layout, size)
    if row is None:
        return f"expected no swizzle or one of rows of 32, 64 or 128 bytes, got {layout.swizzle}"
    places, swizzle = elements * size, 0 if row == MOST_BYTES else row
    pattern = ROW_GROUP * row
    begins = (layout.start, int(places[0, 0]), layout.buffer_bytes if layout.buffers > 1 else 0)
    if any(each % pattern for each in begins):
        return f"expected it to begin at a multiple of {pattern} bytes"
    for transposed in (False, True):
        lines = places.T if transposed else places
        found = _layout_of(lines, size, row, swizzle, transposed)
        if found is None:
            continue
        if transposed and at_once * size % row:
            return f"expected whole rows in the {at_once * size} bytes that an instruction reads, got rows of {row}"
        return found
    return f"expected rows of {row} bytes, eight after each other, got strides {layout.strides}"


def _row_bytes(layout: TileLayout, size: int) -> int | None:
    """Return the bytes of a row of a panel, by its swizzle; None if it is another one."""
    bits, base, shift = layout.swizzle or (0, 0, 0)
    if not bits:
        return MOST_BYTES
    is_known = bits <= 3 and (size << base, size << shift) == (MOST_BYTES, _LINE_BYTES)
    return MOST_BYTES << bits if is_known else None


def _layout_of(
    places: "np.ndarray[Any, Any]", size: int, row: int, swizzle: int, transposed: bool
) -> MatrixLayout | None:
    """Return the layout of lines of neighbours; None if there is none of that form."""
    lines, along = places.shape
    each = row // size
    if lines % ROW_GROUP or along % (MOST_BYTES // size) or (along > each and along % each):
        return None
    group = int(places[ROW_GROUP, 0] - places[0, 0]) if lines > ROW_GROUP else ROW_GROUP * row
    panel = int(places[0, each] - places[0, 0]) if along > each else 0
    number, place = np.arange(lines)[:, None], np.arange(along)[None] * size
    wanted = number // ROW_GROUP * group + number % ROW_GROUP * row + place // row * panel + place % row
    found = MatrixLayout(swizzle, group, panel, transposed)
    fits = np.array_equal(places - places[0, 0], wanted) and found.problem() is None
    return found if fits else None
