"""Chooses in which order of dimensions the values of a block are computed, so that the fewest bytes are transposed.

Values between which dimensions stay what they are, such as those that elementwise operations connect, are a *group* and
have one order. A transpose between two groups costs nothing in orders that make up for it, a reshape in orders that
follow one from the other; everything else reads and gives values in the order of the program.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.analysis.transposes import canonical
from xgpu.fusion.orders.product_sides import takes_any_side
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.indexing.reshapes import Order, reshaped_order
from xgpu.records import dataclass
from xgpu.structure import captured, defining_op, dtype_of, users_of

TRANSPOSE = "stablehlo.transpose"
RESHAPE = "stablehlo.reshape"
CONCATENATE = "stablehlo.concatenate"
BROADCAST = "stablehlo.broadcast_in_dim"
REDUCE_WINDOW = "stablehlo.reduce_window"
_SLICE = "stablehlo.slice"
_REVERSE = "stablehlo.reverse"
_CARRIERS: Mapping[str, int] = {
    _SLICE: 1,
    "stablehlo.pad": 1,
    _REVERSE: 1,
    "stablehlo.dynamic_slice": 1,
    "stablehlo.dynamic_update_slice": 2,
}
"""Operations beside elementwise ones whose dimensions are those of so many first operands."""
_ELSEWHERE = (REDUCE_WINDOW, _SLICE, _REVERSE)
"""Operations that read elements elsewhere than where they put what they make of them."""
_SECTOR_BYTES = 32
_LEAST_SHARE = 1 / 8
"""The least part of its bytes that a transpose of whole rows costs: it takes no tile, but it takes time."""
_UNTILED = 8
"""The cost of reading elements one by one, in times of their bytes: a sector has so many of 32 bits."""
_FREE_STEPS = 6
"""Operations one after the other that are as soon made again, such as those of a mask by two indices."""
_MOST_ROUNDS = 4
"""The number of times that each group is asked for a better order; two rounds were enough for all programs tried."""
_MOST_JOINED = 16
"""Groups that reshapes connect of which the orders are tried together, and edges of each but the first: time is linear.

A sum that all layers add to has many edges, and is asked by itself.
"""


def given_order(rank: int) -> Order:
    """Return the order of the program."""
    return tuple(range(rank))


def inverse(order: Order) -> Order:
    """Return the order that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def permuted[T](items: Sequence[T], order: Order) -> list[T]:
    """Return one item for each dimension, in an order of dimensions."""
    return [items[dimension] for dimension in order]


def carried(op: ir.Operation) -> list[ir.Value]:
    """Return the operands of which the results of ``op`` have the dimensions, in order; none for other operations."""
    if op.name == REDUCE_WINDOW:
        return list(op.operands)[: len(op.results)] if is_commutative(op) else []
    if not len(op.results) or len(op.regions) or not (shape := shape_of(op.results[0])):
        return []
    if op.name == CONCATENATE:
        return list(op.operands)
    if op.name in _CARRIERS:
        return list(op.operands)[: _CARRIERS[op.name]]
    if op.name not in OPERATIONS or OPERATIONS[op.name].kind != "elementwise":
        return []
    found = [(operand, shape_of(operand)) for operand in op.operands]
    arrays = [operand for operand, own in found if own]
    return arrays if all(own in (shape, ()) for _, own in found) else []


def is_between(op: ir.Operation) -> bool:
    """Whether an operation transposes or reshapes, by whatever name, so that it connects two groups."""
    return op.name == TRANSPOSE or is_bitcast(op)


def broadcast_order(op: ir.Operation, order: Order) -> tuple[Order, list[int]]:
    """Return how the operand of a broadcast is transposed for a result in another order, and its dimensions there."""
    places = [order.index(each) for each in integers(op, "broadcast_dimensions")]
    return tuple(sorted(range(len(places)), key=places.__getitem__)), sorted(places)


def reduced_order(op: ir.Operation, order: Order) -> Order:
    """Return the order of a reduction's result for operands in another order."""
    dimensions = integers(op, "dimensions")
    kept = [each for each in order if each not in dimensions]
    return tuple(sorted(kept).index(each) for each in kept)


def relative(source: Order, permutation: Sequence[int], target: Order) -> Order:
    """Return the transpose of a value in order ``source`` that gives its transpose in order ``target``."""
    return tuple(source.index(permutation[each]) for each in target)


def is_free(value: ir.Value, steps: int = _FREE_STEPS) -> bool:
    """Whether a value can be made in any order at once: few elementwise ``steps`` make it of indices and numbers."""
    op = defining_op(value)
    if op is None or op.name == "stablehlo.iota":
        return op is not None
    if op.name == "stablehlo.constant":
        return splat_of(op) is not None
    if op.name == BROADCAST and not shape_of(op.operands[0]):
        return True
    operands = list(op.operands)[:1] if op.name == BROADCAST else elementwise(op)
    return steps > 0 and bool(operands) and all(is_free(each, steps - 1) for each in operands)


def elementwise(op: ir.Operation) -> list[ir.Value]:
    """Return the arrays that an elementwise operation of one result computes it from; none for other operations."""
    is_one = len(op.results) == 1 and op.name in OPERATIONS and OPERATIONS[op.name].kind == "elementwise"
    return carried(op) if is_one else []


def _bytes(value: ir.Value) -> float:
    return math.prod(shape_of(value)) * dtype_of(value).bits / 8


def _moved(value: ir.Value, shape: Sequence[int], permutation: Order) -> float:
    """Return the cost of transposing the elements of ``value`` in such a shape, in bytes.

    Rows that stay together fill the more of the sectors that they touch the longer they are.
    """
    transpose = canonical(shape, permutation)
    if transpose is None:
        return 0
    return _bytes(value) * _share_of_rows(transpose.group * dtype_of(value).bits / 8)


def _parted(op: ir.Operation) -> set[int]:
    """Return the dimensions along which neighbours in the result of ``op`` are read from, or of, different places."""
    if op.name == CONCATENATE:
        return {integer(op, "dimension")}
    if op.name == "stablehlo.slice":
        return {number for number, stride in enumerate(integers(op, "strides")) if stride > 1}
    return set()


def _parted_bytes(op: ir.Operation, order: Order) -> float:
    """Return the cost, in bytes, of neighbours in memory, in an order, that come from different places.

    Parts of a concatenation that are rows of whole sectors cost as little as those that a transpose moves.
    """
    result = op.results[0]
    long = [dimension for dimension in order if shape_of(result)[dimension] > 1]
    if not long or long[-1] not in _parted(op):
        return 0
    rows = [shape_of(operand)[long[-1]] for operand in op.operands] if op.name == CONCATENATE else [1]
    return _bytes(result) * _share_of_rows(min(rows) * dtype_of(result).bits / 8)


def _share_of_rows(row_bytes: float) -> float:
    """Return which part of its bytes it costs to move an array by rows of such a size."""
    return min(1, max(_SECTOR_BYTES / max(row_bytes, 1), _LEAST_SHARE))


def _read_cost(value: ir.Value, order: Order) -> float:
    """Return the cost of reading a value from outside all groups in another order."""
    if is_free(value):
        return 0
    op = defining_op(value)
    if op is not None and op.name == BROADCAST:
        operand_order, _ = broadcast_order(op, order)
        return _moved(op.operands[0], shape_of(op.operands[0]), operand_order)
    return _moved(value, shape_of(value), order)


def _given_cost(value: ir.Value, users: Sequence[ir.Operation], order: Order) -> float:
    """Return the cost of reading ``value``, which is in another order, in the program's order.

    They share what is transposed for them. Reductions take any order, and their results are in another then; products
    read rows and columns alike.
    """
    users = [user for user in users if not takes_any_side(user, value, order)]
    reductions = [user for user in users if user.name == REDUCE and is_commutative(user)]
    results = [user.results[0] for user in reductions]
    total = sum(
        _moved(result, shape_of(result), reduced_order(user, order))
        for user, result in zip(reductions, results, strict=True)
    )
    if len(reductions) < len(users):
        total += _moved(value, permuted(shape_of(value), order), inverse(order))
    return total


@dataclass(eq=False)
class _Group:
    """Values of one order: what operations ``reads`` from outside, who ``uses`` them, and the ``edges`` to others.

    ``parting`` are operations that take or make neighbours apart along some dimensions. ``is_pieced``: some operations
    read one operand here and another there, or elements elsewhere, and what is transposed for these takes no tiles.
    """

    order: Order
    reads: dict[ir.Value, None] = field(default_factory=dict)
    uses: dict[ir.Value, list[ir.Operation]] = field(default_factory=dict)
    edges: "list[_Transpose | _Reshape]" = field(default_factory=list)
    parting: list[ir.Operation] = field(default_factory=list)
    is_pieced: bool = False

    @property
    def is_joined(self) -> bool:
        """Whether its order is tried together with those of others."""
        return len(self.edges) <= _MOST_JOINED

    def cost(self) -> float:
        """Return the bytes that are transposed around the group, but for its edges."""
        order, given = self.order, given_order(len(self.order))
        if order == given:
            return self._reduced_cost()
        total = self._reduced_cost() + sum(self.read_cost(value, order) for value in self.reads)
        total += sum(_given_cost(value, users, order) for value, users in self.uses.items())
        return total + sum(max(_parted_bytes(op, order) - _parted_bytes(op, given), 0) for op in self.parting)

    def _reduced_cost(self) -> float:
        """Return the cost, in bytes, of transposing what reductions read: each kernel does it.

        Otherwise only what reads them in the program's order does.
        """
        given = (edge for edge in self.edges if isinstance(edge, _Transpose) and edge.target is self)
        # Whole rows are read as fast from elsewhere.
        if not any(edge.cost() > _LEAST_SHARE * _bytes(edge.value) for edge in given):
            return 0
        reduced = [value for value, users in self.uses.items() for user in users if user.name == REDUCE]
        return _LEAST_SHARE * sum(map(_bytes, reduced))

    def read_cost(self, value: ir.Value, order: Order) -> float:
        """Return the cost of the group's reads of a value from outside all groups in an order."""
        return _read_cost(value, order) * (_UNTILED if self.is_pieced else 1)

    def improve(self, least_bytes: int) -> bool:
        """Take the cheapest order that makes up for one of the edges, if it saves so much; return whether so."""
        orders, saved = self._best()
        if saved <= least_bytes:
            return False
        _take(orders)
        return True

    def saved(self) -> float:
        """Return the bytes that the cheapest order saves that makes up for one of the edges; 0 if none does."""
        return self._best()[1]

    def _best(self) -> tuple[dict["_Group", Order], float]:
        """Return the orders that save most if this group makes up for one of its edges, and how many bytes they save.

        The groups that reshapes connect with this one may take orders that follow from it at the same time.
        """
        best, most = dict[_Group, Order](), 0.0
        for order in dict.fromkeys(each.order_without(self) for each in self.edges):
            if order is None or order == self.order:
                continue
            joined = _joined(self, order)
            for orders in ({self: order}, joined) if len(joined) > 1 else (joined,):
                old = {group: group.order for group in orders}
                # The old ones are taken again after the new ones have been tried.
                saved = _cost(old) - _cost(orders)
                _take(old)
                if saved > most:
                    best, most = orders, saved
        return best, most


def _take(orders: Mapping[_Group, Order]) -> None:
    for group, order in orders.items():
        group.order = order


def _cost(orders: Mapping[_Group, Order]) -> float:
    """Return the bytes that are transposed around groups that take such orders."""
    _take(orders)
    edges = dict.fromkeys(edge for group in orders for edge in group.edges)
    return sum(group.cost() for group in orders) + sum(edge.cost() for edge in edges)


def _joined(group: _Group, order: Order) -> dict[_Group, Order]:
    """Return the orders that follow from one of ``group`` for those that reshapes connect with it, and itself."""
    found, pending = {group: order}, [group]
    while pending and len(found) < _MOST_JOINED:
        known = pending.pop()
        for edge in known.edges:
            other = edge.other(known)
            if isinstance(edge, _Reshape) and other is not None and other not in found and other.is_joined:
                follows = edge.order_beside(known, found[known])
                if follows is not None and follows != other.order:
                    found[other] = follows
                    pending.append(other)
    return found


@dataclass(eq=False)
class _Edge:
    """An operation that makes values of the group ``target`` of ``value``, which is of the group ``source`` if any."""

    value: ir.Value
    source: _Group | None
    target: _Group

    def other(self, group: _Group) -> _Group | None:
        """Return the group at the other end."""
        return self.source if group is self.target else self.target

    def source_order(self) -> Order:
        """Return the order of ``value``."""
        return given_order(len(shape_of(self.value))) if self.source is None else self.source.order


@dataclass(eq=False)
class _Transpose(_Edge):
    """A transpose, of which a ``share`` is read."""

    permutation: Order
    share: float

    @classmethod
    def of(cls, op: ir.Operation, groups: Mapping[ir.Value, _Group]) -> "_Transpose":
        """Return the edge of a transpose between groups."""
        (value,), (result,) = op.operands, op.results
        users = users_of(result)
        are_slices = bool(users) and all(user.name == "stablehlo.slice" for user in users)
        read = sum(_bytes(user.results[0]) for user in users) if are_slices else _bytes(value)
        share = min(1, read / max(1, _bytes(value)))
        return cls(value, groups.get(value), groups[result], tuple(integers(op, "permutation")), share)

    def cost(self) -> float:
        """Return the bytes that it moves."""
        target = self.target.order
        if self.source is None:
            read = tuple(self.permutation[each] for each in target)
            return self.target.read_cost(self.value, read) * self.share
        source = self.source.order
        order = relative(source, self.permutation, target)
        moved = _moved(self.value, permuted(shape_of(self.value), source), order)
        # Rows of whole sectors need no tile.
        return moved * _UNTILED if self.target.is_pieced and moved == _bytes(self.value) else moved

    def order_without(self, group: _Group) -> Order | None:
        """Return the order of ``group`` in which nothing is to be transposed here."""
        if group is self.source:
            return tuple(self.permutation[each] for each in self.target.order)
        return tuple(self.permutation.index(each) for each in self.source_order())


@dataclass(eq=False)
class _Reshape(_Edge):
    """A reshape to an array of ``shape``."""

    shape: Sequence[int]

    @classmethod
    def of(cls, op: ir.Operation, groups: Mapping[ir.Value, _Group]) -> "_Reshape":
        """Return the edge of a reshape between groups."""
        (value,), (result,) = op.operands, op.results
        return cls(value, groups.get(value), groups[result], shape_of(result))

    def cost(self) -> float:
        """Return the bytes that are moved before or after it: none between orders that follow from each other."""
        source, target, shape = self.source_order(), self.target.order, shape_of(self.value)
        if reshaped_order(source, shape, self.shape) == target:
            return 0
        share = _UNTILED if self.target.is_pieced else 1
        between = orders_around(source, shape, target, self.shape)
        before = _moved(self.value, permuted(shape, source), steps(source, between[0]))
        return share * (before + _moved(self.value, permuted(self.shape, between[1]), steps(between[1], target)))

    def order_without(self, group: _Group) -> Order | None:
        """Return the order of ``group`` in which nothing is to be transposed here; None if there is none."""
        other = self.other(group)
        return self.order_beside(other, self.source_order() if other is None else other.order)

    def order_beside(self, group: _Group | None, order: Order) -> Order | None:
        """Return the order at the other end that follows from that of ``group``, the source if None."""
        shape = shape_of(self.value)
        if group is self.target:
            return reshaped_order(order, self.shape, shape)
        return reshaped_order(order, shape, self.shape)


def steps(source: Order, target: Order) -> Order:
    """Return the transpose that makes an array in one order one in another."""
    return relative(source, given_order(len(source)), target)


def orders_around(source: Order, shape: Sequence[int], target: Order, result: Sequence[int]) -> tuple[Order, Order]:
    """Return the orders of operand and result between which a reshape moves nothing, for arrays in such orders.

    What is transposed is the operand, if that alone is enough, then the result, and otherwise both.
    """
    if (before := reshaped_order(target, result, shape)) is not None:
        return before, target
    if (after := reshaped_order(source, shape, result)) is not None:
        return source, after
    return given_order(len(source)), given_order(len(target))


class AxisOrders:
    """The orders in which the values of a block are best computed; those of the program at first."""

    def __init__(self, block: ir.Block):
        self._groups: dict[ir.Value, _Group] = {}
        operations = [view.operation for view in block.operations]
        self._find_groups(operations)
        for op in operations:
            self._connect(op)
        self._spread_pieces()

    def choose(self, least_bytes: int) -> dict[ir.Value, Order]:
        """Choose the orders; return those that differ from the program's, by value. A change saves ``least_bytes``."""
        moving = [
            group
            for group in dict.fromkeys(self._groups.values())
            if any(isinstance(edge, _Transpose) for edge in group.edges)
        ]
        for _ in range(_MOST_ROUNDS):
            # Those first that save most: a value between two transposes makes up for both, and its neighbours for one.
            moving.sort(key=lambda group: -group.saved())
            changed = [group for group in moving if group.improve(least_bytes)]
            if not changed:
                break
        return {
            value: group.order for value, group in self._groups.items() if group.order != given_order(len(group.order))
        }

    def _find_groups(self, operations: Sequence[ir.Operation]) -> None:
        """Put every value that can have another order into its group."""
        parents: dict[ir.Value, ir.Value] = {}

        def root(value: ir.Value) -> ir.Value:
            while parents[value] != value:
                parents[value] = parents[parents[value]]
                value = parents[value]
            return value

        for op in operations:
            operands = carried(op)
            if not is_between(op) and not operands:
                continue
            parents.update((result, result) for result in op.results)
            first, *others = op.results
            for value in (*others, *operands):
                if value in parents:
                    parents[root(value)] = root(first)
        made = dict[ir.Value, _Group]()
        for value in parents:
            top = root(value)
            if top not in made:
                made[top] = _Group(given_order(len(shape_of(value))))
            self._groups[value] = made[top]

    def _connect(self, op: ir.Operation) -> None:
        """Record what an operation reads for the groups of its operands and results."""
        operands = carried(op)
        if is_between(op):
            edge = (_Transpose if op.name == TRANSPOSE else _Reshape).of(op, self._groups)
            for group in dict.fromkeys((edge.source, edge.target)):
                if group is not None:
                    group.edges.append(edge)
            return
        if operands:
            self._join(op, operands)
        inside = set(operands)
        for value in (*op.operands, *captured(op)):
            if value in self._groups and value not in inside:
                self._groups[value].uses.setdefault(value, []).append(op)

    def _spread_pieces(self) -> None:
        """Mark the groups that a marked one reads by a transpose or reshape: they are computed where that one is."""
        pending = [group for group in dict.fromkeys(self._groups.values()) if group.is_pieced]
        while pending:
            group = pending.pop()
            sources = [edge.source for edge in group.edges if edge.target is group]
            for source in sources:
                if source is not None and not source.is_pieced:
                    source.is_pieced = True
                    pending.append(source)

    def _join(self, op: ir.Operation, operands: Sequence[ir.Value]) -> None:
        """Record what an operation reads for its group, of ``operands`` with the dimensions of the result."""
        group = self._groups[op.results[0]]
        group.reads.update(dict.fromkeys(operand for operand in operands if operand not in self._groups))
        group.is_pieced |= op.name in _ELSEWHERE or OPERATIONS[op.name].kind == "piecewise"
        if _parted(op):
            group.parting.append(op)
