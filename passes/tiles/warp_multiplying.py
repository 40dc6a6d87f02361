"""The products of a block's warps: each reads fragments of its rows and columns, and adds up 16 x 8 sums at a time."""

from functools import cached_property

from xgpu import ir
from xgpu.dialects.block.matrices import LoadMatrixOp, MmaOp
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.indexing.affine import constant
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.fragments import Holders
from xgpu.indexing.tiles.matrix_rows import FRAGMENT, is_transposed, matrix_rows
from xgpu.passes.support.arith_builder import constant as splat
from xgpu.passes.tiles.ring import offset
from xgpu.passes.tiles.structured import Values
from xgpu.passes.tiles.vectors import joined, part
from xgpu.passes.tiles.warp_copies import RowCopies, address
from xgpu.records import dataclass

_COLUMNS = 8
"""Columns of a product of a warp."""
_SUMS = 4


@dataclass(frozen=True, eq=False)
class WarpProductWriter:
    """The products of a warp: ``operands`` are the left and the right one's tiles."""

    operands: tuple[RowCopies, RowCopies]
    holders: Holders
    thread: ir.Value

    @property
    def _columns(self) -> int:
        """Products of a warp side by side."""
        return self.holders.columns // _COLUMNS

    @property
    def parts(self) -> int:
        """The number of fragments that a step contracts."""
        return self.operands[0].rows.map.symbols[1].size // FRAGMENT

    def zeros(self) -> Values:
        """Return the sums before the first step: of each product of rows those of all columns."""
        zero = splat(0, ir.VectorType.get([_SUMS], ir.F32Type.get()))
        return [zero] * (self.holders.share * self._columns)

    def fragments(self, slot: ir.Value, number: int) -> Values:
        """Read a warp's fragments of one part of the contracted elements of a slot's tiles: first the left ones."""
        return [
            fragment
            for operand in range(2)
            for fragment in self._fragments(operand, self.operands[operand].buffer(slot), number)
        ]

    def add(self, sums: Values, fragments: Values) -> Values:
        """Add the products of fragments."""
        sums = list(sums)
        left, right = fragments[: self.holders.share], fragments[self.holders.share :]
        element = self.operands[0].element
        described = {"a_element": element, "b_element": element}
        for place in range(len(sums)):
            row, column = divmod(place, self._columns)
            pair = part(right[column // 2], column % 2 * 2, 2)
            made = MmaOp.create([left[row], pair, sums[place]], [sums[place].type], described)
            sums[place] = made.operation.results[0]
        return sums

    def joined(self, sums: Values) -> Values:
        """Return the sums as one vector for each product of rows."""
        return [joined(sums[first : first + self._columns]) for first in range(0, len(sums), self._columns)]

    @cached_property
    def _rows(self) -> tuple[IndexingMap, IndexingMap]:
        left, right = (matrix_rows(each.rows, number, self.holders) for number, each in enumerate(self.operands))
        return left, right

    def _fragments(self, operand: int, buffer: ir.Value, number: int) -> Values:
        """Read a warp's fragments of an operand, those of one part of the contracted elements."""
        map_, transposed = self._rows[operand], is_transposed(self.operands[operand].rows, operand)
        type_ = ir.VectorType.get([4], ir.IntegerType.get_signless(32))
        found = []
        for block in range(map_.symbols[1].size):
            at = [constant(number), constant(block)]
            one = IndexingMap(map_.dims, (), tuple(each.substitute(None, at) for each in map_.results))
            row = offset(buffer, address(ApplyIndexingOp.build(one.with_simple_results(), [self.thread])))
            made = LoadMatrixOp.create([row], [type_], {"transposed": transposed})
            found.append(made.operation.results[0])
        return found
