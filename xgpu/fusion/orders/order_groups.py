"""Groups of values that have one order of dimensions, and the operations between groups, with what these cost."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from xgpu import ir
from xgpu.costs.values import byte_size
from xgpu.fusion.orders.kept_dimensions import BESIDE, Beside, KeptDimensions
from xgpu.fusion.orders.move_costs import (
    LEAST_SHARE,
    UNTILED,
    given_cost,
    moved_bytes,
    parted_bytes,
    read_cost,
)
from xgpu.fusion.orders.permutations import given_order, orders_around, permuted, relative, steps
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.reshapes import Order, reshaped_order
from xgpu.records import dataclass
from xgpu.structure import users_of

_MOST_JOINED = 16
"""Groups that follow each other whose orders are tried together, and edges of each but the first: time is linear.

A sum that all layers add to has many edges, and is asked by itself.
"""


@dataclass(eq=False)
class OrderGroup:
    """Values of one order: what operations ``reads`` from outside, who ``uses`` them, and the ``edges`` to others.

    ``reduced`` are those that reductions read, once for each. ``parting`` are operations that take or make neighbours
    apart along some dimensions. ``is_pieced``: some operations read one operand here and another there, or elements
    elsewhere, and what is transposed for these takes no tiles.
    """

    order: Order
    reads: dict[ir.Value, None] = field(default_factory=dict)
    uses: dict[ir.Value, list[ir.Operation]] = field(default_factory=dict)
    edges: "list[OrderEdge]" = field(default_factory=list)
    reduced: list[ir.Value] = field(default_factory=list)
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
        total += sum(given_cost(value, users, order) for value, users in self.uses.items())
        return total + sum(max(parted_bytes(op, order) - parted_bytes(op, given), 0) for op in self.parting)

    def _reduced_cost(self) -> float:
        """Return the cost, in bytes, of transposing what reductions read: each kernel does it.

        Otherwise only what reads them in the program's order does.
        """
        given = (edge for edge in self.edges if isinstance(edge, TransposeEdge) and edge.target is self)
        # Whole rows are read as fast from elsewhere.
        if not any(edge.cost() > LEAST_SHARE * byte_size(edge.value) for edge in given):
            return 0
        return LEAST_SHARE * sum(map(byte_size, self.reduced))

    def read_cost(self, value: ir.Value, order: Order) -> float:
        """Return the cost of the group's reads of a value from outside all groups in an order."""
        return read_cost(value, order) * (UNTILED if self.is_pieced else 1)

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

    def _best(self) -> tuple[dict["OrderGroup", Order], float]:
        """Return the orders that save most if this group makes up for one of its edges, and how many bytes they save.

        The groups that follow this one, through reshapes and operations that keep some dimensions, may take orders that
        follow from it at the same time.
        """
        best, most = dict[OrderGroup, Order](), 0.0
        for order in dict.fromkeys(each.order_without(self) for each in self.edges):
            if order is None or order == self.order:
                continue
            for orders in _tried(self, order):
                old = {group: group.order for group in orders}
                # The old ones are taken again after the new ones have been tried.
                saved = _cost(old) - _cost(orders)
                _take(old)
                if saved > most:
                    best, most = orders, saved
        return best, most


def _take(orders: Mapping[OrderGroup, Order]) -> None:
    for group, order in orders.items():
        group.order = order


def _cost(orders: Mapping[OrderGroup, Order]) -> float:
    """Return the bytes that are transposed around groups that take such orders."""
    _take(orders)
    edges = dict.fromkeys(edge for group in orders for edge in group.edges)
    return sum(group.cost() for group in orders) + sum(edge.cost() for edge in edges)


def _tried(group: OrderGroup, order: Order) -> list[dict[OrderGroup, Order]]:
    """Return what to try where ``group`` takes an order: that it alone does, or with those that follow it."""
    found = [{group: order}]
    for beside in BESIDE:
        joined = _joined(group, order, beside)
        if joined not in found:
            found.append(joined)
    return found


def _joined(group: OrderGroup, order: Order, beside: Beside) -> dict[OrderGroup, Order]:
    """Return the orders that follow from one of ``group`` for those that follow it, and itself."""
    found, pending = {group: order}, [group]
    while pending and len(found) < _MOST_JOINED:
        known = pending.pop()
        for edge in known.edges:
            other = edge.other(known)
            if (
                isinstance(edge, ReshapeEdge | KeptEdge)
                and other is not None
                and other not in found
                and other.is_joined
            ):
                follows = edge.order_beside(known, found[known], beside)
                if follows is not None and follows != other.order:
                    found[other] = follows
                    pending.append(other)
    return found


@dataclass(eq=False)
class OrderEdge:
    """An operation that makes values of the group ``target`` of ``value``, which is of the group ``source`` if any."""

    value: ir.Value
    source: OrderGroup | None
    target: OrderGroup

    @property
    def is_computed_where_read(self) -> bool:
        """Whether ``value`` is computed again by what reads the result."""
        return True

    def cost(self) -> float:
        """Return the bytes that are moved here."""
        raise NotImplementedError

    def order_without(self, group: OrderGroup) -> Order | None:
        """Return the order of ``group`` in which nothing is to be transposed here; None if there is none."""
        raise NotImplementedError

    def other(self, group: OrderGroup) -> OrderGroup | None:
        """Return the group at the other end."""
        return self.source if group is self.target else self.target

    def source_order(self) -> Order:
        """Return the order of ``value``."""
        return given_order(len(shape_of(self.value))) if self.source is None else self.source.order


@dataclass(eq=False)
class TransposeEdge(OrderEdge):
    """A transpose, of which a ``share`` is read."""

    permutation: Order
    share: float

    @classmethod
    def of(cls, op: ir.Operation, groups: Mapping[ir.Value, OrderGroup]) -> "TransposeEdge":
        """Return the edge of a transpose between groups."""
        (value,), (result,) = op.operands, op.results
        users = users_of(result)
        are_slices = bool(users) and all(user.name == "stablehlo.slice" for user in users)
        read = sum(byte_size(user.results[0]) for user in users) if are_slices else byte_size(value)
        share = min(1, read / max(1, byte_size(value)))
        return cls(value, groups.get(value), groups[result], tuple(integers(op, "permutation")), share)

    def cost(self) -> float:
        """Return the bytes that it moves."""
        target = self.target.order
        if self.source is None:
            read = tuple(self.permutation[each] for each in target)
            return self.target.read_cost(self.value, read) * self.share
        source = self.source.order
        order = relative(source, self.permutation, target)
        moved = moved_bytes(self.value, permuted(shape_of(self.value), source), order)
        # Rows of whole sectors need no tile.
        return moved * UNTILED if self.target.is_pieced and moved == byte_size(self.value) else moved

    def order_without(self, group: OrderGroup) -> Order | None:
        """Return the order of ``group`` in which nothing is to be transposed here."""
        if group is self.source:
            return tuple(self.permutation[each] for each in self.target.order)
        return tuple(self.permutation.index(each) for each in self.source_order())


@dataclass(eq=False)
class ReshapeEdge(OrderEdge):
    """A reshape to an array of ``shape``."""

    shape: Sequence[int]

    @classmethod
    def of(cls, op: ir.Operation, groups: Mapping[ir.Value, OrderGroup]) -> "ReshapeEdge":
        """Return the edge of a reshape between groups."""
        (value,), (result,) = op.operands, op.results
        return cls(value, groups.get(value), groups[result], shape_of(result))

    def cost(self) -> float:
        """Return the bytes that are moved before or after it: none between orders that follow from each other."""
        source, target, shape = self.source_order(), self.target.order, shape_of(self.value)
        if reshaped_order(source, shape, self.shape) == target:
            return 0
        share = UNTILED if self.target.is_pieced else 1
        between = orders_around(source, shape, target, self.shape)
        before = moved_bytes(self.value, permuted(shape, source), steps(source, between[0]))
        return share * (before + moved_bytes(self.value, permuted(self.shape, between[1]), steps(between[1], target)))

    def order_without(self, group: OrderGroup) -> Order | None:
        """Return the order of ``group`` in which nothing is to be transposed here; None if there is none."""
        other = self.other(group)
        return self.order_beside(other, self.source_order() if other is None else other.order)

    def order_beside(self, group: OrderGroup | None, order: Order, beside: Beside = "places") -> Order | None:
        """Return the order at the other end that follows from that of ``group``, the source if None."""
        shape = shape_of(self.value)
        if group is self.target:
            return reshaped_order(order, self.shape, shape)
        return reshaped_order(order, shape, self.shape)


@dataclass(eq=False)
class KeptEdge(OrderEdge):
    """An operation that keeps some dimensions."""

    kept: KeptDimensions

    @classmethod
    def of(cls, kept: KeptDimensions, groups: Mapping[ir.Value, OrderGroup]) -> "KeptEdge":
        """Return the edge of an operation between groups."""
        return cls(kept.value, groups.get(kept.value), groups[kept.made], kept)

    @property
    def is_computed_where_read(self) -> bool:
        """Whether ``value`` is computed again by what reads the result: sums and updates are stored."""
        return self.kept.is_computed_where_read

    def cost(self) -> float:
        """Return the bytes that are moved before or after it, and those of indexing."""
        source, target, kept = self.source_order(), self.target.order, self.kept
        between = kept.between(source, target)
        if kept.is_made_later:
            moved = moved_bytes(kept.made, permuted(shape_of(kept.made), between), steps(between, target))
        elif self.source is None:
            moved = read_cost(kept.value, between)
        else:
            moved = moved_bytes(kept.value, permuted(shape_of(kept.value), source), steps(source, between))
        return kept.access_bytes(source, target) + moved * (UNTILED if self.target.is_pieced else 1)

    def order_without(self, group: OrderGroup) -> Order | None:
        """Return the order of ``group`` in which nothing is to be transposed here; None if nothing is anywhere."""
        order = self.target.order if group is self.source else self.source_order()
        return None if order == given_order(len(order)) else self.order_beside(self.other(group), order)

    def order_beside(self, group: OrderGroup | None, order: Order, beside: Beside = "places") -> Order | None:
        """Return the order at the other end that follows from that of ``group``, the source if None."""
        return self.kept.value_order(order, beside) if group is self.target else self.kept.made_order(order, beside)
