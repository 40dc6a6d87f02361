"""Chooses in which order of dimensions the values of a block are computed, so that the fewest bytes are transposed.

Values between which dimensions stay what they are, such as those that elementwise operations connect, are a *group* and
have one order. A transpose between two groups costs nothing in orders that make up for it; everything else reads and
gives values in the order of the program.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xgpu import ir
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.analysis.transposes import canonical, moves_rows
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.structure import captured, defining_op, dtype_of

TRANSPOSE = "stablehlo.transpose"
BROADCAST = "stablehlo.broadcast_in_dim"
type Order = tuple[int, ...]
"""The dimensions of a value in the order in which it is computed: ``(1, 0)`` for the columns of a matrix as rows."""

_CARRIERS: Mapping[str, int] = {
    "stablehlo.slice": 1,
    "stablehlo.pad": 1,
    "stablehlo.reverse": 1,
    "stablehlo.dynamic_slice": 1,
    "stablehlo.dynamic_update_slice": 2,
}
"""Operations beside elementwise ones whose dimensions are those of so many first operands."""
_ROWS_COST = 8
"""How many times less it costs to move whole rows than elements."""
_MOST_ROUNDS = 4
"""How often each group is asked for a better order."""


def _identity(rank: int) -> Order:
    return tuple(range(rank))


def inverse(order: Order) -> Order:
    """Return the order that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def permuted[T](items: Sequence[T], order: Order) -> list[T]:
    """Return one item for each dimension, in an order of dimensions."""
    return [items[dimension] for dimension in order]


def carried(op: ir.Operation) -> list[ir.Value]:
    """Return the operands of which the results of ``op`` have the dimensions, in order; none for other operations."""
    if not len(op.results) or not shape_of(op.results[0]) or len(op.regions):
        return []
    if op.name == "stablehlo.concatenate":
        return list(op.operands)
    if op.name in _CARRIERS:
        return list(op.operands)[: _CARRIERS[op.name]]
    if op.name not in OPERATIONS or OPERATIONS[op.name].kind != "elementwise":
        return []
    shape = shape_of(op.results[0])
    arrays = [operand for operand in op.operands if shape_of(operand)]
    return arrays if all(shape_of(each) == shape for each in arrays) else []


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


def is_free(value: ir.Value) -> bool:
    """Whether a value can be made in any order at once."""
    op = defining_op(value)
    if op is None:
        return False
    return op.name == "stablehlo.iota" or (op.name == "stablehlo.constant" and splat_of(op) is not None)


def _bytes(value: ir.Value) -> float:
    return math.prod(shape_of(value)) * dtype_of(value).bits / 8


def _moved(value: ir.Value, shape: Sequence[int], permutation: Order) -> float:
    """Return what it costs to transpose the elements of ``value`` in such a shape, in bytes."""
    transpose = canonical(shape, permutation)
    if transpose is None:
        return 0
    return _bytes(value) / (_ROWS_COST if moves_rows(transpose, dtype_of(value).bits) else 1)


def _mixed(op: ir.Operation) -> set[int]:
    """Return the dimensions along which neighbours in the result of ``op`` are not read, or made, as neighbours."""
    if op.name == "stablehlo.concatenate":
        return {integer(op, "dimension")}
    if op.name == "stablehlo.slice":
        return {number for number, stride in enumerate(integers(op, "strides")) if stride > 1}
    return set()


def _mixed_cost(op: ir.Operation, order: Order) -> float:
    """Return what it costs that memory has neighbours of an operation in an order that are none to it, in bytes."""
    result = op.results[0]
    long = [dimension for dimension in order if shape_of(result)[dimension] > 1]
    return _bytes(result) if long and long[-1] in _mixed(op) else 0


def _read_cost(value: ir.Value, order: Order) -> float:
    """Return what it costs that a value from outside all groups is read in another order."""
    if is_free(value):
        return 0
    op = defining_op(value)
    if op is not None and op.name == BROADCAST:
        operand_order, _ = broadcast_order(op, order)
        return _moved(op.operands[0], shape_of(op.operands[0]), operand_order)
    return _moved(value, shape_of(value), order)


def _use_cost(value: ir.Value, user: ir.Operation, order: Order) -> float:
    """Return what it costs that an operation outside all groups reads ``value``, which is in another order."""
    if user.name == REDUCE and is_commutative(user):
        result = user.results[0]
        return _moved(result, shape_of(result), reduced_order(user, order))
    return _moved(value, permuted(shape_of(value), order), inverse(order))


@dataclass(eq=False)
class _Group:
    """Values of one order: what operations ``reads`` from outside, who ``uses`` them, and the transposes around it.

    ``mixing`` are operations that take or make no neighbours along some dimensions.
    """

    order: Order
    reads: dict[ir.Value, None] = field(default_factory=dict)
    uses: dict[ir.Value, list[ir.Operation]] = field(default_factory=dict)
    transposes: "list[_Transposed]" = field(default_factory=list)
    mixing: list[ir.Operation] = field(default_factory=list)

    def cost(self, order: Order) -> float:
        """Return what is transposed around the group in an order, in bytes."""
        total, given = 0.0, _identity(len(order))
        if order != given:
            total += sum(_read_cost(value, order) for value in self.reads)
            total += sum(max(_mixed_cost(op, order) - _mixed_cost(op, given), 0) for op in self.mixing)
            # Users of the program's order share a value in it.
            for value, users in self.uses.items():
                reductions = [_use_cost(value, user, order) for user in users if user.name == REDUCE]
                others = [_use_cost(value, user, order) for user in users if user.name != REDUCE][:1]
                total += sum(reductions) + sum(others)
        return total + sum(each.cost(self, order) for each in self.transposes)

    def improve(self, least_bytes: int) -> bool:
        """Take the cheapest order that makes up for one of the transposes, if it saves so much; return whether so."""
        candidates = dict.fromkeys(each.order_without(self) for each in self.transposes)
        best, least = self.order, self.cost(self.order) - least_bytes
        for order in candidates:
            if order != self.order and (cost := self.cost(order)) < least:
                best, least = order, cost
        changed, self.order = best != self.order, best
        return changed


@dataclass(eq=False)
class _Transposed:
    """A transpose of ``value``, of the group ``source`` if of any, to the group ``target``."""

    value: ir.Value
    permutation: tuple[int, ...]
    source: _Group | None
    target: _Group

    def cost(self, group: _Group, order: Order) -> float:
        """Return what it costs if ``group`` has an order."""
        target = order if group is self.target else self.target.order
        if self.source is None:
            return _read_cost(self.value, tuple(self.permutation[each] for each in target))
        source = order if group is self.source else self.source.order
        return _moved(self.value, permuted(shape_of(self.value), source), relative(source, self.permutation, target))

    def order_without(self, group: _Group) -> Order:
        """Return the order of ``group`` in which nothing is to be transposed here."""
        if group is self.source:
            return tuple(self.permutation[each] for each in self.target.order)
        source = _identity(len(self.permutation)) if self.source is None else self.source.order
        return tuple(self.permutation.index(each) for each in source)


class AxisOrders:
    """The orders in which the values of a block are best computed; those of the program at first."""

    def __init__(self, block: ir.Block):
        self._groups: dict[ir.Value, _Group] = {}
        operations = [view.operation for view in block.operations]
        self._find_groups(operations)
        for op in operations:
            self._connect(op)

    def choose(self, least_bytes: int) -> dict[ir.Value, Order]:
        """Choose the orders; return those that differ from the program's, by value. A change saves ``least_bytes``."""
        groups = list(dict.fromkeys(self._groups.values()))
        moving = [group for group in groups if group.transposes]
        for _ in range(_MOST_ROUNDS):
            changed = [group for group in moving if group.improve(least_bytes)]
            if not changed:
                break
        return {
            value: group.order for value, group in self._groups.items() if group.order != _identity(len(group.order))
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
            if op.name != TRANSPOSE and not operands:
                continue
            for result in op.results:
                parents[result] = result
                for operand in operands:
                    if operand in parents:
                        parents[root(operand)] = root(result)
        made = dict[ir.Value, _Group]()
        for value in parents:
            top = root(value)
            if top not in made:
                made[top] = _Group(_identity(len(shape_of(value))))
            self._groups[value] = made[top]

    def _connect(self, op: ir.Operation) -> None:
        """Record what an operation reads for the groups of its operands and results."""
        operands = carried(op)
        if op.name == TRANSPOSE:
            source, target = self._groups.get(op.operands[0]), self._groups[op.results[0]]
            transposed = _Transposed(op.operands[0], tuple(integers(op, "permutation")), source, target)
            for group in dict.fromkeys((source, target)):
                if group is not None:
                    group.transposes.append(transposed)
            return
        for operand in operands:
            if operand not in self._groups:
                self._groups[op.results[0]].reads[operand] = None
        if operands and _mixed(op):
            self._groups[op.results[0]].mixing.append(op)
        for value in (*op.operands, *captured(op)):
            if value in self._groups and value not in operands:
                self._groups[value].uses.setdefault(value, []).append(op)
