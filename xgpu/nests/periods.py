"""Loops whose iterations repeat: which elements they access depends on the remainder of their number alone.

That is so where the tiles of a few steps take turns. Conditions such as those of a first or last step hold from some
iteration on. Between such iterations a few periods tell what all of them do.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from xgpu import ir
from xgpu.indexing.affine import AffineExpr, Dim, Mod
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.structure import BufferAccess

_PERIODS = 3
"""Periods that are followed: after one, each iteration comes after those that it may meet; and one to be sure."""


def telling_iterations(
    variable: ir.Value,
    extent: int,
    accesses: Iterable[BufferAccess],
    conditions: Iterable[tuple[IndexingMap, Sequence[ir.Value]]],
) -> list[int] | None:
    """Return iterations of a loop that tell what threads do in all of them; None if they do not repeat.

    These are all iterations, but for whole periods left out where nothing changes.
    """
    period, changes = 1, {0, extent}
    for expr, interval in _expressions(variable, accesses, conditions):
        found = _period(*expr)
        if found is not None:
            period = math.lcm(period, found)
        elif interval is None or (factor := _factor(*expr)) is None:
            return None
        else:
            changes |= _bounds(expr[0].constant, factor, interval)
    return _followed(period, sorted(change for change in changes if 0 <= change <= extent))


type _Of = tuple[AffineExpr, int]
"""An expression, and which of its dimensions is the loop's variable."""


def _expressions(
    variable: ir.Value, accesses: Iterable[BufferAccess], conditions: Iterable[tuple[IndexingMap, Sequence[ir.Value]]]
) -> Iterator[tuple[_Of, Interval | None]]:
    """Yield what depends on the variable: positions, and expressions of which it is tested whether they are inside."""
    tested = list(conditions)
    for access in accesses:
        if variable in access.variables:
            yield (access.position, access.variables.index(variable)), None
        tested.append((access.map, access.variables))
        tested += [(guard.map, guard.variables) for guard in access.guards]
    for map_, variables in tested:
        if variable in variables:
            number = list(variables).index(variable)
            yield (AffineExpr(((Dim(number), 1),), 0), number), map_.dims[number]
            for expr, interval in map_.constraints:
                yield (expr, number), interval


def _period(expr: AffineExpr, number: int) -> int | None:
    """Return after how many steps of a dimension an expression has its value again; None if it need not have."""
    period = 1
    for atom, _ in expr.terms:
        if number not in AffineExpr(((atom, 1),), 0).variables()[0]:
            continue
        inner = getattr(atom, "expr", None)
        if inner is None:
            return None
        found = _period(inner, number)
        if found is None and isinstance(atom, Mod):
            factor = _factor(inner, number, alone=False)
            found = None if factor is None else atom.divisor // math.gcd(atom.divisor, factor)
        if found is None:
            return None
        period = math.lcm(period, found)
    return period


def _factor(expr: AffineExpr, number: int, alone: bool = True) -> int | None:
    """Return the factor of a dimension that is a term of an expression, in no other term; ``alone``: the only one."""
    factor = None
    for atom, coefficient in expr.terms:
        if isinstance(atom, Dim) and atom.index == number:
            factor = coefficient
        elif alone or number in AffineExpr(((atom, 1),), 0).variables()[0]:
            return None
    return factor


def _bounds(offset: int, factor: int, interval: Interval) -> set[int]:
    """Return the first numbers ``n`` for which it changes whether ``factor * n + offset`` is in an interval."""
    first, last = interval.lower - offset, interval.upper - offset
    if factor < 0:
        factor, first, last = -factor, -last, -first
    return {-(-first // factor), last // factor + 1}


def _followed(period: int, changes: Sequence[int]) -> list[int]:
    """Return all numbers below the last change, but for whole periods far from changes."""
    near = _PERIODS * period
    found: list[int] = []
    for first, end in itertools.pairwise(changes):
        left_out = max(0, (end - first - 2 * near) // period) * period
        found += range(first, min(end, first + near)) if left_out else range(first, end)
        found += range(first + near + left_out, end) if left_out else ()
    return found
