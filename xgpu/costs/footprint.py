"""The footprint of an indexing map: how many different elements are read through it.

Results and constraints that share no variables are counted apart. A count is exact if

- the results, sums of multiples of variables, tell the values of all variables one after the other, or
- the only one is such a sum, of which each multiple is a step that the smaller ones fill or longer than all of them, or
- there are few points, which are enumerated.

Others are bounded above: by the points, and by how many values the results can have.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.analysis.combiners import combiners
from xgpu.analysis.in_place import SCATTER, UPDATE_SLICE
from xgpu.costs.values import elements
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.affine import AffineExpr, Dim, Division, Ranges, dim
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass

_MOST_ENUMERATED = 1 << 12
"""Points that are enumerated at most, which takes a millisecond."""


@lru_cache(maxsize=1 << 12)
def footprint(map_: IndexingMap) -> int:
    """Return how many different results ``map_`` has on its domain, or a bound of that from above."""
    if map_.constraints or not all(map(_is_linear, map_.results)):
        map_ = map_.simplify()
    if map_.is_empty():
        return 0
    rank = len(map_.dims)
    symbols = [dim(rank + number) for number in range(len(map_.symbols))]
    results = [expr.substitute(None, symbols) for expr in map_.results]
    constraints = [(expr.substitute(None, symbols), interval) for expr, interval in map_.constraints]
    return math.prod(part.count() for part in _parts((*map_.dims, *map_.symbols), results, constraints))


def elements_read(op: ir.Operation, count: int) -> list[int]:
    """Return the most elements of each operand that ``count`` elements of the results of ``op`` depend on."""
    sizes = [elements(operand) for operand in op.operands]
    if op.name == UPDATE_SLICE:
        return [max(0, count - sizes[1]), *sizes[1:]]
    if op.name == SCATTER:
        read = [0 if each.function == "overwrite" else count for each in combiners(op)]
        return [*read, *sizes[len(read) :]]
    if op.name not in OPERATIONS:
        return [min(each, count) for each in sizes]
    found = [0] * len(sizes)
    for access in accesses(op):
        for_one = math.prod(interval.size for interval in access.map.symbols)
        found[access.operand] += min(footprint(access.map), count * for_one)
    return [min(pair) for pair in zip(found, sizes, strict=True)]


@dataclass(eq=False)
class _Part:
    """Results and constraints on ``variables``, dimensions that no other part has.

    All dimensions have ``ranges``; ``known`` are the intervals of expressions, as all constraints leave them.
    """

    ranges: Sequence[Interval]
    known: Ranges
    variables: set[int]
    results: list[AffineExpr]
    constraints: list[Constraint]

    def count(self) -> int:
        """Return how many different results there are, or a bound."""
        points = math.prod(self.ranges[variable].size for variable in self.variables)
        if not self.constraints and all(map(_is_linear, self.results)):
            if self._tells_variables():
                return points
            if len(self.results) == 1 and (exact := self._sums(self.results[0])) is not None:
                return exact
        if points <= _MOST_ENUMERATED:
            return self._enumerated()
        return min(points, math.prod(map(self._bound, self.results)))

    def _tells_variables(self) -> bool:
        """Whether the results tell the values of all variables: each that of one more."""
        told: set[int] = set()
        left = [_variables(result) for result in self.results]
        while new := [each for each in left if len(each - told) <= 1]:
            told.update(*new)
            left = [each for each in left if each not in new]
        return told == self.variables

    def _sums(self, expr: AffineExpr) -> int | None:
        """Return how many values a sum has; None if its steps neither fill each other nor keep apart."""
        repeats, length, step, count = 1, 0, 1, 1
        for factor, size in sorted((abs(factor), self._size(atom)) for atom, factor in expr.terms):
            if count == 1:
                step, count = factor, size
            elif factor % step == 0 and factor // step <= count:
                count += factor // step * (size - 1)
            elif factor > (reached := length + step * (count - 1)):
                repeats, length, step, count = repeats * count, reached, factor, size
            elif size > 1:
                return None
        return repeats * count

    def _size(self, atom: object) -> int:
        assert isinstance(atom, Dim)
        return self.ranges[atom.index].size

    def _bound(self, expr: AffineExpr) -> int:
        """Return how many values of ``expr`` its range leaves, which are congruent modulo what divides its terms."""
        low, high = self.known.bounds(expr.terms)
        return (high - low) // max(1, AffineExpr(expr.terms, 0).divisor()) + 1

    def _enumerated(self) -> int:
        shape = [self.ranges[variable].size for variable in sorted(self.variables)]
        points = np.indices(shape).reshape(len(shape), -1)
        dims: list[Any] = [np.zeros(points.shape[1], np.int64)] * len(self.ranges)
        for axis, variable in enumerate(sorted(self.variables)):
            dims[variable] = points[axis] + self.ranges[variable].lower
        inside = np.ones(points.shape[1], dtype=bool)
        for expr, interval in self.constraints:
            value = np.asarray(expr.evaluate(dims))
            inside &= (value >= interval.lower) & (value <= interval.upper)
        found = [np.asarray(expr.evaluate(dims))[inside].tolist() for expr in self.results]
        return len(set(zip(*found, strict=True))) if found else int(inside.any())


def _parts(ranges: Sequence[Interval], results: Sequence[AffineExpr], constraints: Sequence[Constraint]) -> list[_Part]:
    """Divide results and constraints into parts that share no variables."""
    known = Ranges(ranges, (), {expr.terms: interval for expr, interval in constraints})
    single = [_Part(ranges, known, _variables(result), [result], []) for result in results]
    single += [_Part(ranges, known, _variables(each[0]), [], [each]) for each in constraints]
    parts: list[_Part] = []
    for own in single:
        shared = [part for part in parts if part.variables & own.variables]
        for part in shared:
            own.variables |= part.variables
            own.results = part.results + own.results
            own.constraints = part.constraints + own.constraints
        parts = [part for part in parts if part not in shared] + [own]
    return parts


def _variables(expr: AffineExpr) -> set[int]:
    return expr.variables()[0]


def _is_linear(expr: AffineExpr) -> bool:
    """Whether an expression has no quotient and no remainder."""
    return all(not isinstance(atom, Division) for atom, _ in expr.terms)
