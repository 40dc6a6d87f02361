"""Products that add up rows of an array, each times a computed factor: the roles of their operands."""

from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass


@dataclass(frozen=True)
class Weighted:
    """A ``product`` whose operand of number ``weight`` has the factors of rows of the other one."""

    product: ir.Operation
    weight: int

    @property
    def weights(self) -> ir.Value:
        """The factors."""
        return self.product.operands[self.weight]

    @property
    def values(self) -> ir.Value:
        """The array whose rows are added up."""
        return self.product.operands[1 - self.weight]

    @cached_property
    def column(self) -> int:
        """The only dimension of the result that the weights have not, -1 if there are others."""
        used = {number for each in self._map.results for number in each.variables()[0]}
        rest = [number for number in range(len(shape_of(self.product.results[0]))) if number not in used]
        return rest[0] if len(rest) == 1 else -1

    @property
    def columns(self) -> int:
        """The elements of a row."""
        return shape_of(self.product.results[0])[self.column]

    @cached_property
    def contracted(self) -> tuple[int, ...]:
        """The dimensions of the weights along which rows are added up."""
        return tuple(number for number, each in enumerate(self._map.results) if each.variables()[1])

    @cached_property
    def shared(self) -> frozenset[int]:
        """The dimensions of the result that the values have, too: the column, and those of a batch."""
        map_ = accesses(self.product)[1 - self.weight].map
        return frozenset(number for each in map_.results for number in each.variables()[0])

    @cached_property
    def free(self) -> tuple[int, ...]:
        """The dimensions of the weights that the values do not have."""
        return tuple(
            number
            for number, each in enumerate(self._map.results)
            if number not in self.contracted and not each.variables()[0] <= self.shared
        )

    def result_indices(self, weights: Sequence[AffineExpr], column: AffineExpr) -> list[AffineExpr]:
        """Return the indices of the result, given those of the weights and the column."""
        found = {self.column: column}
        for number, each in enumerate(self._map.results):
            if number not in self.contracted:
                (position,) = each.variables()[0]
                found[position] = weights[number]
        return [found[number] for number in range(len(found))]

    def value_indices(self, weights: Sequence[AffineExpr], column: AffineExpr) -> list[AffineExpr]:
        """Return the indices of the value that a weight is multiplied by for a column of the result."""
        indices = self.result_indices(weights, column)
        contracted = {}
        for number in self.contracted:
            (position,) = self._map.results[number].variables()[1]
            contracted[position] = weights[number]
        symbols = [contracted[number] for number in range(len(contracted))]
        map_ = accesses(self.product)[1 - self.weight].map
        return [each.substitute(indices, symbols) for each in map_.results]

    @property
    def _map(self) -> IndexingMap:
        return accesses(self.product)[self.weight].map
