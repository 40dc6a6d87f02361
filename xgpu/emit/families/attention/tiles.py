"""The maps of tiles of a chain of products, from the numbers of a block and a step to the indices of arrays."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod

from xgpu import ir
from xgpu.analysis.attention.chained_sums import SumSpace
from xgpu.analysis.attention.visible_keys import KeyEnd, VisibleKeys
from xgpu.indexing.access import ranges, shape_of
from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim, linearize, symbol
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.product_maps import ROW_BYTES
from xgpu.structure import producer

MOST_ROW_BYTES = 512
"""The bytes of the longest rows that are multiplied."""
FULL = "f32"
"""The type of products and their sums, whatever types the program has there."""
Bound = tuple[AffineExpr, int, int]
"""An index, how many there are of it, and how many of these a tile has."""


class StepTiles(ABC):
    """Tiles of a block's ``rows`` rows and of a step's ``keys`` keys, from (batch, tile of rows, 0, step)."""

    rows: int
    keys: int

    @property
    @abstractmethod
    def element_bytes(self) -> int:
        """The bytes of an element of what is multiplied."""

    @property
    @abstractmethod
    def space(self) -> SumSpace:
        """The indices of what is computed between products."""

    @property
    def batch(self) -> int:
        """The number of independent chains."""
        return prod(self.space.shape[number] for number in self.space.others)

    @property
    def grid(self) -> tuple[int, int, int]:
        """The number of tiles of the result."""
        return self.batch, -(-self.space.shape[self.space.resident] // self.rows), 1

    @property
    def steps(self) -> int:
        """The number of a block's steps."""
        return -(-self.space.shape[self.space.stepped] // self.keys) * self._turns

    @property
    def key_numbers(self) -> IndexingMap:
        """The map of a tile of the weights to the numbers of its keys."""
        return self.made([self.key(symbol(1))], (self.rows, self.keys), [])

    def visible(self, keys: VisibleKeys) -> IndexingMap:
        """The map from a block's numbers to the first step that its rows see, and the one after the last."""
        rows, count = (self.space.shape[each] for each in (self.space.resident, self.space.stepped))
        first, end = constant(0), constant(-(-count // self.keys))
        if keys.before is not None:
            before = min(keys.before, rows + count)
            skipped = max(-(-before // self.keys), 0)
            first = (dim(1) * self.rows - before + skipped * self.keys) // self.keys - skipped
        if keys.after is not None:
            after = max(keys.after, 1 - self.rows)
            end = (dim(1) * self.rows + (self.rows - 1 + after)) // self.keys + 1
        results = (first * self._turns, end * self._turns)
        return IndexingMap(ranges(self.grid), (), results).with_simple_results()

    def with_ends(self, visible: IndexingMap | None, ends: Sequence[KeyEnd]) -> IndexingMap:
        """The same map, with more ends: for each the step after the last of the keys before a number that is read."""
        whole = IndexingMap(ranges(self.grid), (), (constant(0), constant(self.steps))) if visible is None else visible
        dims, results = list(whole.dims), list(whole.results)
        indices = self.indices(constant(0), constant(0))
        for each in ends:
            keys = dim(len(dims)) - each.offset.substitute(indices)
            results.append((keys + (self.keys - 1)) // self.keys * self._turns)
            dims.append(Interval(0, each.most))
        return IndexingMap(tuple(dims), (), tuple(results)).with_simple_results()

    def limit(self, end: KeyEnd) -> IndexingMap:
        """The map from a block's numbers to where such a number is read."""
        indices = self.indices(constant(0), constant(0))
        results = tuple(each.substitute(indices) for each in end.map.results)
        return IndexingMap(ranges(self.grid), (), results).with_simple_results()

    def row(self, inside: AffineExpr) -> AffineExpr:
        """Return the index of a row, given that in the tile."""
        return dim(1) * self.rows + inside

    def key(self, inside: AffineExpr) -> AffineExpr:
        """Return the index of a key, given that in the tile."""
        return dim(3) // self._turns * self.keys + inside

    def indices(self, row: AffineExpr, key: AffineExpr) -> list[AffineExpr]:
        """Return the indices of the space in the chain of the block, and in the step."""
        space = self.space
        others = delinearize(dim(0), tuple(space.shape[number] for number in space.others))
        loops = delinearize(dim(3) % self._turns, tuple(space.shape[number] for number in space.loops))
        found = {space.resident: row, space.stepped: key}
        found |= dict(zip((*space.others, *space.loops), (*others, *loops), strict=True))
        return [found[number] for number in range(len(space.shape))]

    def row_bound(self, row: AffineExpr) -> Bound:
        """Return the bound of rows."""
        return row, self.space.shape[self.space.resident], self.rows

    def key_bound(self, key: AffineExpr) -> Bound:
        """Return the bound of keys."""
        return key, self.space.shape[self.space.stepped], self.keys

    def made(
        self, results: Sequence[AffineExpr], shape: tuple[int, ...], bounds: Sequence[Bound], numbers: int = 4
    ) -> IndexingMap:
        """Return a map of tiles of so many numbers; of each bound indices are left out where tiles end beyond."""
        dims = ranges((*self.grid, self.steps)[:numbers])
        constraints = tuple((each, Interval(0, size - 1)) for each, size, step in bounds if size % step)
        return IndexingMap(dims, ranges(shape), tuple(results), constraints).with_simple_results()

    def row_elements(self, elements: int) -> int:
        """Return how many elements a row of a tile has that has some: those of whole rows of shared memory."""
        panel = panel_of(self.element_bytes)
        return -(-elements // panel) * panel

    @property
    def _turns(self) -> int:
        """Steps that have the same keys."""
        return prod(self.space.shape[number] for number in self.space.loops)


def panel_of(element_bytes: int) -> int:
    """Return how many elements a row of shared memory has: of what matrices are wide is a multiple."""
    return ROW_BYTES // element_bytes


def moved_map(map_: IndexingMap, value: ir.Value, start: ir.Value) -> IndexingMap:
    """Return the map of a tile of what ``value`` has moved of ``start``, of whose tile ``map_`` is."""
    moves = []
    while value != start:
        op = producer(value)
        moves.append(op)
        value = op.operands[0]
    for op in reversed(moves):
        map_ = IndexingMap(map_.dims, map_.symbols, tuple(_moved(op, map_.results)), map_.constraints)
    return map_.with_simple_results()


def _moved(op: ir.Operation, indices: Sequence[AffineExpr]) -> list[AffineExpr]:
    """Return where an operation that moves elements puts the one at some indices of its operand."""
    if op.name == "stablehlo.reshape":
        position = linearize(indices, shape_of(op.operands[0]))
        return list(delinearize(position, shape_of(op.results[0])))
    sources = accesses(op)[0].map.results
    found: dict[int, AffineExpr] = {}
    for index, source in zip(indices, sources, strict=True):
        (number,) = source.variables()[0]
        found[number] = index
    return [found[number] for number in range(len(indices))]
