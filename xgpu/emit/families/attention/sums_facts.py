"""Facts of a fusion that is a chain of sums, before it is scheduled: the maps of its tiles."""

from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.chained_sums import (
    ArrayProduct,
    ChainedSums,
    ComputedElements,
    ComputedSum,
    SumSpace,
    chained_sums,
)
from xgpu.analysis.attention.places import is_wide
from xgpu.analysis.attention.vanishing import steps_seen
from xgpu.analysis.attention.visible_keys import VisibleKeys
from xgpu.dialects.chain import returned
from xgpu.emit.base import Fusion
from xgpu.emit.families.attention.schedule import ChainSizes
from xgpu.emit.families.attention.sources import in_memory, operand_view
from xgpu.emit.families.attention.tiles import FULL, MOST_ROW_BYTES, StepTiles, moved_map
from xgpu.hlo.tensor_cores import ALGORITHM, PRECISION, product_problem
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import AffineExpr, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.indexing.tiles.product_maps import ROW_BYTES, order_problem
from xgpu.indexing.tiles.tensor_views import TensorView, tensor_view
from xgpu.records import dataclass
from xgpu.structure import body_of, dtype_of

_STORED = ("bf16", "f16", FULL)
"""The types of elements that lanes write."""


@dataclass(frozen=True)
class SumsTiles(StepTiles):
    """The maps of tiles of a chain of sums, of ``rows`` rows and ``keys`` keys, from (batch, tile of rows, 0, step)."""

    chain: ChainedSums
    rows: int
    keys: int

    @property
    def element_bytes(self) -> int:
        """The bytes of an element of the first product's operands."""
        return self.chain.element_bytes

    @property
    def space(self) -> SumSpace:
        """The indices of the products of arrays."""
        return self.chain.space

    def left(self, product: ArrayProduct) -> IndexingMap:
        """The map of a tile of the operand that has the rows, rows x contracted."""
        row, width = self.row(symbol(0)), self.row_elements(product.width)
        results = self._operand(product.operand_map(0), self.indices(row, dim(1)), symbol(1))
        bounds = [self.row_bound(row), (symbol(1), product.width, width)]
        return self.made(results, (self.rows, width), bounds, 3)

    def right(self, product: ArrayProduct) -> IndexingMap:
        """The map of a tile of the operand that has the keys, contracted x keys."""
        key, width = self.key(symbol(1)), self.row_elements(product.width)
        results = self._operand(product.operand_map(1), self.indices(dim(1), key), symbol(0))
        bounds = [(symbol(0), product.width, width), self.key_bound(key)]
        return self.made(results, (width, self.keys), bounds)

    def weights(self, computed: ComputedSum) -> IndexingMap:
        """The map of a tile of the weights of a sum, rows x keys."""
        return self._computed(computed)

    def values(self, computed: ComputedSum) -> IndexingMap:
        """The map of a tile of the rows that are added up, columns x keys."""
        key, column, count = self.key(symbol(1)), symbol(0), computed.sums.columns
        results = computed.sums.value_indices(self._weights(computed, dim(1), key), column)
        bounds = [(column, count, self.row_elements(count)), self.key_bound(key)]
        return self.made(results, (self.row_elements(count), self.keys), bounds)

    def stored(self, computed: ComputedSum) -> IndexingMap:
        """The map of a tile, rows x columns, of the chain's result for a sum."""
        row, column, count = self.row(symbol(0)), symbol(1), computed.sums.columns
        results = computed.sums.result_indices(self._weights(computed, row, dim(1)), column)
        bounds = [self.row_bound(row), (column, count, self.row_elements(count))]
        map_ = self.made(results, (self.rows, self.row_elements(count)), bounds, 3)
        return moved_map(map_, computed.result, computed.sums.product.results[0])

    def elements(self, computed: ComputedElements) -> IndexingMap:
        """The map of a tile, rows x keys, of a result that a step computes element by element."""
        return self._computed(computed)

    def _computed(self, computed: ComputedSum | ComputedElements) -> IndexingMap:
        row, key = self.row(symbol(0)), self.key(symbol(1))
        results = self._weights(computed, row, key)
        return self.made(results, (self.rows, self.keys), [self.row_bound(row), self.key_bound(key)])

    def _weights(self, computed: ComputedSum | ComputedElements, row: AffineExpr, key: AffineExpr) -> list[AffineExpr]:
        indices = self.indices(row, key)
        return [each.substitute(indices) for each in computed.indices]

    @staticmethod
    def _operand(map_: IndexingMap, space: Sequence[AffineExpr], contracted: AffineExpr) -> list[AffineExpr]:
        return [each.substitute(list(space), [contracted]) for each in map_.results]


@dataclass(frozen=True)
class SumsFacts:
    """A fusion of one chain of sums."""

    fusion: Fusion

    @cached_property
    def chain(self) -> ChainedSums:
        """The chain that the fusion computes."""
        found = chained_sums(returned(self.op))
        assert isinstance(found, ChainedSums)
        return found

    @property
    def op(self) -> ir.Operation:
        """The operation."""
        return self.fusion.heroes[0]

    @cached_property
    def visible(self) -> VisibleKeys | None:
        """From where to where rows see what they are added up of, where a mask says so."""
        return steps_seen(self.chain)

    @cached_property
    def sizes(self) -> ChainSizes:
        """The sizes of its tiles."""
        return sizes_of(self.chain, self._arrays)

    @cached_property
    def has_adjacent_keys(self) -> bool:
        """Whether arrays that steps read have different keys for neighbours in memory."""
        return has_adjacent_keys(self.chain, self._arrays)

    def copies_problem(self, rows: int, keys: int) -> str | None:
        """Return why tiles of so many rows and keys cannot be copied as boxes; None if they can."""
        if (rows, keys) not in self._copies_problems:
            self._copies_problems[rows, keys] = _copies_problem(self.chain, self._arrays, rows, keys)
        return self._copies_problems[rows, keys]

    @cached_property
    def _copies_problems(self) -> dict[tuple[int, int], str | None]:
        return {}

    @property
    def _arrays(self) -> dict[ir.Value, ir.Value]:
        return {argument: argument for argument in body_of(self.op).arguments}


def sizes_of(chain: ChainedSums, arrays: dict[ir.Value, ir.Value]) -> ChainSizes:
    """Return the sizes of the tiles of a chain; those of a step that several products read count once."""
    found = dict.fromkeys(in_memory(*each, arrays, converts=True) for each in _read_by_steps(chain))
    fed = tuple(each[1].symbols[0].size for each in found if each is not None)
    tiles = SumsTiles(chain, WARPGROUP_ROWS, WARPGROUP_ROWS)
    fixed = tuple(tiles.row_elements(each.width) for each in chain.products)
    results = tuple(tiles.row_elements(each.sums.columns) for each in chain.sums)
    return ChainSizes(fixed, fed, results, len(chain.products), chain.element_bytes, len(chain.elements))


def has_adjacent_keys(chain: ChainedSums, arrays: dict[ir.Value, ir.Value]) -> bool:
    """Whether neighbours in memory of an array that steps read are of different keys, which are the tiles' columns."""
    found = [in_memory(*each, arrays, converts=True) for each in _read_by_steps(chain)]
    views = [operand_view(*each, arrays) for each in found if each is not None]
    return any(isinstance(view, TensorView) and view.inner == 1 for view in views)


def _read_by_steps(chain: ChainedSums) -> list[tuple[ir.Value, IndexingMap]]:
    """Return the arrays that each step has other tiles of, and the maps of these, whose columns are keys."""
    tiles = SumsTiles(chain, WARPGROUP_ROWS, WARPGROUP_ROWS)
    read = [(each.operand(1), tiles.right(each)) for each in chain.products]
    return read + [(each.sums.values, tiles.values(each)) for each in chain.sums]


def form_problem(chain: ChainedSums, arrays: dict[ir.Value, ir.Value]) -> str | None:
    """Return why no kernel computes a chain of sums of operands that are ``arrays``, or made of them."""
    types = {dtype_of(each.operand(number)).hlo for each in chain.products for number in range(2)}
    if types not in ({"bf16"}, {"f16"}, {FULL}):
        return f"expected operands of bf16, of f16 or of {FULL}, got {', '.join(sorted(types))}"
    (kind,) = types
    for product in chain.products:
        if problem := product_problem(product.op):
            return problem
        if not is_wide(product.result):
            return f"expected products of 16 bits or more, got {dtype_of(product.result)}"
    for computed in chain.sums:
        if problem := _rounding_problem(chain, computed, kind) or _result_problem(computed, kind):
            return problem
    for elements in chain.elements:
        if (got := dtype_of(elements.result).hlo) not in _STORED:
            return f"expected elements of {', '.join(_STORED)}, got {got}"
    widths = [each.width for each in chain.products] + [each.sums.columns for each in chain.sums]
    if not all((*chain.space.shape, *widths)):
        return "expected operands with elements"
    if max(widths) * chain.element_bytes > MOST_ROW_BYTES:
        return f"expected rows of at most {MOST_ROW_BYTES // chain.element_bytes} elements"
    return _copies_problem(chain, arrays, WARPGROUP_ROWS, WARPGROUP_ROWS)


def _rounding_problem(chain: ChainedSums, computed: ComputedSum, kind: str) -> str | None:
    """Return why weights, and what they are for, cannot be rounded to a type of 16 bits; None if they may be.

    They may if the program has them of that type, or says so by the product's algorithm. Weights of f32 may be rounded
    to bf16, which has its range, where the program has rounded a product to it that they are made of: that error, which
    is not made here, is of the same size.
    """
    product, of = computed.sums.product, dtype_of(computed.sums.weights).hlo
    if of == kind:
        return product_problem(product)
    if of != "f32" or dtype_of(computed.sums.values).hlo not in (kind, "f32"):
        return f"expected weights and rows of {kind} or f32, got {of} and {dtype_of(computed.sums.values)}"
    if ALGORITHM in product.attributes:
        algorithm = ir.stablehlo.DotAlgorithm(product.attributes[ALGORITHM])
        asked = {str(algorithm.lhs_precision_type), str(algorithm.rhs_precision_type)}
        counts = (algorithm.lhs_component_count, algorithm.rhs_component_count, algorithm.num_primitive_operations)
        is_asked = asked == {kind} and counts == (1, 1, 1) and str(algorithm.accumulation_type) == "f32"
        return None if is_asked else f"expected an algorithm of one product of {kind}"
    given = list(ir.ArrayAttr(product.attributes[PRECISION])) if PRECISION in product.attributes else []
    if any(ir.stablehlo.PrecisionAttr(each).value != "DEFAULT" for each in given):
        return "expected precision DEFAULT, with which weights may be rounded"
    if kind != "bf16" or not any(dtype_of(each.result).hlo == "bf16" for each in chain.products):
        return f"expected weights that may be rounded to {kind}, got f32"
    return None


def _result_problem(computed: ComputedSum, kind: str) -> str | None:
    if not is_wide(computed.sums.product.results[0]):
        return f"expected sums of 16 bits or more, got {dtype_of(computed.sums.product.results[0])}"
    got = dtype_of(computed.result).hlo
    return None if got == kind else f"expected a result of {kind}, got {got}"


def _copies_problem(chain: ChainedSums, arrays: dict[ir.Value, ir.Value], rows: int, keys: int) -> str | None:
    """Return which tile of so many rows or keys cannot be copied as boxes, and why; None if all can be."""
    tiles = SumsTiles(chain, rows, keys)
    wanted = []
    for each in chain.products:
        wanted += [(each.operand(0), tiles.left(each), 0), (each.operand(1), tiles.right(each), 1)]
    for value, map_, number in wanted:
        view = operand_view(value, map_, arrays)
        if isinstance(view, str):
            return f"expected operands that can be copied as boxes, but {view}"
        if problem := order_problem(view, number, dtype_of(value)):
            return problem
    for computed in chain.sums:
        found = in_memory(computed.sums.values, tiles.values(computed), arrays, converts=True)
        view = "they are computed" if found is None else operand_view(*found, arrays)
        if isinstance(view, str):
            return f"expected rows that can be copied as boxes, but {view}"
        if found is not None and (problem := order_problem(view, 0, dtype_of(found[0]))):
            return problem
        if dtype_of(computed.result).hlo == FULL:
            continue
        stored = tiles.stored(computed)
        view = tensor_view(stored, shape_of(computed.result), chain.element_bytes, ROW_BYTES)
        if isinstance(view, str) or view.inner != 1:
            return f"expected a result that can be copied as boxes, but {view}"
    return None
