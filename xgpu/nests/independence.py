"""Whether the iterations of a par loop are independent: no two access one element of which one changes it.

Proved from the maps of the accesses where one index says it, found out by going through all elements where these are
few, else left open: the sanitizer finds it when the program runs.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from xgpu import ir
from xgpu.dialects.nests.accesses import extent_of
from xgpu.indexing.affine import AffineExpr, Dim, dim
from xgpu.indexing.interval import Interval
from xgpu.nests.history import READ, WRITE, Kind, meets
from xgpu.nests.points import is_made, offset, position, variables_of
from xgpu.nests.structure import BufferAccess, accesses_in, ancestors, loop_of
from xgpu.records import dataclass
from xgpu.structure import owning_op

MOST_POINTS = 1 << 19
"""Accesses of a statement that are gone through, at most."""
MOST_WORK = 1 << 22
"""Accesses of all statements of a program that are gone through, at most: two seconds' work."""
MOST_PAIRS = 1 << 14
"""Pairs of accesses of a par loop to one buffer that are looked at, at most."""

Answer = Literal["proved", "unproved"]


@dataclass(frozen=True)
class Clash:
    """Two accesses of different iterations of a loop to one element, which one of them changes."""

    first: BufferAccess
    second: BufferAccess
    iterations: tuple[int, int]
    element: tuple[int, ...]


class Checker:
    """Finds out of the par loops of a program whether their iterations are independent."""

    def __init__(self) -> None:
        self._work = 0

    def independence(self, par: ir.Operation, variable: ir.Value) -> Answer | Clash:
        """Return whether iterations of a par loop are known to be independent, or two accesses that show they are not.

        Buffers are looked at one by one. First whether one index tells the iterations of all accesses to it apart, then
        all elements that are accessed, then pairs of accesses.
        """
        by_buffer: dict[ir.Value, dict[tuple[object, ...], BufferAccess]] = {}
        for access in accesses_in(par):
            if not _is_made_in(access.buffer, par):
                # Another one that does the same shows nothing new.
                same = (access.map, access.variables, access.guards, _kind_of(access))
                by_buffer.setdefault(access.buffer, {}).setdefault(same, access)
        answer: Answer = "proved"
        for found in by_buffer.values():
            its = self._of_buffer(list(found.values()), par, variable)
            if isinstance(its, Clash):
                return its
            answer = "proved" if answer == its == "proved" else "unproved"
        return answer

    def _of_buffer(self, accesses: Sequence[BufferAccess], par: ir.Operation, variable: ir.Value) -> Answer | Clash:
        kinds = {_kind_of(access) for access in accesses}
        if not any(meets(one, other) for one in kinds for other in kinds):
            return "proved"
        split = {access: _places(access, par, variable) for access in accesses}
        if _are_all_apart(list(split.values())):
            return "proved"
        found = self._search(accesses, par, variable)
        return found if found is not None else self._of_pairs(split, par, variable)

    def _of_pairs(
        self, split: Mapping[BufferAccess, "_Places"], par: ir.Operation, variable: ir.Value
    ) -> Answer | Clash:
        """Return what pairs of accesses tell, where all together are too many, or values decide about some."""
        answer: Answer = "proved"
        pairs = itertools.combinations_with_replacement(split, 2)
        for number, (first, second) in enumerate(pairs):
            if number == MOST_PAIRS:
                return "unproved"
            if not meets(_kind_of(first), _kind_of(second)) or _are_all_apart([split[first], split[second]]):
                continue
            found = self._search(list(dict.fromkeys((first, second))), par, variable)
            if isinstance(found, Clash):
                return found
            answer = "proved" if answer == found == "proved" else "unproved"
        return answer

    def _search(self, accesses: Sequence[BufferAccess], par: ir.Operation, variable: ir.Value) -> Answer | Clash | None:
        """Go through all elements that accesses access, for each value of the loops around that they depend on.

        None if these are too many, or values decide which.
        """
        used = dict.fromkeys(each for access in accesses for each in variables_of(access))
        outer = [each for each in used if _is_outside(each, par)]
        fixed = {each for each in outer if _moves_alike(accesses, each)}
        axes = [each for each in outer if each not in fixed]
        sizes = [_points_of(access, variable, axes, fixed) for access in accesses]
        work = sum(size or 0 for size in sizes)
        if None in sizes or self._work + work > MOST_WORK:
            return None
        self._work += work
        found = [_visit(access, number, variable, axes, fixed) for number, access in enumerate(accesses)]
        elements = 1 + max((int(each.positions.max()) for each in found if each.positions.size), default=0)
        combinations = math.prod(extent_of(each) or 1 for each in axes)
        if elements * combinations >= 1 << 62:
            return None
        kinds = dict.fromkeys(map(_kind_of, accesses))
        visits = {
            kind: _Visits.together([each for each, a in zip(found, accesses, strict=True) if _kind_of(a) == kind])
            for kind in kinds
        }
        for one, other in itertools.combinations_with_replacement(kinds, 2):
            if meets(one, other) and (pair := _meeting(visits[one], visits[other], elements)) is not None:
                return _clash(accesses, *pair)
        return "proved"


def _kind_of(access: BufferAccess) -> Kind:
    return access.single_step or (WRITE if access.writes else READ)


def _is_made_in(buffer: ir.Value, par: ir.Operation) -> bool:
    return any(each == par for each in ancestors(owning_op(buffer)))


def _is_outside(variable: ir.Value, par: ir.Operation) -> bool:
    """Whether a variable has one value for all iterations of a loop."""
    owner = owning_op(variable)
    return owner != par and all(each != par for each in ancestors(owner))


def are_apart(first: BufferAccess, second: BufferAccess, par: ir.Operation, variable: ir.Value) -> bool:
    """Whether an index, or the position, of the two accesses differs for any two different iterations."""
    return _are_all_apart([_places(first, par, variable), _places(second, par, variable)])


@dataclass(frozen=True)
class _Parts:
    """An index as ``coefficient * variable + outer + inner``: ``outer`` of loops around, ``inner`` in an interval."""

    coefficient: int
    outer: tuple[tuple[Any, int], ...]
    inner: Interval


type _Places = tuple[_Parts | None, ...]


def _places(access: BufferAccess, par: ir.Operation, variable: ir.Value) -> _Places:
    """Return the parts of the indices of an access, and of its position."""
    return tuple(_split(expr, access, par, variable) for expr in (*access.map.results, access.position))


def _are_all_apart(places: Sequence[_Places]) -> bool:
    """Whether an index, or the position, differs for any two different iterations, whichever accesses these make."""
    return any(_differ(parts) for parts in zip(*places, strict=True))


def _split(expr: AffineExpr, access: BufferAccess, par: ir.Operation, variable: ir.Value) -> _Parts | None:
    coefficient, outer, inner = 0, [], Interval(expr.constant, expr.constant)
    for atom, factor in expr.terms:
        used = [access.variables[number] for number in AffineExpr(((atom, 1),), 0).variables()[0]]
        if isinstance(atom, Dim) and access.variables[atom.index] == variable:
            coefficient = factor
        elif variable in used:
            return None
        elif all(_is_outside(each, par) for each in used):
            key = str(AffineExpr(((atom, 1),), 0).substitute(_by_value(access, used)))
            outer.append(((key, tuple(sorted(map(hash, used)))), factor))
        else:
            inner = inner + AffineExpr(((atom, factor),), 0).interval(access.map.dims)
    return _Parts(coefficient, tuple(sorted(outer)), inner)


def _by_value(access: BufferAccess, used: Sequence[ir.Value]) -> dict[int, AffineExpr]:
    """Return names for variables that are the same in every access."""
    order = sorted(used, key=hash)
    return {access.variables.index(each): dim(order.index(each)) for each in used}


def _differ(parts: Sequence[_Parts | None]) -> bool:
    first = parts[0]
    if first is None or not first.coefficient:
        return False
    for each in parts:
        if each is None or (each.coefficient, each.outer) != (first.coefficient, first.outer):
            return False
    bounds = [each.inner for each in parts if each is not None]
    return max(each.upper for each in bounds) - min(each.lower for each in bounds) < abs(first.coefficient)


def _moves_alike(accesses: Sequence[BufferAccess], variable: ir.Value) -> bool:
    """Whether a variable adds the same to all positions, so that any value of it is like all others."""
    offsets = {offset(access, variable) for access in accesses}
    return loop_of(variable) is not None and len(offsets) == 1 and None not in offsets


type _Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Visits:
    """Accesses that are made: of which one of the accesses, in which iteration, to which position.

    ``around`` numbers the values of the loops around.
    """

    around: _Numbers
    positions: _Numbers
    iterations: _Numbers
    accesses: _Numbers

    @classmethod
    def together(cls, visits: Sequence["_Visits"]) -> "_Visits":
        """Return all of them."""
        parts = [(each.around, each.positions, each.iterations, each.accesses) for each in visits]
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _order(access: BufferAccess, variable: ir.Value, axes: Sequence[ir.Value], fixed: set[ir.Value]) -> list[ir.Value]:
    inner = [each for each in variables_of(access) if each not in axes and each not in fixed and each != variable]
    return [variable, *axes, *inner]


def _points_of(access: BufferAccess, variable: ir.Value, axes: Sequence[ir.Value], fixed: set[ir.Value]) -> int | None:
    """Return how many accesses there are to go through; None if they are too many, or a value decides which."""
    order = _order(access, variable, axes, fixed)
    points = math.prod(extent_of(each) or 1 for each in order)
    return None if points > MOST_POINTS or any(loop_of(each) is None for each in order) else points


def _visit(
    access: BufferAccess, number: int, variable: ir.Value, axes: Sequence[ir.Value], fixed: set[ir.Value]
) -> _Visits:
    """Go through what an access accesses, for each combination of values of ``axes``."""
    order = _order(access, variable, axes, fixed)
    grid = np.meshgrid(*(np.arange(extent_of(each) or 1) for each in order), indexing="ij")
    values: dict[ir.Value, Any] = dict.fromkeys(fixed, 0)
    values |= {each: axis.ravel() for each, axis in zip(order, grid, strict=True)}
    iterations = values[variable]
    inside = np.broadcast_to(is_made(access, values), iterations.shape)
    around = np.zeros_like(iterations)
    for each in axes:
        around = around * (extent_of(each) or 1) + values[each]
    positions = np.broadcast_to(position(access, values), iterations.shape)[inside]
    return _Visits(around[inside], positions, iterations[inside], np.full(positions.size, number))


def _meeting(first: _Visits, second: _Visits, elements: int) -> tuple[_Visits, _Visits] | None:
    """Return one visit of each to an element, of different iterations; None if there are none."""
    keys, others = (each.around * elements + each.positions for each in (first, second))
    if not keys.size or not others.size:
        return None
    # Of the visits to an element those of the first and of the last iteration.
    order = np.lexsort((first.iterations, keys))
    starts = np.flatnonzero(np.r_[True, keys[order][1:] != keys[order][:-1]])
    ends = np.r_[starts[1:], keys.size] - 1
    unique = keys[order][starts]
    place = np.minimum(np.searchsorted(unique, others), unique.size - 1)
    for bound in (order[starts], order[ends]):
        clash = (unique[place] == others) & (first.iterations[bound[place]] != second.iterations)
        if clash.any():
            number = np.flatnonzero(clash)[:1]
            return _taken(first, bound[place][number]), _taken(second, number)
    return None


def _taken(visits: _Visits, numbers: _Numbers) -> _Visits:
    return _Visits(
        visits.around[numbers], visits.positions[numbers], visits.iterations[numbers], visits.accesses[numbers]
    )


def _clash(accesses: Sequence[BufferAccess], one: _Visits, other: _Visits) -> Clash:
    """Return the clash of two visits, the access that the text has first in front."""
    pair = sorted((int(each.accesses[0]), int(each.iterations[0])) for each in (one, other))
    (first, earlier), (second, later) = pair
    shape = accesses[first].shape
    element = np.unravel_index(int(one.positions[0]), shape or (1,))
    place = tuple(int(each) for each in element) if shape else ()
    return Clash(accesses[first], accesses[second], (earlier, later), place)
