"""The pass `simplify-indexing`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import map_attribute, map_of
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp, PureCallOp
from xgpu.errors import InvalidInput
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.support.index_ops import (
    IndexConstants,
    IndexScope,
    Scopes,
    create_apply,
    create_in_domain,
    erase_unused,
    peak,
)
from xgpu.passes.support.ranges import INDEX_RANGE, KnownRanges, constant_of, predicate_of
from xgpu.records import dataclass
from xgpu.structure import owning_op, walk

Constraint = tuple[AffineExpr, Interval]
Constraints = tuple[Constraint, ...]
_Create = Callable[[ir.Attribute, Sequence[ir.Value]], ir.Value]

_LARGEST_SIZE = 128
"""Larger expressions could nest deeper than the text of a map may."""
_MAX_FACTS = 8
"""Constraints kept as facts on one `xgpu.apply_indexing`, so that they do not pile up along a chain."""
_MAX_FACT_SIZE = 32
"""Nodes of the expression of such a constraint."""
_INT32_MAX = (1 << 31) - 1
_SWAPPED = {
    "slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle", "ult": "ugt", "ule": "uge", "ugt": "ult", "uge": "ule"
}  # fmt: skip
"""The predicate that holds when the operands of a comparison change places."""


@dataclass(frozen=True)
class SimplifyIndexing(Pass):
    """Composes and simplifies index computations, and moves them out of loops.

    Each `xgpu.apply_indexing` is composed with those that make its operands, simplified with the ranges of what is
    left, and split into one operation per result; results that are a constant or a variable are replaced by it. An
    `xgpu.in_domain` keeps only the tests that can fail; comparisons of an index with a constant become one, so that
    `4 * x + s < 4 * m` no longer depends on `s`. Equal operations merge where one dominates; each goes before the
    outermost loop that its operands allow (all are pure, and undefined where their domain does not hold). Index
    operations and `xgpu.pure_call`s without users go away.
    Needs: nothing. Run it after flatten-tensors and after passes that clone loop bodies.

    ```mlir
    %i, %j = "xgpu.apply_indexing"(%n) {map = #xgpu.map<(d0) -> (d0 floordiv 16, d0 mod 16), d0 in [0, 127]>}
    %k = "xgpu.apply_indexing"(%i, %j, %s) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 64 + d1 * 4 + d2), ...>}
    ```
    becomes
    ```mlir
    %k = "xgpu.apply_indexing"(%n, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 127], d1 in [0, 3]>}
    ```
    """

    NAME: ClassVar[str] = "simplify-indexing"
    max_size: int = 128
    """The most nodes of a composed expression; a larger one is left as a computation from its operands."""

    def apply(self, module: ir.Module) -> None:
        """Simplify the index operations of every function of ``module``."""
        if self.max_size > _LARGEST_SIZE:
            raise InvalidInput(f"pass '{self.NAME}', option 'max-size': expected at most {_LARGEST_SIZE}")
        for function in functions(module):
            _Simplifier(function.operation, self.max_size).run()


@dataclass(frozen=True, slots=True)
class _Index:
    """An index as an expression of ``operands``, whose ranges are ``dims``, where ``facts`` hold."""

    expr: AffineExpr
    operands: tuple[ir.Value, ...]
    dims: tuple[Interval, ...]
    facts: Constraints


@dataclass(eq=False, slots=True)
class _Placed:
    """An operation in the block of ``scope`` that stands for all equal ones that it dominates."""

    op: ir.Operation
    scope: IndexScope
    map: IndexingMap


@dataclass(frozen=True, slots=True)
class _Composed:
    """A map over dimensions only, which are ``values``; its domain lies where ``facts`` hold."""

    values: list[ir.Value]
    map: IndexingMap
    facts: Constraints

    @property
    def assumed(self) -> IndexingMap:
        """The map with the facts as constraints."""
        return replace(self.map, constraints=self.map.constraints + self.facts)


class _Variables:
    """The dimensions of a map that is being composed: a position and a range for each value."""

    def __init__(self) -> None:
        self.positions: dict[ir.Value, int] = {}
        self.ranges: list[Interval] = []

    def get(self, value: ir.Value, interval: Interval) -> AffineExpr:
        """Return the dimension that stands for ``value``, which lies in ``interval`` as well."""
        position = self.positions.setdefault(value, len(self.positions))
        if position == len(self.ranges):
            self.ranges.append(interval)
        else:
            self.ranges[position] = self.ranges[position].intersect(interval)
        return dim(position)


class _Simplifier:
    """Rewrites one function in one walk: operands are simplified before what uses them."""

    def __init__(self, function: ir.Operation, max_size: int):
        self._function = function
        self._max_size = max_size
        self._ranges = KnownRanges()
        self._constants = IndexConstants(function)
        self._scopes = Scopes(function)
        self._indices: dict[ir.Value, _Index] = {}
        self._placed: dict[object, _Placed] = {}
        self._order: dict[ir.Value, int] = {}
        self._seen: list[ir.Operation] = []

    def run(self) -> None:
        """Simplify the function and remove what that leaves without users."""
        handlers = {
            ApplyIndexingOp.OPERATION_NAME: self._apply_indexing,
            InDomainOp.OPERATION_NAME: self._in_domain,
            "arith.cmpi": self._compare,
        }
        for op in walk(self._function, post_order=False):
            name = op.name
            if handler := handlers.get(name):
                self._scopes.move_to(op)
                with op.location:
                    handler(op)
                self._seen.append(op)
            elif name == PureCallOp.OPERATION_NAME:
                self._seen.append(op)
        # Nothing is erased before this: values are known by the addresses of their operations.
        erase_unused(self._seen)

    def _apply_indexing(self, op: ir.Operation) -> None:
        map_, operands = map_of(op.attributes["map"]), list(op.operands)
        limit = 2 * max((peak(expr, map_.dims, map_.symbols) for expr in map_.results), default=0)
        for inline in (True, False):
            composed = self._compose(map_, operands, inline)
            simple = composed.assumed.simplify()
            if self._is_small(simple.results, composed.map, limit if inline else None):
                break
        else:
            return
        for result, expr in zip(op.results, simple.results, strict=True):
            # No value is wrong where the map's domain is empty.
            value = self._value_of(op, constant(0) if simple.is_empty() else expr, composed.values, simple)
            _replace(result, value)

    def _is_small(self, exprs: Iterable[AffineExpr], map_: IndexingMap, limit: int | None) -> bool:
        """Tell whether expressions of the dimensions of ``map_`` may be written down.

        ``limit`` is given for composed ones: they must not be too large, nor meet values that need 64 bits, unless
        those up to ``limit`` were needed before.
        """
        if limit is None:
            return all(_is_printable(expr, map_) for expr in exprs)
        largest = max(limit, _INT32_MAX)
        return all(e.size() <= self._max_size and peak(e, map_.dims) <= largest for e in exprs)

    def _in_domain(self, op: ir.Operation) -> None:
        map_ = map_of(op.attributes["map"])
        self._replace_condition(op, replace(map_, results=()), list(op.operands))

    def _compare(self, op: ir.Operation) -> None:
        """Replace a comparison of a known index with a constant by an `xgpu.in_domain`."""
        value, bound = op.operands
        predicate, number = predicate_of(op), constant_of(bound)
        if number is None:
            value, bound = bound, value
            predicate, number = _SWAPPED.get(predicate, predicate), constant_of(bound)
        known = self._indices.get(value)
        if known is None or number is None:
            return
        interval = _satisfying(predicate, number, known.expr.interval(known.dims))
        if interval is not None and INDEX_RANGE.contains_interval(interval):
            map_ = IndexingMap(known.dims, (), (), ((known.expr, interval),))
            self._replace_condition(op, map_, list(known.operands))

    def _compose(self, map_: IndexingMap, operands: Sequence[ir.Value], inline: bool) -> _Composed:
        """Express ``map_`` by the operands of the operations that make its operands (if ``inline``)."""
        variables = _Variables()
        replacements: list[AffineExpr] = []
        facts: list[Constraint] = []
        for value, interval in zip(operands, map_.dims + map_.symbols, strict=True):
            number = constant_of(value)
            known = self._indices.get(value) if inline else None
            if number is not None:
                replacements.append(constant(number))
            elif known is None:
                replacements.append(variables.get(value, interval.intersect(self._ranges.index_range(value))))
            else:
                inner = [variables.get(*pair) for pair in zip(known.operands, known.dims, strict=True)]
                replacements.append(known.expr.substitute(inner))
                facts.append((replacements[-1], interval))
                facts += [(expr.substitute(inner), bounds) for expr, bounds in known.facts]
        dims, symbols = replacements[: len(map_.dims)], replacements[len(map_.dims) :]
        composed = IndexingMap(
            tuple(variables.ranges),
            (),
            tuple(expr.substitute(dims, symbols) for expr in map_.results),
            tuple((expr.substitute(dims, symbols), bounds) for expr, bounds in map_.constraints),
        )
        facts = [fact for fact in facts if not fact[1].contains_interval(fact[0].interval(composed.dims))]
        return _Composed(list(variables.positions), composed, tuple(facts))

    def _value_of(self, op: ir.Operation, expr: AffineExpr, values: Sequence[ir.Value], map_: IndexingMap) -> ir.Value:
        """Return a value for users of ``op``: ``expr``, a result of ``map_``, whose dimensions are ``values``."""
        if expr.is_constant:
            return self._constants.index(expr.constant)
        used = expr.variables()[0]
        if len(used) == 1:
            (variable,) = used
            if expr == dim(variable):
                return values[variable]
        order, renamed = self._sorted(used, values)
        facts = [
            (e.substitute(renamed), b)
            for e, b in map_.constraints
            if e.variables()[0] <= used and e.size() <= _MAX_FACT_SIZE and _is_printable(e, map_, b)
        ]
        new = IndexingMap(
            tuple(map_.dims[i] for i in order), (), (expr.substitute(renamed),), tuple(facts[:_MAX_FACTS])
        )
        operands = tuple(values[i] for i in order)
        placed = self._place(op, new, operands, create_apply)
        value = placed.op.results[0]
        self._indices[value] = _Index(placed.map.results[0], operands, placed.map.dims, placed.map.constraints)
        return value

    def _replace_condition(self, op: ir.Operation, map_: IndexingMap, operands: Sequence[ir.Value]) -> None:
        """Replace ``op``, whose result is whether the constraints of ``map_`` hold, by its simplest form."""
        limit = 2 * max((peak(expr, map_.dims, map_.symbols) for expr, _ in map_.constraints), default=0)
        for inline in (True, False):
            composed = self._compose(map_, operands, inline)
            constraints = _failing(composed.map)
            if self._is_small([expr for expr, _ in constraints or ()], composed.map, limit if inline else None):
                break
        else:
            return
        if not constraints:
            _replace(op.results[0], self._constants.boolean(constraints is not None))
            return
        used = set[int]().union(*(expr.variables()[0] for expr, _ in constraints))
        order, renamed = self._sorted(used, composed.values)
        new = IndexingMap(
            tuple(composed.map.dims[i] for i in order),
            (),
            (),
            tuple((expr.substitute(renamed), bounds) for expr, bounds in constraints),
        )
        placed = self._place(op, new, tuple(composed.values[i] for i in order), create_in_domain)
        _replace(op.results[0], placed.op.results[0])

    def _sorted(self, used: set[int], values: Sequence[ir.Value]) -> tuple[list[int], dict[int, AffineExpr]]:
        """Order variables by how deep they are defined, then by first use; return the order and their new names."""

        def key(variable: int) -> tuple[int, int]:
            value = values[variable]
            return self._scopes.depth_of(value), self._order.setdefault(value, len(self._order))

        order = sorted(sorted(used), key=key)
        return order, {old: dim(new) for new, old in enumerate(order)}

    def _place(self, op: ir.Operation, map_: IndexingMap, operands: tuple[ir.Value, ...], create: _Create) -> _Placed:
        """Return an operation that computes ``map_`` for the users of ``op``: one that is there, or a new one."""
        key = (map_.results, () if map_.results else map_.constraints, operands)
        placed = self._placed.get(key)
        if placed and placed.scope.open:
            _widen(placed, map_)
            return placed
        place = self._scopes.outside_loops(op, max(map(self._scopes.depth_of, operands)))
        if _is(op, map_, operands):
            if place.anchor != op:
                op.move_before(place.anchor)
            made = op
        else:
            with ir.InsertionPoint(place.anchor):
                made = owning_op(create(map_attribute(map_), operands))
            self._seen.append(made)
        placed = self._placed[key] = _Placed(made, place.scope, map_)
        return placed


def _failing(map_: IndexingMap) -> Constraints | None:
    """Return what must be tested to know that variables in their ranges are in the domain; None if they never are."""
    simple = map_.simplify()
    if simple.is_empty():
        return None
    checks = simple.domain_checks(map_.dims, ())
    if len(checks) > len(simple.constraints) > 0:
        # What the other constraints imply for a variable needs no test of its own.
        implied = replace(map_, constraints=simple.constraints).simplify().dims
        redundant = {(dim(i), interval) for i, interval in enumerate(implied)}
        checks = tuple(check for check in checks if check not in redundant)
    return checks


def _is_printable(expr: AffineExpr, map_: IndexingMap, bounds: Interval = INDEX_RANGE) -> bool:
    """Tell whether what an expression of the dimensions of ``map_`` meets fits 64 bits, as numbers in maps must."""
    return peak(expr, map_.dims) <= INDEX_RANGE.upper and INDEX_RANGE.contains_interval(bounds)


def _replace(old: ir.Value, new: ir.Value) -> None:
    if old != new:
        old.replace_all_uses_with(new)


def _is(op: ir.Operation, map_: IndexingMap, operands: tuple[ir.Value, ...]) -> bool:
    """Tell whether ``op`` already is the operation that computes ``map_`` of ``operands``."""
    if "map" not in op.attributes or len(op.results) != 1 or tuple(op.operands) != operands:
        return False
    return map_of(op.attributes["map"]) == map_


def _widen(placed: _Placed, map_: IndexingMap) -> None:
    """Let the operation be defined where the equal one with ``map_`` is as well."""
    dims = tuple(old.union(new) for old, new in zip(placed.map.dims, map_.dims, strict=True))
    constraints = placed.map.constraints
    if map_.results:
        constraints = tuple(fact for fact in constraints if fact in map_.constraints)
    wider = replace(placed.map, dims=dims, constraints=constraints)
    if wider != placed.map:
        placed.map = wider
        placed.op.attributes["map"] = map_attribute(wider)


def _satisfying(predicate: str, number: int, whole: Interval) -> Interval | None:
    """Return the values of ``whole`` that compare so with ``number``; None if they are no interval."""
    if predicate[0] == "u":
        if whole.lower < 0 or number < 0:
            return None
        predicate = "s" + predicate[1:]
    match predicate:
        case "eq":
            return Interval(number, number)
        case "slt":
            return Interval(whole.lower, number - 1)
        case "sle":
            return Interval(whole.lower, number)
        case "sgt":
            return Interval(number + 1, whole.upper)
        case "sge":
            return Interval(number, whole.upper)
    return None
