"""What is known of a fusion that is attention before it is scheduled: the maps of its tiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.attention import DOT, Attention, attention_of, is_wide, keeps_numbers
from xgpu.analysis.attention.factors import Factored, factored
from xgpu.analysis.attention.visible_keys import VisibleKeys, visible_keys
from xgpu.dialects.chain import CHAIN
from xgpu.dtypes import DType
from xgpu.emit.base import Fusion
from xgpu.hlo.tensor_cores import product_problem
from xgpu.indexing.access import ranges, shape_of
from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim, linearize, symbol
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.product_maps import ROW_BYTES
from xgpu.indexing.tiles.tensor_views import TensorView, tensor_view
from xgpu.structure import body_of, defining_op, dtype_of, producer

ELEMENT_BYTES = 2
"""The bytes of an element of what is multiplied."""
PANEL = ROW_BYTES // ELEMENT_BYTES
"""Elements of a row of shared memory: of what matrices are wide is a multiple."""
MOST_COLUMNS = 256
MOVED = ("stablehlo.transpose", "stablehlo.reshape", "stablehlo.convert")
"""What may follow the second product in a chain: each element of the result is one of its own."""


@dataclass(frozen=True)
class AttentionTiles:
    """The maps of tiles of attention, of ``rows`` rows and ``keys`` keys, from (batch, tile of rows, 0, step)."""

    attention: Attention
    rows: int
    keys: int

    @property
    def width(self) -> int:
        """The contracted elements of the tiles of the first product."""
        return -(-self.attention.width // PANEL) * PANEL

    @property
    def columns(self) -> int:
        """The columns of the tiles of the result."""
        return -(-self.attention.columns // PANEL) * PANEL

    @property
    def grid(self) -> tuple[int, int, int]:
        """How many tiles of the result there are."""
        return self.attention.batch, -(-self.attention.rows // self.rows), 1

    @property
    def steps(self) -> int:
        """How many tiles of keys there are."""
        return -(-self.attention.keys // self.keys)

    @property
    def weights(self) -> IndexingMap:
        """The map of a tile of the weights, rows x keys."""
        row, key = self._row(symbol(0)), self._key(symbol(1))
        return self._made(self._weights(row, key), (self.rows, self.keys), [self._row_bound(row), self._key_bound(key)])

    @property
    def queries(self) -> IndexingMap:
        """The map of a tile of the queries, rows x contracted, which is that of all steps."""
        row = self._row(symbol(0))
        map_ = self.attention.operand_map(self.attention.query)
        results = self._operand(map_, self._weights(row, dim(3)), symbol(1))
        return self._made(results, (self.rows, self.width), [self._row_bound(row), self._width_bound(symbol(1))], 3)

    @property
    def key_rows(self) -> IndexingMap:
        """The map of a tile of the keys, contracted x keys."""
        key = self._key(symbol(1))
        map_ = self.attention.operand_map(1 - self.attention.query)
        results = self._operand(map_, self._weights(dim(1), key), symbol(0))
        return self._made(results, (self.width, self.keys), [self._width_bound(symbol(0)), self._key_bound(key)])

    @property
    def values(self) -> IndexingMap:
        """The map of a tile of the values, keys x columns."""
        key, column = self._key(symbol(0)), symbol(1)
        results = self.attention.value_indices(self._weights(dim(1), key), column)
        bounds = [self._key_bound(key), self._column_bound(column)]
        return self._made(results, (self.keys, self.columns), bounds)

    @property
    def sums(self) -> IndexingMap:
        """The map of a tile of the second product, rows x columns."""
        row, column = self._row(symbol(0)), symbol(1)
        results = self.attention.result_indices(self._weights(row, dim(3)), column)
        return self._made(results, (self.rows, self.columns), [self._row_bound(row), self._column_bound(column)], 3)

    @property
    def key_numbers(self) -> IndexingMap:
        """The map of a tile of the weights to the numbers of its keys."""
        return self._made([self._key(symbol(1))], (self.rows, self.keys), [])

    def visible(self, keys: VisibleKeys) -> IndexingMap:
        """The map from a block's numbers to the first step that its rows see, and the one after the last."""
        first, end = constant(0), constant(self.steps)
        if keys.before is not None:
            before = min(keys.before, self.attention.rows + self.attention.keys)
            skipped = max(-(-before // self.keys), 0)
            first = (dim(1) * self.rows - before + skipped * self.keys) // self.keys - skipped
        if keys.after is not None:
            after = max(keys.after, 1 - self.rows)
            end = (dim(1) * self.rows + (self.rows - 1 + after)) // self.keys + 1
        return IndexingMap(ranges(self.grid), (), (first, end)).with_simple_results()

    def result(self, value: ir.Value) -> IndexingMap:
        """The map of a tile of what a chain returns: what `MOVED` makes of the second product."""
        moves = []
        while value != self.attention.second.results[0]:
            op = producer(value)
            moves.append(op)
            value = op.operands[0]
        map_ = self.sums
        for op in reversed(moves):
            map_ = IndexingMap(map_.dims, map_.symbols, tuple(_moved(op, map_.results)), map_.constraints)
        return map_.with_simple_results()

    def _row(self, inside: AffineExpr) -> AffineExpr:
        return dim(1) * self.rows + inside

    def _key(self, inside: AffineExpr) -> AffineExpr:
        return dim(3) * self.keys + inside

    def _weights(self, row: AffineExpr, key: AffineExpr) -> list[AffineExpr]:
        """Return the indices of weights in the matrix of the block."""
        attention = self.attention
        others = delinearize(dim(0), tuple(attention.shape[number] for number in attention.others))
        found = {attention.row: row, attention.key: key, **dict(zip(attention.others, others, strict=True))}
        return [found[number] for number in range(len(attention.shape))]

    @staticmethod
    def _operand(map_: IndexingMap, weights: Sequence[AffineExpr], contracted: AffineExpr) -> list[AffineExpr]:
        return [each.substitute(list(weights), [contracted]) for each in map_.results]

    def _row_bound(self, row: AffineExpr) -> tuple[AffineExpr, int, int]:
        return row, self.attention.rows, self.rows

    def _key_bound(self, key: AffineExpr) -> tuple[AffineExpr, int, int]:
        return key, self.attention.keys, self.keys

    def _width_bound(self, position: AffineExpr) -> tuple[AffineExpr, int, int]:
        return position, self.attention.width, self.width

    def _column_bound(self, column: AffineExpr) -> tuple[AffineExpr, int, int]:
        return column, self.attention.columns, self.columns

    def _made(
        self,
        results: Sequence[AffineExpr],
        shape: tuple[int, int],
        bounds: Sequence[tuple[AffineExpr, int, int]],
        numbers: int = 4,
    ) -> IndexingMap:
        """Return a map of tiles: of each bound, an expression is below a size, of which tiles have ``step`` each."""
        dims = ranges((*self.grid, self.steps)[:numbers])
        constraints = tuple((each, Interval(0, size - 1)) for each, size, step in bounds if size % step)
        return IndexingMap(dims, ranges(shape), tuple(results), constraints).with_simple_results()


def _moved(op: ir.Operation, indices: Sequence[AffineExpr]) -> list[AffineExpr]:
    """Return where an operation of `MOVED` puts the element at some indices of its operand."""
    if op.name == "stablehlo.reshape":
        position = linearize(indices, shape_of(op.operands[0]))
        return list(delinearize(position, shape_of(op.results[0])))
    sources = accesses(op)[0].map.results
    found: dict[int, AffineExpr] = {}
    for index, source in zip(indices, sources, strict=True):
        (number,) = source.variables()[0]
        found[number] = index
    return [found[number] for number in range(len(indices))]


@dataclass(frozen=True)
class AttentionFacts:
    """A fusion of one chain that is attention."""

    fusion: Fusion

    @property
    def chain(self) -> ir.Operation:
        """The operation."""
        return self.fusion.heroes[0]

    @cached_property
    def attention(self) -> Attention:
        """What it computes."""
        found = chained_attention(self.chain)
        assert found is not None
        return found

    @property
    def dtype(self) -> DType:
        """The type of what is multiplied."""
        return dtype_of(self.attention.weights)

    @cached_property
    def visible(self) -> VisibleKeys | None:
        """Which keys rows see, where a mask says so."""
        return visible_keys(self.attention)

    @cached_property
    def factored(self) -> Factored | None:
        """The factor of the logits that is left to the exponential."""
        return factored(self.attention.softmax)

    def tiles(self, rows: int, keys: int) -> AttentionTiles:
        """Return the maps of tiles of some rows and keys."""
        return AttentionTiles(self.attention, rows, keys)


def chained_attention(chain: ir.Operation) -> Attention | None:
    """Return the attention that a chain computes, and then only moves; None if it computes something else."""
    if chain.name != CHAIN:
        return None
    *_, end = body_of(chain).operations
    op = defining_op(end.operation.operands[0])
    while op is not None and op.name in MOVED and keeps_numbers(op):
        op = defining_op(op.operands[0])
    return None if op is None or op.name != DOT else attention_of(op)


def attention_problem(attention: Attention, result: ir.Value, arrays: dict[ir.Value, ir.Value]) -> str | None:
    """Return why no kernel computes attention of operands that are ``arrays``, or made of them; None if one does.

    ``arrays`` has the values that are in memory, ``result`` is what is stored.
    """
    types = {dtype_of(each).hlo for each in (*attention.first.operands, *attention.second.operands)}
    if types not in ({"bf16"}, {"f16"}):
        return f"expected operands of bf16 or of f16, got {', '.join(sorted(types))}"
    for product in (attention.first, attention.second):
        if problem := product_problem(product):
            return problem
        if not is_wide(product.results[0]):
            return f"expected products of 16 bits or more, got {dtype_of(product.results[0])}"
    if dtype_of(result).hlo not in types:
        return f"expected a result of {types.pop()}, got {dtype_of(result)}"
    if not all((attention.batch, attention.rows, attention.keys, attention.width, attention.columns)):
        return "expected operands with elements"
    if max(attention.width, attention.columns) > MOST_COLUMNS:
        return f"expected rows of at most {MOST_COLUMNS} elements"
    tiles = AttentionTiles(attention, PANEL, PANEL)
    wanted = (
        ("queries", attention.queries, tiles.queries),
        ("keys", attention.key_rows, tiles.key_rows),
        ("values", attention.values, tiles.values),
    )
    for name, value, map_ in wanted:
        view = operand_view(value, map_, arrays)
        if isinstance(view, str):
            return f"expected {name} that can be copied as boxes, but {view}"
    view = tensor_view(tiles.result(result), shape_of(result), ELEMENT_BYTES, ROW_BYTES)
    if isinstance(view, str) or view.inner != 1:
        return f"expected a result that can be copied as boxes, but {view}"
    return None


def operand_view(value: ir.Value, map_: IndexingMap, arrays: dict[ir.Value, ir.Value]) -> TensorView | str:
    """Return how tiles of a value are copied from the array in memory that it is moved from."""
    while value not in arrays:
        op = defining_op(value)
        if op is None or op.name == "stablehlo.convert" or len(op.operands) != 1:
            return "they are computed"
        (access,) = accesses(op)
        map_ = IndexingMap(
            map_.dims, map_.symbols, map_.compose(access.map).results, map_.constraints
        ).with_simple_results()
        value = op.operands[0]
    return tensor_view(map_, shape_of(value), ELEMENT_BYTES, ROW_BYTES)
