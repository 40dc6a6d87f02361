"""Attention: rows of one product, a softmax of them, and the sums of other rows that it weights, a second product.

Found by what is computed, whatever moves elements on the way: every value between the products is followed by its
indexing map, and both reductions of the softmax must be of the very elements that they are then used for.
"""

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.places import DOT, SPREADS, Place, behind, is_tiled, number_of, then
from xgpu.analysis.attention.softmax import Softmax, find_softmax
from xgpu.analysis.attention.tiled_slices import Indices, tiled_slice
from xgpu.analysis.attention.weighted import Weighted
from xgpu.analysis.heroes import terms_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import backward_slice, captured, defining_op, dtype_of

_DIVIDE = "stablehlo.divide"
_LEAST_OF_FUNCTION = 8
"""Instructions from which on an operation is none that is hidden behind products."""


@dataclass(frozen=True)
class Attention:
    """A product ``second`` of weights that are a softmax of what is computed from a product ``first``.

    The weights are its operand ``weight``. All maps lead from their indices, among which ``row`` and ``key`` are the
    dimensions that tiles have; ``to_scores`` to the result of ``first``. Its operand ``query`` has the rows, the other
    one the keys.
    """

    second: ir.Operation
    weight: int
    first: ir.Operation
    softmax: Softmax
    to_scores: IndexingMap
    query: int
    row: int
    key: int

    @cached_property
    def sums(self) -> Weighted:
        """The second product."""
        return Weighted(self.second, self.weight)

    @property
    def weights(self) -> ir.Value:
        """The operand of the second product that is a softmax."""
        return self.sums.weights

    @cached_property
    def shape(self) -> Shape:
        """The shape of the weights."""
        return shape_of(self.weights)

    @property
    def rows(self) -> int:
        """The rows of weights that share keys."""
        return self.shape[self.row]

    @property
    def keys(self) -> int:
        """The elements that a row's softmax is over."""
        return self.shape[self.key]

    @property
    def key_bound(self) -> tuple[AffineExpr, int]:
        """The number of a key, of the weights' indices, and how many keys there are: parts of them may have room."""
        if self.softmax.within:
            ((number, bound),) = self.softmax.within
            return number, bound.upper + 1
        return dim(self.key), self.keys

    @property
    def has_parts(self) -> bool:
        """Whether keys are in parts already, of which the last has room for more."""
        return bool(self.softmax.within)

    @property
    def others(self) -> list[int]:
        """The dimensions of the weights beside rows and keys, those that have keys of their own first."""
        own = _dimensions((self.key_rows, self.operand_map(1 - self.query)))
        rest = [number for number in range(len(self.shape)) if number not in (self.row, self.key)]
        return sorted(rest, key=lambda number: (number not in own, number))

    @property
    def batch(self) -> int:
        """The number of matrices of weights."""
        return math.prod(self.shape[number] for number in self.others)

    @property
    def queries(self) -> ir.Value:
        """The operand of the first product that has the rows."""
        return self.first.operands[self.query]

    @property
    def key_rows(self) -> ir.Value:
        """The operand of the first product that has the keys."""
        return self.first.operands[1 - self.query]

    @property
    def values(self) -> ir.Value:
        """The other operand of the second product."""
        return self.sums.values

    def operand_map(self, number: int) -> IndexingMap:
        """Return (weights)[contracted] -> the indices of an operand of the first product."""
        return then(self.to_scores, accesses(self.first)[number].map)

    @cached_property
    def width(self) -> int:
        """The elements that the first product contracts."""
        return self.operand_map(0).symbols[0].size

    @property
    def element_bytes(self) -> int:
        """The bytes of an element of the queries."""
        return dtype_of(self.queries).bits // 8

    @cached_property
    def instructions(self) -> int:
        """About how many instructions the functions take by which a logit is computed: a cap, or what masks are.

        Divisors are left to the exponential, or to a function.
        """
        whole, pending, seen, total = math.prod(self.shape), [self.softmax.logits], set[ir.Operation](), 0
        while pending:
            op = defining_op(pending.pop())
            if op is None or op in seen or op == self.first or not is_tiled(op):
                continue
            seen.add(op)
            known = OPERATIONS.get(op.name)
            is_divided = op.name == _DIVIDE and number_of(op.operands[1]) is not None
            if known is not None and known.instructions >= _LEAST_OF_FUNCTION and not is_divided:
                total += known.instructions
            pending += [value for value in op.operands if math.prod(shape_of(value)) == whole]
        return total

    @property
    def columns(self) -> int:
        """The columns of the second product."""
        return self.sums.columns

    @property
    def row_values(self) -> dict[ir.Value, IndexingMap]:
        """The softmax's values of each row, the largest logit and the sum of weights, and the maps to them."""
        return dict((self.softmax.largest, self.softmax.total))


def attention_of(second: ir.Operation) -> Attention | None:
    """Return the attention whose second product an operation is; None if it is none."""
    if second.name != DOT:
        return None
    return next((found for weight in range(2) if (found := _with_weights(second, weight)) is not None), None)


def _with_weights(second: ir.Operation, weight: int) -> Attention | None:
    """Return the attention whose weights are this operand of its second product."""
    sums = Weighted(second, weight)
    if len(sums.contracted) != 1 or sums.column < 0:
        return None
    (key,) = sums.contracted
    softmax = find_softmax(second.operands[weight], key)
    if softmax is None:
        return None
    products = _products_behind_alone(softmax.logits, softmax.map)
    # Where logits are sums of several products, that of the longest rows is the kernel's, and others are in memory.
    for first in sorted(products, key=lambda each: -terms_of(each)):
        map_ = products[first]
        # A loop around the second alone would compute the first again.
        if map_ is None or first.block != second.block or _depends(softmax.others, first):
            continue
        if (found := _with_first(sums, first, softmax, map_, key)) is not None:
            return found
    return None


def _depends(values: Sequence[ir.Value], op: ir.Operation) -> bool:
    """Whether one of some values is computed from an operation, or inside a region of a later one."""
    found = backward_slice(values, _comes_before([op]))
    return any(each == op or captured(each) for each in found)


def _with_first(sums: Weighted, first: ir.Operation, softmax: Softmax, map_: IndexingMap, key: int) -> Attention | None:
    """Return the attention with this first product, of which operands have either the keys, or the rows."""
    operands = [then(map_, accesses(first)[number].map) for number in range(2)]
    if any(len(each.symbols) != 1 for each in operands):
        return None
    used = [_dimensions(place) for place in zip(first.operands, operands, strict=True)]
    for query in range(2):
        rows = [number for number in sums.free if number not in used[1 - query]]
        if key in used[query] or key not in used[1 - query] or not rows:
            continue
        return Attention(
            sums.product, sums.weight, first, softmax, map_, query, longest(rows, shape_of(sums.weights)), key
        )
    return None


def _dimensions(place: Place) -> set[int]:
    """Return the dimensions that an array is read along, which is moved and repeated to what there is."""
    _, map_ = behind(place, SPREADS)
    return {number for each in map_.results for number in each.variables()[0]}


def longest(dimensions: Sequence[int], shape: Shape) -> int:
    """Return the longest of some dimensions of a shape; of equal ones the last."""
    return max(dimensions, key=lambda number: (shape[number], number))


def products_behind(
    value: ir.Value, map_: IndexingMap, among: Container[ir.Value] | None = None
) -> Mapping[ir.Operation, IndexingMap | None]:
    """Return the products that a value is computed from element by element, each with the map that leads to its result.

    None if elements are computed from several elements of it. Only values ``among`` some are followed, if these are
    given.
    """
    return _behind_elements(value, map_, among)[0]


def _products_behind_alone(value: ir.Value, map_: IndexingMap) -> Mapping[ir.Operation, IndexingMap | None]:
    """Return the products of `products_behind`, None for those that a value is computed from in another way, too.

    What takes other elements than its own, or another product, may be computed from one.
    """
    found, others = _behind_elements(value, map_)
    mixed = [*others, *(found if len(found) > 1 else ())]
    reached = set(backward_slice([operand for op in mixed for operand in op.operands], _comes_before(found)))
    return {op: None if op in reached else each for op, each in found.items()}


def _comes_before(operations: Iterable[ir.Operation]) -> Callable[[ir.Value], bool]:
    """Return what tells whether a value is computed before all of some operations, and so of none of them."""
    all_ = list(operations)

    def comes_before(value: ir.Value) -> bool:
        op = defining_op(value)
        return op is not None and all(op.block == each.block and op.is_before_in_block(each) for each in all_)

    return comes_before


def _behind_elements(
    value: ir.Value, map_: IndexingMap, among: Container[ir.Value] | None = None
) -> tuple[dict[ir.Operation, IndexingMap | None], dict[ir.Operation, None]]:
    """Return the products from which a value is computed element by element, and other, untiled operations."""
    found: dict[ir.Operation, IndexingMap | None] = {}
    others: dict[ir.Operation, None] = {}
    reads = {value: Indices(map_)}
    for op in tiled_slice(value, among):
        if op.name != DOT and not is_tiled(op):
            others[op] = None
            continue
        read = reads[op.results[0]]
        if op.name == DOT:
            found[op] = None if read.several else read.map
            continue
        for each in accesses(op):
            operand, indices = op.operands[each.operand], read.then(each.map)
            reads[operand] = reads[operand].joined(indices) if operand in reads else indices
    return found, others
