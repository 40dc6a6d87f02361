"""Attention: rows of one product, a softmax of them, and the sums of other rows that it weights, a second product.

Found by what is computed, whatever moves elements on the way: every value between the products is followed by its
indexing map, and both reductions of the softmax must be of the very elements that they are then used for.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from xgpu import ir
from xgpu.analysis.attention.weighted import Weighted
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.scan_op import function_of
from xgpu.indexing.access import Shape, identity_map, integers, shape_of
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.simplify import Simplifier
from xgpu.structure import backward_slice, body_of, defining_op, dtype_of

DOT = "stablehlo.dot_general"
REDUCE = "stablehlo.reduce"
PAD = "stablehlo.pad"
IOTA = "stablehlo.iota"
_DIVIDE = "stablehlo.divide"
_LEAST_OF_FUNCTION = 8
"""Instructions from which on an operation is none that is hidden behind products."""
_MOVES = frozenset(("stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose"))
_SPREADS = _MOVES | {"stablehlo.broadcast_in_dim"}
Place = tuple[ir.Value, IndexingMap]
"""A value, and the map from the weights' indices to its own."""


@dataclass(frozen=True)
class Softmax:
    """The softmax that a value is, along one of its dimensions: its ``logits``, found at ``map``; none is normalised.

    ``powers`` are those of logits without the ``largest`` of a row, of which ``total`` is the sum: both as they are
    reduced. ``quotients`` are what the softmax is. Logits are there ``within`` bounds of indices, and -inf beyond.
    """

    logits: ir.Value
    map: IndexingMap
    powers: Place
    quotients: Place
    largest: Place
    total: Place
    within: tuple[Constraint, ...] = ()


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
    softmax = _softmax(second.operands[weight], key)
    if softmax is None:
        return None
    for first, map_ in _products_behind_alone(softmax.logits, softmax.map).items():
        # A loop around the second alone would compute the first again.
        if map_ is None or first.block != second.block:
            continue
        if (found := _with_first(sums, first, softmax, map_, key)) is not None:
            return found
    return None


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
    _, map_ = behind(place, _SPREADS)
    return {number for each in map_.results for number in each.variables()[0]}


def longest(dimensions: Sequence[int], shape: Shape) -> int:
    """Return the longest of some dimensions of a shape; of equal ones the last."""
    return max(dimensions, key=lambda number: (shape[number], number))


def is_tiled(op: ir.Operation) -> bool:
    """Whether tiles of the result of ``op`` are computed from tiles of its operands, or of nothing but indices."""
    if op.name == "stablehlo.constant":
        return splat_of(op) is not None
    if op.name == IOTA:
        return True
    if op.name not in OPERATIONS or len(op.regions):
        return False
    kind = access_kind(op)
    return kind == "elementwise" or (kind == "indexing" and not any(each.runtime for each in accesses(op)))


def products_behind(value: ir.Value, map_: IndexingMap) -> Mapping[ir.Operation, IndexingMap | None]:
    """Return the products that a value is computed from element by element, each with the map that leads to its result.

    None if elements are computed from several elements of it.
    """
    return _behind_elements(value, map_)[0]


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
    value: ir.Value, map_: IndexingMap
) -> tuple[dict[ir.Operation, IndexingMap | None], dict[ir.Operation, None]]:
    """Return the products from which a value is computed element by element, and other, untiled operations."""
    found: dict[ir.Operation, IndexingMap | None] = {}
    others: dict[ir.Operation, None] = {}
    pending, seen = [(value, map_)], {(value, map_)}
    while pending:
        value, map_ = pending.pop()
        op = defining_op(value)
        if op is None:
            continue
        if op.name == DOT:
            found[op] = map_ if found.get(op, map_) == map_ else None
        elif not is_tiled(op):
            others[op] = None
        else:
            for each in accesses(op):
                place = op.operands[each.operand], then(map_, each.map)
                if place not in seen:
                    seen.add(place)
                    pending.append(place)
    return found, others


def _softmax(weights: ir.Value, key: int) -> Softmax | None:
    """Return what ``weights`` are the softmax of along ``key``."""
    quotients = value, map_ = behind((weights, identity_map(shape_of(weights)).with_simple_results()), _MOVES)
    quotient = defining_op(value)
    if quotient is None or quotient.name != _DIVIDE:
        return None
    powers = value, power_map = behind((quotient.operands[0], map_), _MOVES)
    power = defining_op(value)
    if power is None or power.name != "stablehlo.exponential":
        return None
    total = _reduced((quotient.operands[1], map_), "add", 0.0, key)
    if total is None or total.elements != powers:
        return None
    below, below_map = behind((power.operands[0], power_map), _MOVES)
    difference = defining_op(below)
    if difference is None or difference.name != "stablehlo.subtract":
        return None
    logits = behind((difference.operands[0], below_map), _MOVES)
    largest = _reduced((difference.operands[1], below_map), "maximum", -math.inf, key)
    if largest is None or largest.elements != logits:
        return None
    found = Softmax(*logits, powers, quotients, largest.result, total.result)
    inside = _inside_padding(logits)
    if inside is None:
        return found
    (value, map_), within = inside
    if len(within) != 1 or key not in within[0][0].variables()[0]:
        return None
    return replace(found, logits=value, map=map_, within=within)


def _inside_padding(place: Place) -> tuple[Place, tuple[Constraint, ...]] | None:
    """Return what padding with -inf behind the last elements is of, and within which bounds; None if there is none."""
    value, map_ = place
    op = defining_op(value)
    if op is None or op.name != PAD or number_of(op.operands[1]) != -math.inf:
        return None
    if any(integers(op, "interior_padding")) or any(integers(op, "edge_padding_low")):
        return None
    return behind((op.operands[0], then(map_, accesses(op)[0].map)), _MOVES), beyond(op, map_)


def beyond(pad: ir.Operation, map_: IndexingMap) -> tuple[Constraint, ...]:
    """Return the constraints on the indices of what is padded, given the map to the result, that do not always hold."""
    simplifier = Simplifier(map_.dims, map_.symbols)
    inside = ((simplifier.simplify(each), bound) for each, bound in map_.compose(accesses(pad)[0].map).constraints)
    return tuple(
        (each, bound) for each, bound in inside if not bound.contains_interval(each.interval(map_.dims, map_.symbols))
    )


class _Reduction(NamedTuple):
    """The elements, one for each weight, that are reduced, and where the result is."""

    elements: Place
    result: Place


def _reduced(place: Place, function: str, start: float, key: int) -> _Reduction | None:
    """Return the reduction along ``key``, which begins so, that a value is."""
    value, map_ = behind(place, _SPREADS)
    while (inner := _without_start(value, start)) is not None:
        value, map_ = behind((inner, map_), _SPREADS)
    op = defining_op(value)
    if op is None or op.name != REDUCE or len(op.results) != 1 or number_of(op.operands[1]) != start:
        return None
    if reducing_function(op) != function:
        return None
    inside = then(map_, accesses(op)[0].map)
    elements, inside = behind((op.operands[0], inside), _MOVES)
    if len(inside.symbols) != 1 or inside.symbols[0] != inside.dims[key]:
        return None
    if any(key in each.variables()[0] for each in inside.results):
        return None
    results = tuple(each.substitute(None, [dim(key)]) for each in inside.results)
    read = elements, IndexingMap(inside.dims, (), results).with_simple_results()
    return _Reduction(read, (value, map_))


def reducing_function(op: ir.Operation) -> str | None:
    """Return the name of the one function by which an operation reduces, None if it does so in another way."""
    body = body_of(op)
    *operations, _ = (each.operation for each in body.operations)
    return function_of(operations[0], list(body.arguments)) if len(operations) == 1 else None


def _without_start(value: ir.Value, start: float) -> ir.Value | None:
    """Return the other operand of a maximum with -inf, which changes nothing."""
    op = defining_op(value)
    if op is None or op.name != "stablehlo.maximum" or start != -math.inf:
        return None
    for number in range(2):
        if number_of(op.operands[number]) == start:
            return op.operands[1 - number]
    return None


def number_of(value: ir.Value) -> float | None:
    """Return the float that all elements of a value are, if they are a constant or its broadcast."""
    op = defining_op(value)
    while op is not None and op.name in _SPREADS:
        op = defining_op(op.operands[0])
    number = None if op is None or op.name != "stablehlo.constant" else splat_of(op)
    return float(number.value) if isinstance(number, ir.FloatAttr) else None


def behind(place: Place, names: frozenset[str]) -> Place:
    """Return the value that one is made of by operations of these names that keep numbers, and the map to it."""
    value, map_ = place
    while (op := defining_op(value)) is not None and op.name in names and keeps_numbers(op):
        value, map_ = op.operands[0], then(map_, accesses(op)[0].map)
    return value, map_


def keeps_numbers(op: ir.Operation) -> bool:
    """Whether the elements of a result are those of the only operand, but for rounding to no less than 16 bits.

    Narrower types are asked for because of what they leave, and integers leave other numbers.
    """
    if op.name != "stablehlo.convert":
        return len(op.operands) == 1
    return all(is_wide(value) for value in (*op.operands, *op.results))


def is_wide(value: ir.Value) -> bool:
    """Whether elements are floats of at least 16 bits."""
    dtype = dtype_of(value)
    return dtype.is_float and dtype.bits >= 16


@lru_cache(maxsize=1 << 12)
def then(map_: IndexingMap, access: IndexingMap) -> IndexingMap:
    """Return a map, then that of a read: indices of one array are always indices of the other."""
    return replace(map_.compose(access), constraints=()).with_simple_results()
