"""Variables with their ranges and values, and the code of expressions of them: where elements are."""

import math
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property

from xgpu import ir
from xgpu.dialects.xgpu import InDomainOp
from xgpu.emit.builders import apply_map
from xgpu.indexing.affine import AffineExpr, constant, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier
from xgpu.records import dataclass


@dataclass(frozen=True)
class ElementRun:
    """Some lanes whose elements are neighbours: the position of the first one."""

    first: AffineExpr
    count: int


@dataclass(frozen=True, eq=False)
class AddressSpace:
    """The variables ``dim(0)``, ``dim(1)``, ... of expressions, and ``symbol(0)``: the lane.

    Lanes are elements that a thread computes together; there is code for each of them, so their number is a constant.
    """

    ranges: tuple[Interval, ...]
    values: tuple[ir.Value, ...]
    lanes: int = 1
    _simple: dict[AffineExpr, AffineExpr] = field(default_factory=dict)
    _others: "dict[int, AddressSpace]" = field(default_factory=dict)
    """The same space with other numbers of lanes, each made once: what is found simple is remembered."""

    def extended(self, ranges: Sequence[Interval], values: Sequence[ir.Value]) -> "AddressSpace":
        """Return the space with more variables, after those that there are."""
        return AddressSpace((*self.ranges, *ranges), (*self.values, *values), self.lanes)

    def with_lanes(self, lanes: int) -> "AddressSpace":
        """Return the space with another number of lanes."""
        if lanes == self.lanes:
            return self
        if lanes not in self._others:
            self._others[lanes] = AddressSpace(self.ranges, self.values, lanes)
        return self._others[lanes]

    def simple(self, expression: AffineExpr) -> AffineExpr:
        """Return an expression in its simple form."""
        if expression not in self._simple:
            found = self._simplifier.simplify(expression)
            self._simple[expression] = self._simple[found] = found
        return self._simple[expression]

    @cached_property
    def _simplifier(self) -> Simplifier:
        return Simplifier(self.ranges, (Interval(0, self.lanes - 1),))

    def bounds(self, expression: AffineExpr) -> Interval:
        """Return the range of an expression."""
        return self.simple(expression).interval(self.ranges, (Interval(0, self.lanes - 1),))

    def at_lane(self, expression: AffineExpr, lane: int) -> AffineExpr:
        """Return the expression of one lane."""
        return self.simple(expression.substitute(None, [constant(lane)]))

    def index(self, expression: AffineExpr) -> ir.Value:
        """Write an expression, which does not depend on the lane."""
        map_, kept = IndexingMap(self.ranges, (), (self.simple(expression),)).remove_unused_dims()
        return apply_map(map_, [self.values[number] for number in kept])[0]

    def open_constraints(self, constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
        """Return those constraints that do not hold everywhere."""
        simple = [(self.simple(each), bound) for each, bound in constraints]
        return tuple((each, bound) for each, bound in simple if not bound.contains_interval(self.bounds(each)))

    def holds(self, constraints: Sequence[Constraint]) -> ir.Value | None:
        """Write whether constraints hold, which do not depend on the lane; None if they always do."""
        left = self.open_constraints(constraints)
        if not left:
            return None
        map_, kept = IndexingMap(self.ranges, (), (), left).remove_unused_dims()
        return InDomainOp.build(map_, [self.values[number] for number in kept])

    def has_lanes(self, expression: AffineExpr) -> bool:
        """Whether an expression depends on the lane."""
        return self.lanes > 1 and bool(self.simple(expression).variables()[1])

    def runs(self, position: AffineExpr, most: int) -> list[ElementRun]:
        """Return the lanes, in order, as runs of at most ``most`` neighbours that begin at multiples of their length.

        ``most`` is a power of two, as the number of lanes is. One run of a single element if all lanes have the same.
        """
        if not self.has_lanes(position):
            return [ElementRun(self.at_lane(position, 0), 1)]
        first = self.simple(position - symbol(0))
        if first.variables()[1]:
            return [ElementRun(self.at_lane(position, lane), 1) for lane in range(self.lanes)]
        count = math.gcd(first.divisor(), self.lanes, most)
        return [ElementRun(first + start, count) for start in range(0, self.lanes, count)]
