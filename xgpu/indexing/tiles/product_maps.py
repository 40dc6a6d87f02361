"""Matrix products as batches of products of two matrices: their sizes, and the maps of their tiles."""

import math
from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.dtypes import DType
from xgpu.hlo.tensor_cores import product_problem
from xgpu.indexing.access import Shape, ranges, shape_of
from xgpu.indexing.affine import AffineExpr, delinearize, dim, symbol
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.element_tiles import then
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.indexing.tiles.prologues import Prologue
from xgpu.indexing.tiles.tensor_views import TensorView, map_of_bytes, tensor_view
from xgpu.records import dataclass
from xgpu.structure import dtype_of

ROW_BYTES = 128
"""Bytes of a tile's rows: the widest that shared memory swizzles."""
_BITS_OF_ANY_ORDER = 16
"""Bits of elements any dimension of which may be contiguous in memory; of others it is the contracted one."""


@dataclass(frozen=True)
class TileSizes:
    """The tiles that a block multiplies in a step: m x k by k x n."""

    m: int
    n: int
    k: int


@dataclass(frozen=True)
class Product:
    """A `dot_general` as ``batch`` products of matrices, m x k by k x n.

    If ``is_swapped``, the operands are exchanged: the m rows of the left one are columns of the result. If it has a
    ``prologue``, the left one is computed from what is in memory.
    """

    op: ir.Operation
    is_swapped: bool = False
    prologue: Prologue | None = None

    @property
    def operands(self) -> list[ir.Value]:
        """The operands, the left one first."""
        given = list(self.op.operands)
        return given[::-1] if self.is_swapped else given

    @cached_property
    def dtype(self) -> DType:
        """The type of the left operand's elements; those of the right one are as wide."""
        return dtype_of(self.op.operands[0])

    @property
    def element_bytes(self) -> int:
        """The bytes of an element of the operands."""
        return self.dtype.bits // 8

    @cached_property
    def _shapes(self) -> tuple[Shape, Shape, Shape, Shape]:
        """The sizes of the batch dimensions, of each operand's own ones, of the contracted ones."""
        left, _ = operand_dimensions(self.op)
        result, sizes = shape_of(self.op.results[0]), shape_of(self.op.operands[0])
        batches, split = len(left.batching), len(left.batching) + len(left.own)
        contracted = tuple(sizes[i] for i in left.contracting)
        return result[:batches], result[batches:split], result[split:], contracted

    @property
    def batch(self) -> int:
        """The number of products of two matrices."""
        return math.prod(self._shapes[0])

    @property
    def m(self) -> int:
        """Rows of the left matrices."""
        return math.prod(self._shapes[2 if self.is_swapped else 1])

    @property
    def n(self) -> int:
        """Columns of the right matrices."""
        return math.prod(self._shapes[1 if self.is_swapped else 2])

    @property
    def k(self) -> int:
        """Elements that are contracted."""
        return math.prod(self._shapes[3])

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Matrices, m, n and k: how much there is to multiply."""
        return self.batch, self.m, self.n, self.k

    @property
    def groups(self) -> int:
        """The number of groups that rows are in, each with a matrix of its own; 0 if they are in none."""
        return 0

    @property
    def has_groups(self) -> bool:
        """Whether rows are in groups: where a tile's rows are is then known when it is run."""
        return self.groups > 0

    @property
    def library_sizes(self) -> tuple[int, int, int, int]:
        """The same of what a library multiplies."""
        return self.sizes

    def grid(self, rows: int, columns: int) -> tuple[int, int, int]:
        """Return how many tiles there are: matrices, tiles down a matrix, and along its rows."""
        return self.batch, -(-self.m // rows), -(-self.n // columns)

    def placed_map(self, tile: TileSizes) -> IndexingMap:
        """Return the map of a tile of the result, from (batch, row of tiles, column of tiles)."""
        row, column = dim(1) * tile.m + symbol(0), dim(2) * tile.n + symbol(1)
        bounds = [(row, self.m, tile.m), (column, self.n, tile.n)]
        grid = self.grid(tile.m, tile.n)
        return _within(grid, (tile.m, tile.n), self._result_indices(row, column), bounds)

    def result_map(self, tile: TileSizes) -> IndexingMap:
        """Return the map of a tile of the result, from the numbers of the block: `placed_map`, if nothing else is."""
        return self.placed_map(tile)

    def operand_map(self, number: int, tile: TileSizes) -> IndexingMap:
        """Return the map of a tile of an operand, m x k or k x n, from (batch, row, column, step)."""
        row, column = dim(1) * tile.m + symbol(0), dim(2) * tile.n + symbol(1)
        position = dim(3) * tile.k + symbol(1 - number)
        contracted = delinearize(position, self._shapes[3])
        access = accesses(self.op)[1 - number if self.is_swapped else number].map
        indices = self._result_indices(row, column)
        results = tuple(each.substitute(indices, contracted) for each in access.results)
        shape = ((tile.m, tile.k), (tile.k, tile.n))[number]
        free = ((row, self.m, tile.m), (column, self.n, tile.n))[number]
        grid = (*self.grid(tile.m, tile.n), -(-self.k // tile.k))
        return _within(grid, shape, results, [free, (position, self.k, tile.k)])

    def _result_indices(self, row: AffineExpr, column: AffineExpr) -> tuple[AffineExpr, ...]:
        batch, left, right, _ = self._shapes
        first, second = (column, row) if self.is_swapped else (row, column)
        return (*delinearize(dim(0), batch), *delinearize(first, left), *delinearize(second, right))

    def operand_view(self, number: int, tile: TileSizes) -> TensorView | str:
        """Return how tiles of an operand are copied as boxes, or why they cannot be.

        Of one that is computed, they are tiles of the array that has an element for each of its own.
        """
        map_ = self.operand_map(number, tile)
        if number == 0 and self.prologue is not None:
            array, bits = shape_of(self.prologue.array), self.prologue.bits
            return narrow_view(then(map_, self.prologue.access), array, bits)
        return tensor_view(map_, shape_of(self.operands[number]), self.element_bytes, ROW_BYTES)

    def has_paired_rows(self, tile: TileSizes) -> bool:
        """Whether threads compute neighbouring rows of the left operand, as these lie in memory beside each other."""
        view = self.operand_view(0, tile) if self.prologue is not None else None
        return isinstance(view, TensorView) and view.inner == 0

    @property
    def left_bits(self) -> int:
        """The bits of an element of the left operand in memory, or of what it is computed from."""
        return self.dtype.bits if self.prologue is None else self.prologue.bits

    @property
    def step(self) -> int:
        """The contracted elements of a step: a row of the tile with the narrower elements."""
        return step_of(self.left_bits, self.dtype.bits)

    def common_problem(self) -> str | None:
        """Return why no kernel computes it: its types and precision, or that there is nothing to multiply."""
        if problem := product_problem(self.op):
            return problem
        if not self.batch * self.m * self.n * self.k:
            return "expected operands with elements"
        return None

    def problem(self, tile: TileSizes | None = None) -> str | None:
        """Return why warp groups do not multiply it, by these tiles or the smallest; None if they do."""
        if problem := self.common_problem():
            return problem
        if self.prologue is not None:
            if self.prologue.number != self.is_swapped:
                return f"expected the computed operand, {self.prologue.number}, to be multiplied from the left"
            if self.k % self.step:
                # What is computed of the zeros after the end of an array may be no number.
                return f"expected a multiple of {self.step} contracted elements, of an operand that is computed"
        smallest = tile or TileSizes(WARPGROUP_ROWS, ROW_BYTES // self.element_bytes, self.step)
        for number in range(2):
            if isinstance(view := self.operand_view(number, smallest), str):
                return f"expected operands that can be copied as boxes, but of operand {number} {view}"
            if number == 0 and self.prologue is not None:
                continue
            if problem := order_problem(view, number, self.dtype):
                return problem
        return None


def step_of(left_bits: int, bits: int) -> int:
    """Return the contracted elements of a step, of operands with so many bits: a row of the narrower ones.

    Those of parts of a byte have as many as bytes have.
    """
    return 8 * ROW_BYTES // max(8, min(left_bits, bits))


def narrow_row_bytes(map_: IndexingMap, bits: int) -> int:
    """Return the bytes of a row of a box of a tile with elements of so many bits, which threads read and convert."""
    return min(ROW_BYTES, *(each.size * bits // 8 for each in map_.symbols))


def narrow_view(map_: IndexingMap, shape: Shape, bits: int) -> TensorView | str:
    """Return how a tile of an array of such elements is copied as boxes, of bytes, or why it cannot be."""
    row_bytes = narrow_row_bytes(map_, bits)
    if bits >= 8:
        return tensor_view(map_, shape, bits // 8, row_bytes)
    bytes_ = map_of_bytes(map_, shape, 8 // bits)
    return bytes_ if isinstance(bytes_, str) else tensor_view(bytes_, (math.prod(shape) * bits // 8,), 1, row_bytes)


def order_problem(view: TensorView, number: int, dtype: DType) -> str | None:
    """Return why tiles of an operand cannot be multiplied as they lie in memory; None if they can."""
    if dtype.bits == _BITS_OF_ANY_ORDER or view.inner == 1 - number:
        return None
    return f"expected operand {number}, of {dtype}, to be contiguous in memory along the contracted dimension"


def _within(
    dims: Sequence[int],
    shape: Sequence[int],
    results: tuple[AffineExpr, ...],
    bounds: list[tuple[AffineExpr, int, int]],
) -> IndexingMap:
    """Return a map of tiles: of each bound, an expression is below a size, which ``step`` may not divide."""
    constraints = tuple((each, Interval(0, size - 1)) for each, size, step in bounds if size % step)
    return IndexingMap(ranges(tuple(dims)), ranges(tuple(shape)), results, constraints).with_simple_results()
