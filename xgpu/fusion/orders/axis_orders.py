"""Chooses in which order of dimensions the values of a block are computed, so that the fewest bytes are transposed.

Values between which dimensions stay what they are, such as those that elementwise operations connect, are a *group* and
have one order. A transpose between two groups costs nothing in orders that make up for it; a reshape in orders that
follow one from the other, and so does an operation that keeps some dimensions, such as a reduction or a gather.
Everything else reads and gives values in the order of the program.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.fusion.orders.carriers import ELSEWHERE, TRANSPOSE, carried, is_between
from xgpu.fusion.orders.kept_dimensions import KeptDimensions, kept_dimensions
from xgpu.fusion.orders.move_costs import parted_dimensions
from xgpu.fusion.orders.order_groups import KeptEdge, OrderEdge, OrderGroup, ReshapeEdge, TransposeEdge
from xgpu.fusion.orders.permutations import given_order
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import shape_of
from xgpu.indexing.reshapes import Order
from xgpu.structure import captured

_MOST_ROUNDS = 4
"""The number of times that each group is asked for a better order; two rounds were enough for all programs tried."""


class AxisOrders:
    """The orders in which the values of a block are best computed; those of the program at first."""

    def __init__(self, block: ir.Block):
        self._groups: dict[ir.Value, OrderGroup] = {}
        operations = [view.operation for view in block.operations]
        # By the first result: an operation is another key once its operands have changed.
        self._kept = {op.results[0]: kept for op in operations if (kept := kept_dimensions(op))}
        self._find_groups(operations)
        for op in operations:
            self._connect(op)
        self._spread_pieces()

    def choose(self, least_bytes: int) -> dict[ir.Value, Order]:
        """Choose the orders; return those that differ from the program's, by value. A change saves ``least_bytes``."""
        moving = [
            group
            for group in dict.fromkeys(self._groups.values())
            if any(isinstance(edge, TransposeEdge | KeptEdge) for edge in group.edges)
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

    def kept_by(self, op: ir.Operation) -> Sequence[KeptDimensions]:
        """Return what an operation kept of the dimensions of its operands when the orders were chosen."""
        return self._kept.get(op.results[0], ()) if len(op.results) else ()

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
            if not is_between(op) and not operands and not self.kept_by(op):
                continue
            parents.update((result, result) for result in op.results)
            first, *others = op.results
            for value in (*others, *operands):
                if value in parents:
                    parents[root(value)] = root(first)
        made = dict[ir.Value, OrderGroup]()
        for value in parents:
            top = root(value)
            if top not in made:
                made[top] = OrderGroup(given_order(len(shape_of(value))))
            self._groups[value] = made[top]

    def _connect(self, op: ir.Operation) -> None:
        """Record what an operation reads for the groups of its operands and results."""
        operands = carried(op)
        if is_between(op):
            _add((TransposeEdge if op.name == TRANSPOSE else ReshapeEdge).of(op, self._groups))
            return
        if operands:
            self._join(op, operands)
        kept = self.kept_by(op)
        for each in kept:
            _add(KeptEdge.of(each, self._groups))
        if op.name == REDUCE:
            for value in list(op.operands)[: len(op.results)]:
                if value in self._groups:
                    self._groups[value].reduced.append(value)
        inside = {*operands, *(each.value for each in kept)}
        for value in (*op.operands, *captured(op)):
            if value in self._groups and value not in inside:
                self._groups[value].uses.setdefault(value, []).append(op)

    def _spread_pieces(self) -> None:
        """Mark the groups that a marked one reads and that are computed where that one is."""
        pending = [group for group in dict.fromkeys(self._groups.values()) if group.is_pieced]
        while pending:
            group = pending.pop()
            sources = [edge.source for edge in group.edges if edge.target is group and edge.is_computed_where_read]
            for source in sources:
                if source is not None and not source.is_pieced:
                    source.is_pieced = True
                    pending.append(source)

    def _join(self, op: ir.Operation, operands: Sequence[ir.Value]) -> None:
        """Record what an operation reads for its group, of ``operands`` with the dimensions of the result."""
        group = self._groups[op.results[0]]
        group.reads.update(dict.fromkeys(operand for operand in operands if operand not in self._groups))
        group.is_pieced |= op.name in ELSEWHERE or (op.name in OPERATIONS and OPERATIONS[op.name].kind == "piecewise")
        if parted_dimensions(op):
            group.parting.append(op)


def _add(edge: OrderEdge) -> None:
    for group in dict.fromkeys((edge.source, edge.target)):
        if group is not None:
            group.edges.append(edge)
