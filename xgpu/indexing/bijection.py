"""Decides whether an indexing map reaches every element of an array exactly once.

Maps of threads to elements are mixed-radix numbers: the row-major position of the result is a sum of digits times
strides. So the question is decided by reasoning, for domains of any size, if

- the position is a sum of variables, or of digits of variables (``x mod a``, ``(x floordiv a) mod b``, ...), each once,
- where a linear form that is constrained or divided counts as one variable, if it numbers the points of its variables
  one by one, and
- the results are known to be inside the array.

The digits are then independent, and the position takes each value of an interval once exactly if the strides, sorted,
are the products of the sizes of the digits before them. All else (swizzles, constraints across dimensions that have
nothing in common with the position) is decided by enumeration, for up to ``ENUMERATION_LIMIT`` points.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xgpu.indexing.affine import AffineExpr, Atom, Dim, Division, FloorDiv, Ranges, dim, linearize, weighted_sum
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier
from xgpu.records import dataclass

if TYPE_CHECKING:
    from xgpu.indexing.indexing_map import IndexingMap

ENUMERATION_LIMIT = 1 << 22
"""Points that the ranges of a map may have for enumeration; beyond it, what reasoning cannot decide is unknown."""


@dataclass(frozen=True)
class Coverage:
    """``counts[index]``: how many points of a domain map to that element; ``outside``: how many to no element."""

    counts: npt.NDArray[np.int64]
    outside: int

    @property
    def is_exact(self) -> bool:
        """Whether every element is reached once and nothing lies outside."""
        return not self.outside and bool((self.counts == 1).all())


def coverage(indexing_map: "IndexingMap", shape: Sequence[int]) -> Coverage:
    """Counts by enumeration; raises ``ValueError`` for maps above ``ENUMERATION_LIMIT`` or beyond 64-bit arithmetic."""
    _check_rank(indexing_map, shape)
    results = reached(indexing_map)
    inside = np.ones(results.shape[1], dtype=bool)
    position = np.zeros(results.shape[1], dtype=np.int64)
    for value, size in zip(results, shape, strict=True):
        inside &= (value >= 0) & (value < size)
        position = position * size + np.clip(value, 0, max(0, size - 1))
    counts = np.bincount(position[inside], minlength=math.prod(shape))
    return Coverage(counts.reshape(tuple(shape)), int(inside.size - inside.sum()))


def reached(indexing_map: "IndexingMap") -> npt.NDArray[np.int64]:
    """Return the results at every point of the domain: a row for each result. Raises ``ValueError`` as `coverage`."""
    if not _can_enumerate(indexing_map):
        raise ValueError(f"the map has too many points or too large numbers to enumerate: {indexing_map}")
    intervals = (*indexing_map.dims, *indexing_map.symbols)
    box = tuple(interval.size for interval in intervals)
    # Every variable varies along an axis of its own; numpy broadcasts where they meet.
    values: list[Any] = []
    for axis, interval in enumerate(intervals):
        own_axis = [1] * len(box)
        own_axis[axis] = interval.size
        values.append(np.arange(interval.lower, interval.lower + interval.size, dtype=np.int64).reshape(own_axis))
    dims, symbols = values[: len(indexing_map.dims)], values[len(indexing_map.dims) :]
    in_domain = np.ones(box, dtype=bool)
    for expr, interval in indexing_map.constraints:
        value: Any = expr.evaluate(dims, symbols)
        in_domain &= (value >= interval.lower) & (value <= interval.upper)
    results = [np.broadcast_to(expr.evaluate(dims, symbols), box)[in_domain] for expr in indexing_map.results]
    return np.array(results, dtype=np.int64).reshape(len(results), int(in_domain.sum()))


def is_bijection(indexing_map: "IndexingMap", shape: Sequence[int]) -> bool | None:
    """True or False if that is known, else None: see the top of this file."""
    _check_rank(indexing_map, shape)
    simplified = indexing_map.simplify()
    if simplified.is_empty():
        return math.prod(shape) == 0
    if not simplified.constraints and simplified.box_size() != math.prod(shape):
        return False
    decided = _decide(simplified, shape)
    if decided is None and _can_enumerate(simplified):
        return coverage(simplified, shape).is_exact
    return decided


def _check_rank(indexing_map: "IndexingMap", shape: Sequence[int]) -> None:
    if len(indexing_map.results) != len(shape):
        raise ValueError(f"a map with {len(indexing_map.results)} results does not index an array of rank {len(shape)}")


def _can_enumerate(indexing_map: "IndexingMap") -> bool:
    exprs = (*indexing_map.results, *[expr for expr, _ in indexing_map.constraints])
    largest = [max(abs(i.lower), abs(i.upper), 1) for i in (*indexing_map.dims, *indexing_map.symbols)]
    fits = all(_magnitude(expr, max(largest, default=1)) < 1 << 63 for expr in exprs)
    return fits and indexing_map.box_size() <= ENUMERATION_LIMIT


def _magnitude(expr: AffineExpr, variable: int) -> int:
    """A bound of the absolute values in the evaluation of ``expr``, for variables up to ``variable``."""
    atoms = [(_magnitude(a.expr, variable) if isinstance(a, Division) else variable, c) for a, c in expr.terms]
    return abs(expr.constant) + sum(value * abs(c) for value, c in atoms)


def _decide(indexing_map: "IndexingMap", shape: Sequence[int]) -> bool | None:
    """Reasoning alone; ``indexing_map`` is simplified and not empty."""
    coordinates = _Coordinates(indexing_map, shape)
    if not coordinates.absorb_constraints() or not coordinates.absorb_dividends() or not coordinates.are_inside(shape):
        return None
    reached = coordinates.reached(coordinates.position)
    if reached is None:
        return None
    return reached == Interval(0, math.prod(shape) - 1) and not coordinates.has_others()


class _Coordinates:
    """Results and their position as functions of variables that are independent: no constraints but their ranges.

    Variables are replaced by their digits, and linear forms by new variables. All variables are dimensions here, those
    for symbols after the map's own.
    """

    def __init__(self, indexing_map: "IndexingMap", shape: Sequence[int]):
        rank = len(indexing_map.dims)
        symbols = [dim(rank + i) for i in range(len(indexing_map.symbols))]
        self._ranges = [*indexing_map.dims, *indexing_map.symbols]
        self._live = set(range(len(self._ranges)))
        self._constraints = [(expr.substitute(None, symbols), i) for expr, i in indexing_map.constraints]
        self._results = [expr.substitute(None, symbols) for expr in indexing_map.results]
        self.position = linearize(self._results, shape)
        self._rewrite({})

    def are_inside(self, shape: Sequence[int]) -> bool:
        """Whether all results are known to be indices of an array of ``shape``."""
        ranges = Ranges(self._ranges, ())
        bounds = zip(self._results, shape, strict=True)
        return all(Interval(0, size - 1).contains_interval(ranges.interval(expr)) for expr, size in bounds)

    def absorb_constraints(self) -> bool:
        """Makes every constrained expression a variable; False if one of them cannot be."""
        while self._constraints:
            expr, interval = self._constraints.pop()
            if not self._absorb(expr, interval):
                return False
        return True

    def absorb_dividends(self) -> bool:
        """Makes every sum that is divided in the position a variable; False if one of them cannot be."""
        while (dividend := _innermost_sum(self.position)) is not None:
            if not self._absorb(dividend, None):
                return False
        return True

    def reached(self, expr: AffineExpr) -> Interval | None:
        """The interval whose members ``expr`` takes once each over its variables; None if there is none, or unknown."""
        stride = 1
        lowest = expr.constant
        for atom, coefficient in _by_stride(expr):
            if not isinstance(atom, Dim) or atom.index not in self._live or abs(coefficient) != stride:
                return None
            interval = self._ranges[atom.index]
            stride *= interval.size
            lowest += coefficient * (interval.lower if coefficient > 0 else interval.upper)
        return Interval(lowest, lowest + stride - 1)

    def has_others(self) -> bool:
        """Whether variables that the position does not depend on repeat every point."""
        others = self._live - self.position.variables()[0]
        return any(not self._ranges[variable].is_point for variable in others)

    def _absorb(self, expr: AffineExpr, interval: Interval | None) -> bool:
        """Makes ``expr``, limited to ``interval``, a variable: those in it become digits of the new one."""
        reached = self.reached(expr)
        if reached is None:
            return False
        allowed = (reached if interval is None else reached.intersect(interval)) - reached.lower
        variable = self._new_variable(allowed)
        values = {}
        for atom, coefficient in _by_stride(expr):
            assert isinstance(atom, Dim)
            own = self._ranges[atom.index]
            digit = variable // abs(coefficient) % own.size
            values[atom.index] = own.lower + digit if coefficient > 0 else own.upper - digit
        self._live -= values.keys()
        self._rewrite(values)
        return True

    def _new_variable(self, interval: Interval) -> AffineExpr:
        self._live.add(len(self._ranges))
        self._ranges.append(interval)
        return dim(len(self._ranges) - 1)

    def _rewrite(self, values: dict[int, AffineExpr]) -> None:
        """Replaces variables by these values, simplifies, and goes on with digits of variables that are divided."""
        simplifier = Simplifier(self._ranges, ())

        def rewritten(expr: AffineExpr) -> AffineExpr:
            return simplifier.fold(simplifier.expand(expr.substitute(values)))

        self.position = rewritten(self.position)
        self._results = [rewritten(expr) for expr in self._results]
        self._constraints = [(rewritten(expr), interval) for expr, interval in self._constraints]
        cuts: dict[int, set[int]] = {}
        for expr in (self.position, *[expr for expr, _ in self._constraints]):
            for atom, _ in expr.terms:
                _collect_cuts(atom, cuts)
        digits = {variable: self._split(variable, sorted(its_cuts)) for variable, its_cuts in cuts.items()}
        found = {variable: value for variable, value in digits.items() if value is not None}
        if found:
            self._live -= found.keys()
            self._rewrite(found)

    def _split(self, variable: int, cuts: Sequence[int]) -> AffineExpr | None:
        """The variable as the sum of new ones, its digits at these weights, if it is the product of such digits."""
        interval = self._ranges[variable]
        weights = [1, *cuts]
        ends = [*cuts, interval.size]
        if (
            interval.lower
            or variable not in self._live
            or any(end % low for low, end in zip(weights, ends, strict=True))
        ):
            return None
        sizes = [end // low for low, end in zip(weights, ends, strict=True)]
        return weighted_sum([(self._new_variable(Interval(0, n - 1)), w) for n, w in zip(sizes, weights, strict=True)])


def _collect_cuts(atom: Atom, cuts: dict[int, set[int]]) -> tuple[int, int] | None:
    """Notes the weights at which divisions cut variables; if ``atom`` is a digit, returns its variable and weight."""
    if isinstance(atom, Dim):
        return atom.index, 1
    assert isinstance(atom, Division)
    inner = [_collect_cuts(part, cuts) for part, _ in atom.expr.terms]
    if len(inner) > 1 or inner[0] is None or atom.expr != AffineExpr(((atom.expr.terms[0][0], 1),), 0):
        return None
    variable, weight = inner[0]
    cuts.setdefault(variable, set()).add(weight * atom.divisor)
    return variable, weight * atom.divisor if isinstance(atom, FloorDiv) else weight


def _innermost_sum(expr: AffineExpr) -> AffineExpr | None:
    """A dividend in ``expr`` that is not a multiple of one atom, and has no such dividend inside."""
    for atom, _ in expr.terms:
        if isinstance(atom, Division):
            inner = _innermost_sum(atom.expr)
            if inner is not None:
                return inner
            if len(atom.expr.terms) > 1:
                return atom.expr
    return None


def _by_stride(expr: AffineExpr) -> list[tuple[Atom, int]]:
    return sorted(expr.terms, key=lambda term: abs(term[1]))
