"""The shape of a reduction with its dimensions merged, for planning and the emitters."""

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache

from xgpu import ir
from xgpu.indexing.access import integers, ranges, shape_of
from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim
from xgpu.indexing.hlo_maps import reshape_map
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass

REDUCE = "stablehlo.reduce"


@dataclass(frozen=True)
class Extent:
    """Adjacent dimensions of an array, all of them reduced or all kept, taken as one of ``size`` elements."""

    size: int
    reduced: bool
    dimensions: tuple[int, ...]


@dataclass(frozen=True)
class ReductionShape:
    """The reduction of an array of ``shape`` over ``dimensions``, in ascending order.

    Dimensions of size 1 are left out, and neighbours of the same sort are one extent, so sorts alternate. Where the
    minor-most extent is reduced, the reduction is one of *rows*, which are contiguous; else it is one of *columns*.
    """

    shape: tuple[int, ...]
    dimensions: tuple[int, ...]

    @classmethod
    def of(cls, op: ir.Operation) -> "ReductionShape":
        """Return the shape of a ``stablehlo.reduce``."""
        return _reduction(shape_of(op.operands[0]), tuple(sorted(integers(op, "dimensions"))))

    @cached_property
    def extents(self) -> tuple[Extent, ...]:
        """The merged dimensions, major ones first; none if the array has one element."""
        found: list[Extent] = []
        for i, size in enumerate(self.shape):
            if size == 1:
                continue
            reduced = i in self.dimensions
            if found and found[-1].reduced == reduced:
                found[-1] = Extent(found[-1].size * size, reduced, (*found[-1].dimensions, i))
            else:
                found.append(Extent(size, reduced, (i,)))
        return tuple(found)

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The sizes of the kept extents."""
        return tuple(extent.size for extent in self.extents if not extent.reduced)

    @cached_property
    def reduced(self) -> tuple[int, ...]:
        """The sizes of the reduced extents."""
        return tuple(extent.size for extent in self.extents if extent.reduced)

    @property
    def is_rows(self) -> bool:
        """Whether the elements that are reduced into one result include neighbours in memory."""
        return bool(self.extents) and self.extents[-1].reduced

    @property
    def elements(self) -> int:
        """The number of elements of the array."""
        return math.prod(self.shape)

    @property
    def results(self) -> int:
        """The number of results."""
        return math.prod(self.kept)

    @property
    def per_result(self) -> int:
        """The number of elements reduced into one result."""
        return math.prod(self.reduced)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(size for i, size in enumerate(self.shape) if i not in self.dimensions)

    @cached_property
    def row_map(self) -> IndexingMap:
        """The map from the indices of an element to those of the result that it is reduced into."""
        indices = tuple(dim(i) for i in range(len(self.shape)) if i not in self.dimensions)
        return IndexingMap(ranges(self.shape), (), indices).simplify()

    def row_map_of(self, shape: tuple[int, ...]) -> IndexingMap:
        """Return `row_map` for the array reshaped to ``shape``, given by the indices there."""
        return self.row_map if shape == self.shape else reshape_map(shape, self.shape).compose(self.row_map).simplify()

    def indices(self, kept: Sequence[AffineExpr], reduced: Sequence[AffineExpr]) -> tuple[AffineExpr, ...]:
        """Return the array's indices, given one for each kept and for each reduced extent."""
        found = [constant(0)] * len(self.shape)
        given = {False: iter(kept), True: iter(reduced)}
        for extent in self.extents:
            sizes = [self.shape[i] for i in extent.dimensions]
            position = next(given[extent.reduced])
            for i, index in zip(extent.dimensions, delinearize(position, sizes), strict=True):
                found[i] = index
        return tuple(found)


@lru_cache(maxsize=1024)
def _reduction(shape: tuple[int, ...], dimensions: tuple[int, ...]) -> ReductionShape:
    """Return one object for all equal shapes, which are asked again and again for their extents."""
    return ReductionShape(shape, dimensions)
