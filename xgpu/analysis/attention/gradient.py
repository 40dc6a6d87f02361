"""Gradients of attention: the values that a program computes from the logits and weights beside the result.

All are products with one operand that is computed element by element from three things: the logits, numbers of each
row, and a product of the logits' shape, that of the result's gradient and the values. The numbers of a row are the
reductions of the softmax, and a sum of gradients times weights. As products may be added up in any order, that sum is
also one of the result times its gradient: over the elements of a row instead of its keys.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from xgpu import ir
from xgpu.analysis.attention.attention import Attention, products_behind
from xgpu.analysis.attention.chained_sums import MOVED, inverted
from xgpu.analysis.attention.places import (
    DOT,
    MOVES,
    REDUCE,
    SPREADS,
    Place,
    behind,
    is_tiled,
    keeps_numbers,
    number_of,
    reducing_function,
    then,
)
from xgpu.analysis.attention.softmax import Softmax
from xgpu.analysis.attention.weight_factors import NO_FACTORS, Factor, WeightFactors, cleaning, taken_off
from xgpu.indexing.access import identity_map, ranges, shape_of
from xgpu.indexing.affine import AffineExpr, symbol
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.structure import block_of, defining_op, dtype_of, is_used, producer, users_of


@dataclass(frozen=True)
class RowSum:
    """A reduction ``op`` that adds up gradients of weights times weights, along the keys.

    It is the sum of the result times its gradient, times a ``number`` and ``factors``, which there are of each row. The
    result is taken as ``moved``, its gradient as ``given``: both have a ``place`` from the indices of the weights, and
    the column. Results of other maps are those of the weights' indices alone. The gradient of weights is a ``product``.
    """

    op: ir.Operation
    product: ir.Operation
    map: tuple[AffineExpr, ...]
    factors: tuple[Place, ...]
    number: float
    moved: ir.Value
    given: ir.Value
    place: IndexingMap


@dataclass(frozen=True)
class Gradient:
    """The products, ``ends``, that are computed from attention's logits beside its result, and the ``sums`` of rows.

    Other operations read ``elements``, such as the logits' gradient, of which that of a bias is made; and ``readers``
    read ``rows``, values of each row, of which the gradient of a sink is made. There may be such rows alone.
    """

    attention: Attention
    ends: tuple[ir.Operation, ...]
    sums: tuple[RowSum, ...]
    elements: tuple[ir.Value, ...] = ()
    rows: tuple[ir.Value, ...] = ()
    readers: tuple[ir.Operation, ...] = ()

    @property
    def products(self) -> tuple[ir.Operation, ...]:
        """The products of arrays that all else is computed from."""
        return (self.attention.first, *dict.fromkeys(each.product for each in self.sums))

    @property
    def stage(self) -> ir.Value:
        """The stored result of attention, moved in the same way as the value that its gradient is of."""
        return self.sums[0].moved if self.sums else self.attention.second.results[0]


def gradient_of(attention: Attention) -> Gradient | str:
    """Return the gradient that a program computes beside attention, or why it is none."""
    readers = _Readers(attention)
    readers.find()
    sums = tuple(readers.sums.values())
    if any(each.moved != sums[0].moved for each in sums):
        return "expected sums of one gradient"
    gradient = Gradient(attention, tuple(readers.ends), sums)
    if not readers.others:
        return gradient
    read, outside = readers.elements(first=True)
    if not all(readers.is_row(value) or _is_of_gradient(value, gradient) for value in read):
        read, outside = readers.elements(first=False)
    rows = [value for value in read if readers.is_row(value)]
    elements = [value for value in read if value not in rows]
    has_gradient, has_rows_alone = bool(sums and readers.ends), not (sums or readers.ends or elements)
    if not (has_gradient or has_rows_alone) or not all(_is_of_gradient(value, gradient) for value in elements):
        return next(iter(readers.others.values()))
    others = [user for value in rows for user in users_of(value) if user in outside]
    return replace(gradient, elements=tuple(elements), rows=tuple(rows), readers=tuple(others))


class _Readers:
    """Readers of the values that are computed from attention's logits, beside attention itself.

    Products are ``ends``, reductions ``sums``; ``others`` have the reason why they are neither.
    """

    def __init__(self, attention: Attention):
        self._attention, self._whole = attention, math.prod(shape_of(attention.first.results[0]))
        self._known = {defining_op(value) for value in attention.row_values}
        self._inner: dict[ir.Operation, None] = {}
        self.ends: dict[ir.Operation, None] = {}
        self.sums: dict[ir.Operation, RowSum] = {}
        self.others: dict[ir.Operation, str] = {}

    def find(self) -> None:
        """Follow values through what computes element by element, and through sums of rows."""
        scores = self._attention.first.results[0]
        pending, seen = [scores], {scores}
        while pending:
            value = pending.pop()
            for user in users_of(value):
                if user == self._attention.second or user in self.others or not self._goes_on(user, value):
                    continue
                self._inner[user] = None
                found = [result for result in user.results if result not in seen]
                seen.update(found)
                pending += found

    def _goes_on(self, user: ir.Operation, value: ir.Value) -> bool:
        """Whether what reads a value computes others from it that are followed, too."""
        if user.name == DOT:
            if is_used(*user.results):
                self.ends[user] = None
            return False
        if user in self._known or user in self.sums:
            return True
        if user.name == REDUCE and len(user.results) == 1 and math.prod(shape_of(value)) == self._whole:
            found = _row_sum(user, self._attention)
            if isinstance(found, str):
                self.others[user] = found
                return False
            self.sums[user] = found
            return True
        if (is_tiled(user) or drops_nothing(user)) and user.block == block_of(self._attention.second.results[0]):
            return True
        self.others[user] = f"expected nothing but products of what lies between attention's, got '{user.name}'"
        return False

    def elements(self, first: bool) -> tuple[list[ir.Value], set[ir.Operation]]:
        """Return the values that something else is computed from: and what is.

        They are the ``first`` that products and sums are not only computed of, or else the last that are computed
        element by element, such as logits times their gradient. If a value is only rounded, it is what it is rounded
        to.
        """
        within = self._leading_to([*self.ends, *self.sums, *self._known, self._attention.second])
        leading = self._leading_to(list(self.others))
        if not first:
            within |= {op for op in leading if any(math.prod(shape_of(each)) == self._whole for each in op.results)}
        outside = {*self.others, *(leading - within)}
        followed = [value for op in self._inner if op in within for value in op.results]
        found: dict[ir.Value, None] = {}
        for value in (self._attention.first.results[0], *followed):
            users = [user for user in users_of(value) if user in outside]
            rounds = len(users) == 1 and _narrows(users[0])
            found.update(dict.fromkeys(users[0].results if rounds else [value] if users else []))
        return list(found), outside

    def is_row(self, value: ir.Value) -> bool:
        """Whether a value is computed from reductions of rows, and from no single logit or weight."""
        pending, seen = [value], {value}
        while pending:
            op = defining_op(pending.pop())
            if op is None or op not in self._inner or op in self._known or op in self.sums:
                continue
            if any(math.prod(shape_of(each)) >= self._whole for each in (*op.operands, *op.results)):
                return False
            pending += [each for each in op.operands if each not in seen]
            seen.update(op.operands)
        return value != self._attention.first.results[0]

    def _leading_to(self, ends: Sequence[ir.Operation | None]) -> set[ir.Operation]:
        """Return the operations that were followed of whose results some others are computed."""
        found, pending = set[ir.Operation](), [op for op in ends if op is not None]
        while pending:
            for value in pending.pop().operands:
                op = defining_op(value)
                if op is not None and op in self._inner and op not in found:
                    found.add(op)
                    pending.append(op)
        return found


def _is_of_gradient(value: ir.Value, gradient: Gradient) -> bool:
    """Whether a value has an element for each weight, computed from the weights' gradient."""
    products = products_behind(value, identity_map(shape_of(value)))
    others = [op for op in gradient.products if op != gradient.attention.first]
    whole = math.prod(gradient.attention.shape)
    return math.prod(shape_of(value)) == whole and any(products.get(op) is not None for op in others)


def _narrows(op: ir.Operation) -> bool:
    """Whether an operation rounds floats to fewer bits."""
    if op.name != "stablehlo.convert" or not keeps_numbers(op):
        return False
    return dtype_of(op.results[0]).bits < dtype_of(op.operands[0]).bits


def drops_nothing(op: ir.Operation) -> bool:
    """Whether a reduction is along dimensions of one element, as gradients of broadcasts are."""
    is_sum = op.name == REDUCE and len(op.results) == 1 and reducing_function(op) == "add"
    return is_sum and math.prod(shape_of(op.operands[0])) == math.prod(shape_of(op.results[0]))


def _row_sum(op: ir.Operation, attention: Attention) -> RowSum | str:
    """Return what a reduction of a value as large as the logits adds up."""
    if reducing_function(op) != "add" or number_of(op.operands[1]) != 0.0:
        return "expected no reductions of what lies between attention's products but sums"
    shape = shape_of(op.operands[0])
    softmax = attention.softmax
    multiplied = factors_of(op, lambda value: value in (softmax.powers[0], softmax.quotients[0]))
    weights = [each for each in multiplied.places if each[0] in (softmax.powers[0], softmax.quotients[0])]
    products = [each for each in multiplied.places if is_product(each)]
    if len(weights) != 1 or len(products) != 1:
        return "expected sums of weights times their gradients"
    (weight,), (product,) = weights, products
    own = softmax.powers if weight[0] == softmax.powers[0] else softmax.quotients
    to_operand = _joined(own, weight, attention, shape)
    if to_operand is None:
        return "expected sums of weights that are multiplied by their own gradients"
    map_ = accesses(op)[0].map
    along = [to for to, each in zip(to_operand.results, map_.results, strict=True) if each.variables()[1]]
    kept = [to for to, each in zip(to_operand.results, map_.results, strict=True) if not each.variables()[1]]
    if not _is_key(along, attention):
        return "expected sums along the keys"
    factors = multiplied.factors.after(to_operand)
    rest = [(value, then(to_operand, at)) for value, at in multiplied.places if (value, at) not in (weight, product)]
    known = [each.place for each in softmax.factors.others]
    rows = [each for each in rest if each not in known and not _has_key(each, attention)]
    factors = factors.times(WeightFactors(others=tuple(Factor(each, False) for each in rest if each not in rows)))
    if not _asked(factors, softmax).are_as(replace(softmax.factors, number=factors.number)):
        return "expected sums of gradients with the factors of the weights, and others that there are of each row"
    if weight[0] == softmax.powers[0]:
        rows.append(softmax.divisor or softmax.total)
    found = _met(attention, (product[0], then(to_operand, product[1])))
    if found is None:
        return "expected sums of gradients of attention's own result"
    number = factors.number / softmax.factors.number * (-1 if multiplied.is_negative else 1)
    return RowSum(op, producer(product[0]), tuple(kept), tuple(rows), number, *found)


def _asked(factors: WeightFactors, softmax: Softmax) -> WeightFactors:
    """Return factors without conditions that leave out nothing but zeros, and numbers that are none."""
    kept = (each for each in factors.conditions - softmax.dropped if cleaning(each.place) is None)
    return replace(factors, conditions=frozenset(kept))


def _has_key(place: Place, attention: Attention) -> bool:
    """Whether a value differs along the keys."""
    return any(attention.key in each.variables()[0] for each in place[1].results)


class Multiplied(NamedTuple):
    """The factors of a value, element by element: values at some ``places``, and ``factors`` of other kinds.

    It is the negative of that if it ``is_negative``.
    """

    places: list[Place]
    factors: WeightFactors
    is_negative: bool


def factors_of(sums: ir.Operation, is_kept: Callable[[ir.Value], bool]) -> Multiplied:
    """Return the product that elements of a reduction are; values that are kept, and those of rows, are one factor."""
    along = {number for number, each in enumerate(accesses(sums)[0].map.results) if each.variables()[1]}
    start = sums.operands[0], identity_map(shape_of(sums.operands[0])).with_simple_results()
    found, factors, is_negative, pending = list[Place](), NO_FACTORS, False, [start]
    while pending:
        value, map_ = place = behind(pending.pop(), MOVES)
        op = defining_op(value)
        if is_kept(value) or not along & {number for each in map_.results for number in each.variables()[0]}:
            found.append(behind(place, SPREADS))
        elif (taken := taken_off(place)) is not None:
            rest, factor = taken
            factors = factors.times(factor)
            pending += rest
        elif op is not None and op.name == "stablehlo.negate":
            is_negative = not is_negative
            pending.append((op.operands[0], then(map_, accesses(op)[0].map)))
        elif op is not None and op.name == "stablehlo.multiply":
            pending += [(op.operands[each.operand], then(map_, each.map)) for each in accesses(op)]
        else:
            # What is spread along rows is told by what it is spread of.
            found.append(behind(place, SPREADS))
    return Multiplied(found, factors, is_negative)


def is_product(place: Place) -> bool:
    """Whether a value is the result of a product."""
    op = defining_op(place[0])
    return op is not None and op.name == DOT


def _joined(own: Place, other: Place, attention: Attention, shape: Sequence[int]) -> IndexingMap | None:
    """Return the map from the weights' indices to those of an array, by a value that both have, None if it is none."""
    middle = shape_of(own[0])
    back = inverted(other[1], tuple(shape), middle)
    if back is None or inverted(own[1], attention.shape, middle) is None:
        return None
    return then(own[1], IndexingMap(ranges(middle), (), back)) if own[0] == other[0] else None


def _is_key(along: Sequence[AffineExpr], attention: Attention) -> bool:
    """Whether what is reduced along are the keys, and dimensions of one element."""
    used = {number for each in along for number in each.variables()[0] if attention.shape[number] > 1}
    return used == {attention.key}


def _met(attention: Attention, product: Place) -> tuple[ir.Value, ir.Value, IndexingMap] | None:
    """Return what attention's result and its gradient are both moved to, or from, and the map of both.

    The gradient is the operand of a product whose other operand are the values that weights are multiplied by.
    """
    op, to_product = defining_op(product[0]), product[1]
    assert op is not None
    dims, column = ranges(attention.shape), Interval(0, attention.columns - 1)
    values = stages_of(
        (
            attention.values,
            _place(dims, column, attention.sums.value_indices(identity_map(attention.shape).results, symbol(0))),
        )
    )
    results = attention.sums.result_indices(identity_map(attention.shape).results, symbol(0))
    stages = list(_later_stages((attention.second.results[0], _place(dims, column, results))))
    for number in range(2):
        maps = [then(to_product, each.map) for each in accesses(op)]
        if any(len(each.symbols) != 1 for each in maps):
            return None
        other = stages_of((op.operands[1 - number], maps[1 - number]))
        if not set(values) & set(other):
            continue
        given = stages_of((op.operands[number], maps[number]))
        for moved, at in reversed(stages):
            for value, map_ in given:
                is_same = at == map_ and shape_of(moved) == shape_of(value) and dtype_of(moved) == dtype_of(value)
                if is_same and _has_column(at):
                    return moved, value, at
    return None


def _has_column(map_: IndexingMap) -> bool:
    """Whether the column is an index of its own, as all others are."""
    return sum(each == symbol(0) for each in map_.results) == 1 and all(
        each == symbol(0) or len(each.variables()[0]) <= 1 for each in map_.results
    )


def _place(dims: tuple[Interval, ...], column: Interval, results: Sequence[AffineExpr]) -> IndexingMap:
    return IndexingMap(dims, (column,), tuple(results)).with_simple_results()


def stages_of(place: Place) -> list[Place]:
    """Return a value and those that it was moved from."""
    found = [place]
    value, map_ = place
    while (op := defining_op(value)) is not None and op.name in ("stablehlo.reshape", "stablehlo.transpose"):
        value, map_ = op.operands[0], then(map_, accesses(op)[0].map)
        found.append((value, map_))
    return found


def _later_stages(place: Place) -> Iterator[Place]:
    """Yield a value and those that it is moved to, as long as nothing else reads it."""
    value, map_ = place
    yield value, map_
    while len(users := users_of(value)) == 1 and users[0].name in MOVED and keeps_numbers(users[0]):
        (user,) = users
        inside = inverted(accesses(user)[0].map, shape_of(user.results[0]), shape_of(value))
        if inside is None:
            return
        moved = then(map_, IndexingMap(ranges(shape_of(value)), (), inside))
        value, map_ = user.results[0], replace(moved, constraints=())
        yield value, map_
