"""The softmax that a value is, found by what is computed."""

import math
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from xgpu import ir
from xgpu.analysis.attention.hiding import hiding, is_same, parts_of
from xgpu.analysis.attention.places import (
    MOVES,
    PAD,
    REDUCE,
    SPREADS,
    Place,
    behind,
    is_tiled,
    number_of,
    reducing_function,
    then,
)
from xgpu.analysis.attention.weight_factors import NO_FACTORS, Condition, WeightFactors, in_order, unfactored
from xgpu.indexing.access import identity_map, integers, shape_of
from xgpu.indexing.affine import dim
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.simplify import Simplifier
from xgpu.records import dataclass
from xgpu.structure import backward_slice, defining_op, is_result_of

_DIVIDE = "stablehlo.divide"
_MOST_OPERATIONS = 64
"""Values behind a row's divisor that are looked at."""
_MOST_LOOKED_AT = 256
"""Operations that logits are made by that are looked at for conditions."""


@dataclass(frozen=True)
class Softmax:
    """The softmax that a value is, along one of its dimensions: its ``logits``, found at ``map``; none is normalised.

    ``powers`` are those of logits without the ``largest`` of a row, of which ``total`` is the sum: both as they are
    reduced. ``quotients`` are what the softmax is. Logits are there ``within`` bounds of indices, and -inf beyond.
    Weights are the softmax times ``factors``, such as those of a dropout.

    Instead of the largest logit of a row a ``reference`` may be subtracted, and instead of the sum the powers may be
    divided by a ``divisor``: values of each row that are computed from these, and from ``sources``. An attention sink,
    which is a logit without a value, is in both.

    Rows of nothing but -inf may be ``empty_as_zero``: conditions that hide all of their logits make zeros of their
    weights, too. Those that do nothing else are ``dropped`` from the factors.
    """

    logits: ir.Value
    map: IndexingMap
    powers: Place
    quotients: Place
    largest: Place
    total: Place
    within: tuple[Constraint, ...] = ()
    factors: WeightFactors = NO_FACTORS
    reference: Place | None = None
    divisor: Place | None = None
    sources: tuple[ir.Value, ...] = ()
    empty_as_zero: bool = False
    dropped: frozenset[Condition] = frozenset()

    @property
    def is_plain(self) -> bool:
        """Whether powers are of logits without the largest one, and divided by their sum."""
        return self.reference is None and self.divisor is None

    @property
    def conditions(self) -> list[Condition]:
        """All conditions by which weights are zero."""
        return in_order(self.factors.conditions | self.dropped)

    @property
    def others(self) -> list[ir.Value]:
        """The values beside logits that weights are computed from."""
        return [*self.sources, *self.factors.values, *(value for (value, _), _ in self.dropped)]


def find_softmax(weights: ir.Value, key: int) -> Softmax | None:
    """Return what ``weights`` are the softmax of along ``key``, or that times factors."""
    whole = weights, identity_map(shape_of(weights)).with_simple_results()
    for quotients, factors in unfactored(behind(whole, SPREADS)):
        if (found := _softmax_of(quotients, key)) is not None:
            return _factored(found, _inside_factors(factors, found.within), key)
    return None


def _factored(softmax: Softmax, factors: WeightFactors, key: int) -> Softmax | None:
    """Return a softmax with factors; None if a kernel would have other weights for rows that see nothing."""
    cleans = factors.nan_as_zero or factors.bounded
    if not factors.has_normal_number or (cleans and factors.others):
        return None
    hidden = hiding((softmax.logits, softmax.map))
    along = frozenset(factors.conditions_along(key, is_along=True))
    chosen = factors.chosen & along
    if hidden.infinite and frozenset[Condition]().union(*map(parts_of, chosen)) >= hidden.infinite:
        dropped = frozenset(each for each in chosen if parts_of(each) <= hidden.infinite)
        factors = replace(factors, conditions=factors.conditions - dropped)
        return replace(softmax, factors=factors, empty_as_zero=True, dropped=dropped)
    asked = frozenset(each for each in along if not (each in chosen and parts_of(each) <= hidden.finite))
    return None if _hides_logits(softmax.logits, asked) else replace(softmax, factors=factors)


def _hides_logits(logits: ir.Value, asked: frozenset[Condition]) -> bool:
    """Whether a condition of factors is also one of logits: it is there for rows that see nothing, to be zero.

    A kernel would make NaN of these. What is looked at ends at products, and after `_MOST_LOOKED_AT` operations.
    """
    conditions = {value for (value, _), _ in asked}
    if not conditions:
        return False
    made = backward_slice([logits], lambda value: is_result_of(value, "stablehlo.dot_general"))
    return any(not conditions.isdisjoint((*op.operands, *op.results)) for op in islice(made, _MOST_LOOKED_AT))


def _softmax_of(quotients: Place, key: int) -> Softmax | None:
    """Return what a value is the softmax of along ``key``."""
    value, map_ = quotients
    quotient = defining_op(value)
    if quotient is None or quotient.name != _DIVIDE:
        return None
    powers = value, power_map = behind((quotient.operands[0], map_), MOVES)
    power = defining_op(value)
    if power is None or power.name != "stablehlo.exponential":
        return None
    below, below_map = behind((power.operands[0], power_map), MOVES)
    difference = defining_op(below)
    if difference is None or difference.name != "stablehlo.subtract":
        return None
    logits = behind((difference.operands[0], below_map), MOVES)
    hidden = hiding(logits).infinite
    reference = _made_of((difference.operands[1], below_map), _Combination("maximum", -math.inf, logits, hidden), key)
    divisor = _made_of((quotient.operands[1], map_), _Combination("add", 0.0, powers, hidden), key)
    if reference is None or divisor is None:
        return None
    largest, total = reference.reduction, divisor.reduction
    sources = [value for value, map_ in (*reference.sources, *divisor.sources) if (value, map_) != largest]
    found = Softmax(
        *logits,
        powers,
        quotients,
        largest,
        total,
        reference=reference.place,
        divisor=divisor.place,
        sources=tuple(dict.fromkeys(sources)),
    )
    inside = _inside_padding(logits)
    if inside is None:
        return found
    (value, map_), within = inside
    if len(within) != 1 or key not in within[0][0].variables()[0] or not found.is_plain:
        return None
    return replace(found, logits=value, map=map_, within=within)


def _inside_factors(factors: WeightFactors, within: tuple[Constraint, ...]) -> WeightFactors:
    """Return factors without what they are padded by where there are no logits: weights are zero there."""

    def inside(place: Place) -> Place:
        value, map_ = place
        op = defining_op(value)
        if op is None or op.name != PAD or not _is_padded_behind(op) or not set(within) >= set(beyond(op, map_)):
            return place
        return behind((op.operands[0], then(map_, accesses(op)[0].map)), SPREADS)

    conditions, chosen = (
        frozenset(each._replace(place=inside(each.place)) for each in part)
        for part in (factors.conditions, factors.chosen)
    )
    others = tuple(each._replace(place=inside(each.place)) for each in factors.others)
    return replace(factors, conditions=conditions, others=others, chosen=chosen)


def _inside_padding(place: Place) -> tuple[Place, tuple[Constraint, ...]] | None:
    """Return what padding with -inf behind the last elements is of, and within which bounds; None if there is none."""
    value, map_ = place
    op = defining_op(value)
    if op is None or op.name != PAD or number_of(op.operands[1]) != -math.inf:
        return None
    if not _is_padded_behind(op):
        return None
    return behind((op.operands[0], then(map_, accesses(op)[0].map)), MOVES), beyond(op, map_)


def _is_padded_behind(pad: ir.Operation) -> bool:
    return not any(integers(pad, "interior_padding")) and not any(integers(pad, "edge_padding_low"))


def beyond(pad: ir.Operation, map_: IndexingMap) -> tuple[Constraint, ...]:
    """Return the constraints on the indices of what is padded, given the map to the result, that do not always hold."""
    simplifier = Simplifier(map_.dims, map_.symbols)
    inside = ((simplifier.simplify(each), bound) for each, bound in map_.compose(accesses(pad)[0].map).constraints)
    return tuple(
        (each, bound) for each, bound in inside if not bound.contains_interval(each.interval(map_.dims, map_.symbols))
    )


class _Combination(NamedTuple):
    """A reduction of some elements: by a function, from a number on.

    Where ``hidden`` conditions do not hold, elements may be left out.
    """

    function: str
    start: float
    elements: Place
    hidden: frozenset[Condition]

    def takes(self, elements: Place) -> bool:
        """Whether a reduction of some elements is one of these."""
        if is_same(elements, self.elements):
            return True
        for inner, factors in unfactored(elements):
            if inner == self.elements:
                left_out = frozenset[Condition]().union(*map(parts_of, factors.chosen))
                return factors.are_as(WeightFactors(conditions=factors.chosen)) and left_out <= self.hidden
        return False


class _RowValue(NamedTuple):
    """A ``reduction``, or a value at a ``place`` that is computed from one, and from ``sources``."""

    reduction: Place
    place: Place | None
    sources: list[Place]


def _made_of(place: Place, combination: _Combination, key: int) -> _RowValue | None:
    """Return how a value of each row is computed, element by element, from one reduction along ``key``."""
    function, start, *_ = combination
    top = behind(place, SPREADS)
    pending, seen, sources, found = [top], {top}, list[Place](), set[Place]()
    if key in {number for each in top[1].results for number in each.variables()[0]}:
        return None
    while pending:
        value, map_ = pending.pop()
        reduced, op = _reduced((value, map_), function, start, key), defining_op(value)
        if reduced is not None and combination.takes(reduced.elements):
            found.add(reduced.result)
        elif op is None or not is_tiled(op) or len(seen) > _MOST_OPERATIONS:
            sources.append((value, map_))
        else:
            read = [(op.operands[each.operand], then(map_, each.map)) for each in accesses(op)]
            following = [each for each in read if each not in seen]
            seen.update(following)
            pending += following
    if len(found) != 1:
        return None
    (reduction,) = found
    is_alone = _reduced(top, function, start, key) is not None
    return _RowValue(reduction, None if is_alone else top, sources)


class _Reduction(NamedTuple):
    """The elements, one for each weight, that are reduced, and where the result is."""

    elements: Place
    result: Place


def _reduced(place: Place, function: str, start: float, key: int) -> _Reduction | None:
    """Return the reduction along ``key``, which begins so, that a value is."""
    value, map_ = behind(place, SPREADS)
    while (inner := _without_start(value, start)) is not None:
        value, map_ = behind((inner, map_), SPREADS)
    op = defining_op(value)
    if op is None or op.name != REDUCE or len(op.results) != 1 or number_of(op.operands[1]) != start:
        return None
    if reducing_function(op) != function:
        return None
    inside = then(map_, accesses(op)[0].map)
    elements, inside = behind((op.operands[0], inside), MOVES)
    if len(inside.symbols) != 1 or inside.symbols[0] != inside.dims[key]:
        return None
    if any(key in each.variables()[0] for each in inside.results):
        return None
    results = tuple(each.substitute(None, [dim(key)]) for each in inside.results)
    read = elements, IndexingMap(inside.dims, (), results).with_simple_results()
    return _Reduction(read, (value, map_))


def _without_start(value: ir.Value, start: float) -> ir.Value | None:
    """Return the other operand of a maximum with -inf, which changes nothing."""
    op = defining_op(value)
    if op is None or op.name != "stablehlo.maximum" or start != -math.inf:
        return None
    for number in range(2):
        if number_of(op.operands[number]) == start:
            return op.operands[1 - number]
    return None
