"""Facts of a fusion that is attention, before it is scheduled: the maps of its tiles."""

import math
from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.attention import Attention, attention_of
from xgpu.analysis.attention.chained_sums import SumSpace, moved_from
from xgpu.analysis.attention.factors import Factored, factored
from xgpu.analysis.attention.places import DOT, is_wide
from xgpu.analysis.attention.visible_keys import KeyEnd, VisibleKeys, key_ends, visible_keys
from xgpu.costs.attention import AttentionSizes
from xgpu.dialects.chain import CHAIN, returned
from xgpu.dtypes import DType
from xgpu.emit.base import Fusion
from xgpu.emit.families.attention.sources import TileSource, is_read
from xgpu.emit.families.attention.tiles import FULL, MOST_ROW_BYTES, Bound, StepTiles, moved_map
from xgpu.hlo.tensor_cores import product_problem
from xgpu.indexing.access import ranges, shape_of
from xgpu.indexing.affine import AffineExpr, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.indexing.tiles.product_maps import ROW_BYTES, order_problem
from xgpu.indexing.tiles.tensor_views import TensorView, tensor_view
from xgpu.records import dataclass
from xgpu.structure import body_of, defining_op, dtype_of

_MOST_NARROW, _NARROW_BITS = 576, 16
"""The elements of the longest queries of so many bits: those of a compressed cache, 512 and 64 that have positions."""


@dataclass(frozen=True)
class AttentionTiles(StepTiles):
    """The maps of tiles of attention, of ``rows`` rows and ``keys`` keys, from (batch, tile of rows, 0, step)."""

    attention: Attention
    rows: int
    keys: int

    @cached_property
    def space(self) -> SumSpace:
        """The indices of the weights."""
        attention = self.attention
        return SumSpace(attention.shape, attention.row, attention.key, (), tuple(attention.others))

    @property
    def element_bytes(self) -> int:
        """The bytes of an element of queries, keys, values and weights."""
        return self.attention.element_bytes

    @property
    def width(self) -> int:
        """The contracted elements of the tiles of the first product."""
        return self.row_elements(self.attention.width)

    @property
    def columns(self) -> int:
        """The columns of the tiles of the result."""
        return self.row_elements(self.attention.columns)

    @property
    def weights(self) -> IndexingMap:
        """The map of a tile of the weights, rows x keys."""
        row, key = self.row(symbol(0)), self.key(symbol(1))
        return self.made(self.indices(row, key), (self.rows, self.keys), [self.row_bound(row), self.key_bound(key)])

    @property
    def key_numbers(self) -> IndexingMap:
        """The map of a tile of the weights to the numbers of its keys, of those of all parts."""
        number, _ = self.attention.key_bound
        indices = self.indices(dim(1), self.key(symbol(1)))
        return self.made([number.substitute(indices)], (self.rows, self.keys), [])

    @property
    def has_beyond(self) -> bool:
        """Whether tiles have keys beyond the last one."""
        return bool(self.attention.softmax.within) or self.attention.keys % self.keys != 0

    def key_bound(self, key: AffineExpr) -> Bound:
        """Return the bound of keys: of those of all parts, if the last part has room for more than there are."""
        if not self.attention.softmax.within:
            return super().key_bound(key)
        number, count = self.attention.key_bound
        return (
            number.substitute(self.indices(dim(1), key)),
            count,
            number.interval(ranges(self.attention.shape)).upper + 1,
        )

    @property
    def queries(self) -> IndexingMap:
        """The map of a tile of the queries, rows x contracted, which is that of all steps."""
        row = self.row(symbol(0))
        map_ = self.attention.operand_map(self.attention.query)
        results = self._operand(map_, self.indices(row, dim(3)), symbol(1))
        return self.made(results, (self.rows, self.width), [self.row_bound(row), self._width_bound(symbol(1))], 3)

    @property
    def key_rows(self) -> IndexingMap:
        """The map of a tile of the keys, contracted x keys."""
        key = self.key(symbol(1))
        map_ = self.attention.operand_map(1 - self.attention.query)
        results = self._operand(map_, self.indices(dim(1), key), symbol(0))
        return self.made(results, (self.width, self.keys), [self._width_bound(symbol(0)), self.key_bound(key)])

    @property
    def values(self) -> IndexingMap:
        """The map of a tile of the values, keys x columns."""
        key, column = self.key(symbol(0)), symbol(1)
        results = self.attention.sums.value_indices(self.indices(dim(1), key), column)
        bounds = [self.key_bound(key), self._column_bound(column)]
        return self.made(results, (self.keys, self.columns), bounds)

    @property
    def sums(self) -> IndexingMap:
        """The map of a tile of the second product, rows x columns."""
        row, column = self.row(symbol(0)), symbol(1)
        results = self.attention.sums.result_indices(self.indices(row, dim(3)), column)
        return self.made(results, (self.rows, self.columns), [self.row_bound(row), self._column_bound(column)], 3)

    def result(self, value: ir.Value) -> IndexingMap:
        """The map of a tile of the chain's result, the moved result of the second product."""
        return moved_map(self.sums, value, self.attention.second.results[0])

    def stored(self, value: ir.Value) -> IndexingMap:
        """The map of a tile that the chain stores: of its result, or of a reduction of the softmax for each row."""
        if value not in self.attention.row_values:
            return self.result(value)
        return self.of_rows(self.attention.row_values[value])

    def of_rows(self, map_: IndexingMap) -> IndexingMap:
        """The map of a tile of a value of each row, given the map from the weights' indices."""
        row = self.row(symbol(0))
        indices = self.indices(row, dim(3))
        results = [each.substitute(indices) for each in map_.results]
        return self.made(results, (self.rows,), [self.row_bound(row)], 3)

    @staticmethod
    def _operand(map_: IndexingMap, weights: Sequence[AffineExpr], contracted: AffineExpr) -> list[AffineExpr]:
        return [each.substitute(list(weights), [contracted]) for each in map_.results]

    def _width_bound(self, position: AffineExpr) -> Bound:
        return position, self.attention.width, self.width

    def _column_bound(self, column: AffineExpr) -> Bound:
        return column, self.attention.columns, self.columns


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
        """The attention that the fusion computes."""
        found = chained_attention(self.chain)
        assert found is not None
        return found

    @property
    def dtype(self) -> DType:
        """The type of what is multiplied."""
        return dtype_of(self.attention.weights)

    @cached_property
    def visible(self) -> VisibleKeys | None:
        """The keys that rows see, where a mask says so."""
        return visible_keys(self.attention)

    @cached_property
    def ends(self) -> list[KeyEnd]:
        """The ends of keys, as lengths say that are read."""
        arrays = set(body_of(self.chain).arguments)
        return [each for each in self._lengths[1] if is_read(each.value, each.map, arrays)]

    @cached_property
    def hidden(self) -> float:
        """The logits of keys that rows do not see."""
        return self._lengths[0] if self.visible is None else self.visible.hidden

    @cached_property
    def _lengths(self) -> tuple[float, list[KeyEnd]]:
        return key_ends(self.attention) or (-math.inf, [])

    @property
    def skips(self) -> bool:
        """Whether steps are left out, and tiles are in pairs then."""
        return self.visible is not None or bool(self.ends)

    @cached_property
    def factored(self) -> Factored:
        """The factor of the logits that is left to the exponential."""
        return factored(self.attention.softmax)

    @cached_property
    def has_adjacent_keys(self) -> bool:
        """Whether keys, or their values, are such that neighbours in memory are of different keys."""
        tiles, region = self.tiles(WARPGROUP_ROWS, WARPGROUP_ROWS), body_of(self.chain).arguments
        arrays: dict[ir.Value, ir.Value] = {argument: argument for argument in region}
        wanted = ((self.attention.key_rows, tiles.key_rows, 1), (self.attention.values, tiles.values, 0))
        sources = [(TileSource.of(value, map_, arrays), number) for value, map_, number in wanted]
        views = [(source.view(), number) for source, number in sources if source is not None]
        return any(isinstance(view, TensorView) and view.inner == number for view, number in views)

    def copies_problem(self, rows: int, keys: int) -> str | None:
        """Return why tiles of so many rows and keys cannot be copied as boxes; None if they can."""
        if (rows, keys) not in self._copies_problems:
            arrays: dict[ir.Value, ir.Value] = {argument: argument for argument in body_of(self.chain).arguments}
            found = _copies_problem(self.tiles(rows, keys), returned(self.chain)[0], arrays)
            self._copies_problems[rows, keys] = found
        return self._copies_problems[rows, keys]

    @cached_property
    def _copies_problems(self) -> dict[tuple[int, int], str | None]:
        return {}

    def tiles(self, rows: int, keys: int) -> AttentionTiles:
        """Return the maps of tiles of some rows and keys."""
        return AttentionTiles(self.attention, rows, keys)


def most_columns(attention: Attention) -> int:
    """Return how many columns one kernel has at most."""
    return MOST_ROW_BYTES // attention.element_bytes


def _most_elements(attention: Attention) -> int:
    """Return how many elements of queries and keys are multiplied at most: what there is shared memory for."""
    return _MOST_NARROW if dtype_of(attention.queries).bits == _NARROW_BITS else most_columns(attention)


def sizes_of(attention: Attention) -> AttentionSizes:
    """Return what its time depends on."""
    sizes = attention.batch, attention.rows, attention.keys, attention.width, attention.columns
    return AttentionSizes(*sizes, attention.element_bytes, attention.instructions)


def chained_attention(chain: ir.Operation) -> Attention | None:
    """Return the attention that a chain computes, and then only moves; None if it computes something else.

    Beside that a chain may return the reductions of the softmax.
    """
    if chain.name != CHAIN:
        return None
    first, *others = returned(chain)
    op = defining_op(moved_from(first))
    attention = None if op is None or op.name != DOT else attention_of(op)
    return None if attention is None or any(each not in attention.row_values for each in others) else attention


def chain_problem(chain: ir.Operation) -> str | None:
    """Return why no kernel computes a chain that is to be attention; None if one does."""
    attention = chained_attention(chain)
    if attention is None:
        return "its products are not found to be attention"
    arrays: dict[ir.Value, ir.Value] = {argument: argument for argument in body_of(chain).arguments}
    return attention_problem(attention, returned(chain)[0], arrays)


def attention_problem(attention: Attention, result: ir.Value, arrays: dict[ir.Value, ir.Value]) -> str | None:
    """Return why no kernel computes attention of operands that are ``arrays``, or made of them; None if one does.

    ``arrays`` has the values that are in memory, ``result`` is what is stored.
    """
    types = {dtype_of(each).hlo for each in (*attention.first.operands, *attention.second.operands)}
    if types not in ({"bf16"}, {"f16"}, {FULL}):
        return f"expected operands of bf16, of f16 or of {FULL}, got {', '.join(sorted(types))}"
    if types == {"f16"} and attention.softmax.factors.others:
        return "expected weights of f16 without factors but numbers and conditions: they may be 2^8 times as large"
    for product in (attention.first, attention.second):
        if problem := product_problem(product):
            return problem
        if not is_wide(product.results[0]):
            return f"expected products of 16 bits or more, got {dtype_of(product.results[0])}"
    if dtype_of(result).hlo not in (*types, FULL):
        return f"expected a result of {types.pop()} or {FULL}, got {dtype_of(result)}"
    if not all((attention.batch, attention.rows, attention.keys, attention.width, attention.columns)):
        return "expected operands with elements"
    for elements, most in ((attention.columns, most_columns(attention)), (attention.width, _most_elements(attention))):
        if elements > most:
            return f"expected rows of at most {most} elements, got {elements}"
    problem = _copies_problem(AttentionTiles(attention, WARPGROUP_ROWS, WARPGROUP_ROWS), result, arrays)
    return None if problem is None else f"expected operands and a result that can be copied as boxes, but {problem}"


def _copies_problem(tiles: AttentionTiles, result: ir.Value, arrays: dict[ir.Value, ir.Value]) -> str | None:
    """Return which of some tiles cannot be copied as boxes, and why; None if all can be."""
    attention = tiles.attention
    wanted = (
        ("queries", attention.queries, tiles.queries, 0),
        ("keys", attention.key_rows, tiles.key_rows, 1),
        ("values", attention.values, tiles.values, 1),
    )
    for name, value, map_, number in wanted:
        source = TileSource.of(value, map_, arrays)
        view = "computed" if source is None else source.view()
        if isinstance(view, str):
            return f"{name}: {view}"
        if problem := order_problem(view, number, dtype_of(value)):
            return f"{name}: {problem}"
    if dtype_of(result).hlo == FULL:
        return None
    view = tensor_view(tiles.result(result), shape_of(result), attention.element_bytes, ROW_BYTES)
    if isinstance(view, str) or view.inner != 1:
        return f"the result: {view}"
    return None
