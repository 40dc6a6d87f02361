"""Products of rows in groups by tiles: no tile has rows of two groups, so which rows it has is known when it is run."""

import math
from functools import cached_property

from xgpu import ir
from xgpu.hlo.chlo import RAGGED, RaggedDimensions
from xgpu.indexing.access import Shape, ranges, shape_of
from xgpu.indexing.affine import AffineExpr, dim, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.product_maps import Product, TileSizes
from xgpu.structure import dtype_of

_SIZES = ("s32", "s64")
GROUP_BYTES = 8
"""The numbers that a block keeps of each group: how many tiles and how many rows there are before."""
_MOST_GROUPS = 4096
"""Groups of which that leaves room for tiles."""
_BANDS = 8
"""The divisor of longer tiles' rows, so that they can be computed in bands."""
_SOURCE, _GROUP, _FIRST, _COUNT, _STEP = range(3, 8)
"""The dimensions of the maps, after the numbers of the grid: what `xgpu.group_rows` returns, then the step."""


class RaggedProduct(Product):
    """A `ragged_dot` as a product of m rows, each by the matrix of its group: m x k by k x n.

    The maps go from the block's numbers in the grid, then what `xgpu.group_rows` says of its rows: where they are read,
    their group, where they are written, and how many there are. Rows that are in no group are read where there are
    none, in a group that there is not, and so their sums are zero.
    """

    @cached_property
    def dimensions(self) -> RaggedDimensions:
        """The roles of an operand's dimensions."""
        found = RaggedDimensions.of(self.op)
        assert found is not None
        return found

    def common_problem(self) -> str | None:
        """Return why no kernel computes it: also where groups are not ones of rows."""
        if RaggedDimensions.of(self.op) is None:
            return "expected groups of rows of one matrix, each with a matrix of its own"
        if (sizes := dtype_of(self.group_sizes)).hlo not in _SIZES:
            return f"expected sizes of groups of {' or '.join(_SIZES)}, got {sizes}"
        if not 0 < self.groups <= _MOST_GROUPS:
            return f"expected 1 to {_MOST_GROUPS} groups, got {self.groups}"
        return super().common_problem()

    @property
    def groups(self) -> int:
        """The number of groups, and of matrices."""
        return shape_of(self.op.operands[1])[self.dimensions.group]

    @cached_property
    def _shapes(self) -> tuple[Shape, Shape, Shape, Shape]:
        m, n = shape_of(self.op.results[0])
        return (), (m,), (n,), (shape_of(self.op.operands[0])[self.dimensions.contracted],)

    @property
    def operands(self) -> list[ir.Value]:
        """The rows and the matrices."""
        left, right, _ = self.op.operands
        return [left, right]

    @property
    def group_sizes(self) -> ir.Value:
        """The number of rows that each group has."""
        return self.op.operands[2]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """As many groups as have rows, if each row were of any group alike, with as many rows each."""
        filled = max(1, math.ceil(self.groups * (1 - (1 - 1 / self.groups) ** self.m)))
        return filled, -(-self.m // filled), self.n, self.k

    @property
    def library_sizes(self) -> tuple[int, int, int, int]:
        """A library multiplies the rows by all matrices, with zeros in the place of the rows of other groups."""
        return 1, self.m, self.n, self.groups * self.k

    def grid(self, rows: int, columns: int) -> tuple[int, int, int]:
        """Return how many tiles there are at most: each group, and what is in none, may end with a part of one."""
        most = min(self.m, (self.m + (self.groups + 1) * (rows - 1)) // rows)
        return 1, most if most <= _BANDS else -(-most // _BANDS) * _BANDS, -(-self.n // columns)

    def numbers(self, tile: TileSizes) -> tuple[int, ...]:
        """Return how many values each dimension of the maps has, but for the step."""
        return *self.grid(tile.m, tile.n), self.m + 1, self.groups + 1, self.m + 1, tile.m + 1

    def result_map(self, tile: TileSizes) -> IndexingMap:
        """Return the map of a tile of the result, without what is after the end of its group."""
        row, column = dim(_FIRST) + symbol(0), dim(2) * tile.n + symbol(1)
        bounds: list[Constraint] = [(symbol(0) - dim(_COUNT), Interval(-tile.m, -1)), (row, Interval(0, self.m - 1))]
        return self._map(tile, (tile.m, tile.n), {0: row, 1: column}, [*bounds, *_end(column, self.n, tile.n)])

    def operand_map(self, number: int, tile: TileSizes) -> IndexingMap:
        """Return the map of a tile of the rows, or of those of a matrix, from all numbers and the step."""
        steps, places = -(-self.k // tile.k), self.dimensions
        position = dim(_STEP) * tile.k + symbol(1 - number)
        bounds = _end(position, self.k, tile.k)
        if number == 0:
            row = dim(_SOURCE) + symbol(0)
            indices = {places.rows: row, places.contracted: position}
            return self._map(tile, (tile.m, tile.k), indices, [(row, Interval(0, self.m - 1)), *bounds], steps)
        column, group = dim(2) * tile.n + symbol(1), dim(_GROUP)
        indices = {places.group: group, places.right_contracted: position, places.columns: column}
        bounds += [*_end(column, self.n, tile.n), (group, Interval(0, self.groups - 1))]
        return self._map(tile, (tile.k, tile.n), indices, bounds, steps)

    def _map(
        self, tile: TileSizes, shape: Shape, indices: dict[int, AffineExpr], bounds: list[Constraint], *steps: int
    ) -> IndexingMap:
        dims = ranges((*self.numbers(tile), *steps))
        results = tuple(indices[number] for number in range(len(indices)))
        return IndexingMap(dims, ranges(shape), results, tuple(bounds)).with_simple_results()


def _end(index: AffineExpr, size: int, step: int) -> list[Constraint]:
    """Return that an index is below a size, if tiles of ``step`` go on after it."""
    return [(index, Interval(0, size - 1))] if size % step else []


def table_bytes(groups: int) -> int:
    """Return what a block keeps of so many groups, what is left after them, and the end; nothing of none."""
    return (groups + 2) * GROUP_BYTES if groups else 0


def product_of(op: ir.Operation) -> Product:
    """Return a `dot_general`, or a `ragged_dot`, as products of matrices."""
    return RaggedProduct(op) if op.name == RAGGED else Product(op)
