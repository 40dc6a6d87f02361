"""Whether the iterations of a par loop are independent: no two access one element of which one changes it.

Proved from the maps of the accesses where one index says it, found out by going through all elements where these are
few, else left open: the sanitizer finds it when the program runs.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from xgpu import ir
from xgpu.dialects.nests.accesses import extent_of
from xgpu.indexing.affine import AffineExpr, Dim, dim
from xgpu.indexing.interval import Interval
from xgpu.nests.points import is_made, offset, position, variables_of
from xgpu.nests.structure import Access, accesses_in, ancestors, loop_of
from xgpu.structure import owning_op

MOST_POINTS = 1 << 19
"""Accesses of a par loop that are gone through, at most."""

Answer = Literal["proved", "unproved"]


@dataclass(frozen=True)
class Clash:
    """Two accesses of different iterations of a loop to one element, which one of them changes."""

    first: Access
    second: Access
    iterations: tuple[int, int]
    element: tuple[int, ...]


def independence(par: ir.Operation, variable: ir.Value) -> Answer | Clash:
    """Return whether iterations of a par loop are known to be independent, or two accesses of which they are not."""
    accesses = [access for access in accesses_in(par) if not _is_made_in(access.buffer, par)]
    answer: Answer = "proved"
    for first, second in _pairs(accesses):
        if are_apart(first, second, par, variable):
            continue
        found = _search(first, second, par, variable)
        if isinstance(found, Clash):
            return found
        if found == "unproved":
            answer = found
    return answer


def _pairs(accesses: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    """Yield the accesses that must not meet: of one buffer, one of them a change, and not both in single steps."""
    for first, second in itertools.combinations_with_replacement(accesses, 2):
        changed = first.buffer == second.buffer and (first.writes or second.writes)
        if changed and (first.single_step is None or first.single_step != second.single_step):
            yield first, second


def _is_made_in(buffer: ir.Value, par: ir.Operation) -> bool:
    return any(each == par for each in ancestors(owning_op(buffer)))


def _is_outside(variable: ir.Value, par: ir.Operation) -> bool:
    """Whether a variable has one value for all iterations of a loop."""
    owner = owning_op(variable)
    return owner != par and all(each != par for each in ancestors(owner))


def are_apart(first: Access, second: Access, par: ir.Operation, variable: ir.Value) -> bool:
    """Whether an index, or the position, of the two accesses differs for any two different iterations."""
    pairs = [*zip(first.map.results, second.map.results, strict=True), (first.position, second.position)]
    return any(_differ(_split(one, first, par, variable), _split(other, second, par, variable)) for one, other in pairs)


@dataclass(frozen=True)
class _Parts:
    """An index as ``coefficient * variable + outer + inner``: ``outer`` of loops around, ``inner`` in an interval."""

    coefficient: int
    outer: tuple[tuple[Any, int], ...]
    inner: Interval


def _split(expr: AffineExpr, access: Access, par: ir.Operation, variable: ir.Value) -> _Parts | None:
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


def _by_value(access: Access, used: Sequence[ir.Value]) -> dict[int, AffineExpr]:
    """Return names for variables that are the same in every access."""
    order = sorted(used, key=hash)
    return {access.variables.index(each): dim(order.index(each)) for each in used}


def _differ(one: _Parts | None, other: _Parts | None) -> bool:
    if one is None or other is None or one.coefficient != other.coefficient or one.outer != other.outer:
        return False
    apart = one.inner - other.inner
    return one.coefficient != 0 and max(abs(apart.lower), abs(apart.upper)) < abs(one.coefficient)


def _search(first: Access, second: Access, par: ir.Operation, variable: ir.Value) -> Answer | Clash:
    """Go through all that the two accesses access, for each value of the loops around that they depend on."""
    used = dict.fromkeys((*variables_of(first), *variables_of(second)))
    outer = [each for each in used if _is_outside(each, par)]
    fixed = {each for each in outer if _moves_alike(first, second, each)}
    axes = [each for each in outer if each not in fixed]
    one, other = (_points(access, variable, axes, fixed) for access in (first, second))
    if one is None or other is None:
        return "unproved"
    clash = _meeting(*one, *other)
    if clash is None:
        return "proved"
    key, pair = clash
    place = np.unravel_index(key % math.prod(first.shape), first.shape or (1,))
    return Clash(first, second, pair, tuple(int(each) for each in place))


def _moves_alike(first: Access, second: Access, variable: ir.Value) -> bool:
    """Whether a variable adds the same to both positions, so that any value of it is like all others."""
    return loop_of(variable) is not None and offset(first, variable) == offset(second, variable) is not None


type _Keys = np.ndarray[Any, Any]


def _points(
    access: Access, variable: ir.Value, axes: Sequence[ir.Value], fixed: set[ir.Value]
) -> tuple[_Keys, _Keys] | None:
    """Return which elements an access accesses, each with the values of ``axes``, and in which iterations.

    None if they are too many, or a value decides which.
    """
    used = variables_of(access)
    inner = [each for each in used if each not in axes and each not in fixed and each != variable]
    order = [variable, *axes, *inner]
    extents = [extent_of(each) or 1 for each in order]
    if math.prod(extents) > MOST_POINTS or any(loop_of(each) is None for each in order):
        return None
    grid = [axis.ravel() for axis in np.meshgrid(*(np.arange(size) for size in extents), indexing="ij")]
    values: dict[ir.Value, Any] = {**dict.fromkeys(fixed, 0), **dict(zip(order, grid, strict=True))}
    inside = np.broadcast_to(is_made(access, values), grid[0].shape)
    key = np.zeros_like(grid[0])
    for each in axes:
        key = key * (extent_of(each) or 1) + values[each]
    key = key * math.prod(access.shape) + position(access, values)
    return key[inside], grid[0][inside]


def _meeting(keys: _Keys, iterations: _Keys, others: _Keys, other: _Keys) -> tuple[int, tuple[int, int]] | None:
    """Return an element that different iterations access, and two of these; None if there is none."""
    if not keys.size or not others.size:
        return None
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_iterations = keys[order], iterations[order]
    starts = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
    lowest = np.minimum.reduceat(sorted_iterations, starts)
    highest = np.maximum.reduceat(sorted_iterations, starts)
    unique = sorted_keys[starts]
    place = np.minimum(np.searchsorted(unique, others), unique.size - 1)
    for bound in (lowest, highest):
        clash = (unique[place] == others) & (bound[place] != other)
        if clash.any():
            number = int(np.flatnonzero(clash)[0])
            return int(others[number]), (int(bound[place][number]), int(other[number]))
    return None
