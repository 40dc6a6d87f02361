"""Tiles that threads hold in registers, as the accumulators of a product of warps: 16 x 8 elements at a time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from xgpu import ir
from xgpu.dtypes import DType
from xgpu.emit.scalar.convert import convert_value
from xgpu.indexing.access import Shape
from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.interval import Interval
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.vectors import elements, from_elements
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

ROWS, COLUMNS = 16, 8
"""Rows and columns of a fragment."""
_GROUP = WARPGROUP_SIZE // WARP_SIZE
"""Warps of a warp group."""
NEIGHBOURS = 2
"""Elements of a row that a thread has side by side."""
HALVES = 2
"""Rows of a fragment of which a thread has elements: one is eight below the other."""
THREAD = dim(0)
"""The number of the thread, the first variable of all spaces of a kernel."""
LANE = THREAD % WARP_SIZE
ROW_LANES = 4
"""Lanes that follow each other and have elements of one row."""

Indices = tuple[AffineExpr, ...]


@dataclass(frozen=True)
class Fragment:
    """One of a thread's fragments: its matrix of a batch, and how many are above it and before it."""

    matrix: int
    down: int
    across: int


@dataclass(frozen=True)
class FragmentLayout:
    """The fragments in which warps hold a tile of ``shape``: ``down`` of them share its rows, ``across`` its columns.

    Its first ``batching`` dimensions number matrices, the next ``own`` ones rows, the others columns. Where a tile is
    no multiple of what warps hold, they begin again at the first row or column, and hold elements twice.
    If ``down`` is a multiple of four, each four warps that follow each other lie one below the other in each 64 rows of
    theirs, as a warp group has its accumulators.
    """

    shape: Shape
    batching: int
    own: int
    down: int
    across: int

    @property
    def matrices(self) -> int:
        """The number of matrices."""
        return math.prod(self._batch)

    @property
    def rows(self) -> int:
        """The rows of a matrix."""
        return math.prod(self._rows)

    @property
    def columns(self) -> int:
        """The columns of a matrix."""
        return math.prod(self._columns)

    @property
    def held_down(self) -> int:
        """Fragments of a warp one below the other."""
        return -(-self.rows // (ROWS * self.down))

    @property
    def held_across(self) -> int:
        """Fragments of a warp side by side."""
        return -(-self.columns // (COLUMNS * self.across))

    def fragments(self) -> Iterator[Fragment]:
        """Yield a thread's fragments."""
        for matrix in range(self.matrices):
            for down in range(self.held_down):
                for across in range(self.held_across):
                    yield Fragment(matrix, down, across)

    @property
    def together(self) -> int:
        """The warps that follow each other down the rows: those of a warp group, or one."""
        return _GROUP if self.down % _GROUP == 0 else 1

    @property
    def _band(self) -> AffineExpr:
        """The number of the warps that a thread's warp is together with."""
        return THREAD // (WARP_SIZE * self.together)

    def band_row(self, down: int) -> AffineExpr:
        """Return the first row of some fragments of warps that are together: those one below the other."""
        return (self._band // self.across * self.held_down + down) * (ROWS * self.together)

    def first_row(self, down: int) -> AffineExpr:
        """Return the first row of a fragment of a thread's warp; it may be after the last one."""
        return self.band_row(down) + THREAD // WARP_SIZE % self.together * ROWS

    @property
    def first_column(self) -> AffineExpr:
        """The first column of a thread's warp."""
        return self._band % self.across * (self.held_across * COLUMNS)

    def row(self, down: int, half: int) -> AffineExpr:
        """Return the row of a thread's elements in a half of a fragment; it may be after the last one."""
        return self.first_row(down) + half * (ROWS // HALVES) + LANE // ROW_LANES

    def column(self, across: int) -> AffineExpr:
        """Return the column of a thread's elements in a fragment, one for each of two lanes."""
        return self.first_column + across * COLUMNS + LANE % ROW_LANES * NEIGHBOURS + symbol(0)

    def indices(self, matrix: AffineExpr, row: AffineExpr, column: AffineExpr) -> Indices:
        """Return the indices in the tile of a row and a column, which may be after the last one."""
        return (
            *delinearize(matrix, self._batch),
            *delinearize(row % self.rows, self._rows),
            *delinearize(column % self.columns, self._columns),
        )

    def at(self, space: AddressSpace, fragment: Fragment, half: int, matrix: AffineExpr | None = None) -> Indices:
        """Return where a thread's elements are, of two lanes, in their simple form; maybe of another matrix."""
        number = constant(fragment.matrix) if matrix is None else matrix
        where = self.indices(number, self.row(fragment.down, half), self.column(fragment.across))
        return tuple(space.simple(each) for each in where)

    def bounds(self, fragment: Fragment, half: int) -> tuple[Constraint, ...]:
        """Return what holds of elements that no other thread has, too."""
        row, column = self.row(fragment.down, half), self.column(fragment.across)
        return (row, Interval(0, self.rows - 1)), (column, Interval(0, self.columns - 1))

    @property
    def of_rows(self) -> "FragmentLayout | None":
        """The layout of one number for each row, which all threads have that hold elements of it.

        Both neighbours of a thread are that number. None if there is no warp that has whole rows, each element once.
        """
        if (self.batching, self.own, self.across) != (0, 1, 1) or self.columns % COLUMNS:
            return None
        return FragmentLayout(self.shape[:1], 0, 1, self.down, 1)

    @property
    def _batch(self) -> Shape:
        return self.shape[: self.batching]

    @property
    def _rows(self) -> Shape:
        return self.shape[self.batching : self.batching + self.own]

    @property
    def _columns(self) -> Shape:
        return self.shape[self.batching + self.own :]


@dataclass(frozen=True, eq=False)
class FragmentTile:
    """A thread's elements of a tile: of each fragment a vector, first those of the upper half."""

    layout: FragmentLayout
    vectors: Mapping[Fragment, ir.Value]

    @classmethod
    def of(cls, layout: FragmentLayout, vectors: Sequence[ir.Value]) -> "FragmentTile":
        """Return the tile of vectors in the order of its fragments."""
        return cls(layout, dict(zip(layout.fragments(), vectors, strict=True)))

    @cached_property
    def values(self) -> list[ir.Value]:
        """The vectors, in the order of the fragments."""
        return [self.vectors[each] for each in self.layout.fragments()]

    def with_values(self, vectors: Sequence[ir.Value]) -> "FragmentTile":
        """Return the tile with other vectors, in the order of its fragments."""
        return FragmentTile.of(self.layout, vectors)

    def scalars(self, fragment: Fragment, half: int) -> tuple[ir.Value, ...]:
        """Write the extraction of a half's two elements; of the one that both are, if there is one column."""
        first = half * NEIGHBOURS
        count = NEIGHBOURS if self.layout.columns > 1 else 1
        return tuple(elements(self.vectors[fragment])[first : first + count])


@dataclass(frozen=True, eq=False)
class PendingTile:
    """A tile that products of warp groups under way add to: its accumulators, a vector for each row of fragments."""

    layout: FragmentLayout
    values: list[ir.Value]

    def with_values(self, vectors: Sequence[ir.Value]) -> "PendingTile":
        """Return the tile with other accumulators."""
        return PendingTile(self.layout, list(vectors))


def joined(halves: Sequence[Sequence[ir.Value]]) -> ir.Value:
    """Return the vector of the elements of both halves."""
    return from_elements([each for half in halves for each in half])


def converted(vector: ir.Value, source: DType, target: DType) -> ir.Value:
    """Return a vector's elements in another type."""
    if source == target:
        return vector
    return from_elements([convert_value(each, source, target) for each in elements(vector)])
