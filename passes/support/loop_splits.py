"""Chooses where to split a loop nest so that inner loops need no bounds checks, on indexing maps, for peel-loops.

Every split keeps the order of the points, so whatever the loops compute stays the same to the last bit.
"""

from dataclasses import replace

from xgpu.indexing.affine import AffineExpr, Division, Symbol, linear
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.records import dataclass

_MAX_VECTOR = 16
"""Points up to which a unit-stride innermost loop counts as a vector, which must not lose its last point."""
_REST_SHARE = 8
"""At most one in so many values may go to the loop that keeps the check: it and the main loop diverge in a warp."""


@dataclass(frozen=True)
class Split:
    """Two maps whose domains make up that of the map that was split, in the order of their points."""

    maps: tuple[IndexingMap, IndexingMap]
    rest: int | None = None
    """The number of the remainder, the one of the two that few threads execute."""


def find_split(map_: IndexingMap, is_written_out: bool = False) -> Split | tuple[Reason, ...]:
    """Return the first useful split of ``map_``, which must be simplified, or for each constraint why there is none.

    A loop that ``is_written_out`` as few instructions is only split between iterations.
    """
    looped = [i for i, interval in enumerate(map_.symbols) if interval.size > 1]
    if not looped:
        return ()
    outermost, innermost = looped[0], looped[-1]
    # Of a vector the last element must not be lost. Of other loops it is the iteration in which lanes may differ.
    if (outermost != innermost or not _is_vector(map_, innermost)) and (split := _split_edge(map_, looped)):
        return split
    if is_written_out:
        return (Reason("each of its points is a few instructions, which are predicated"),) * len(map_.constraints)
    refusals = []
    for number in range(len(map_.constraints)):
        found = _split_vector(map_, looped, number)
        if isinstance(found, Split):
            return found
        refusals.append(found)
    return tuple(refusals)


def _is_vector(map_: IndexingMap, symbol: int) -> bool:
    factors = (abs(dict(expr.terms).get(Symbol(symbol), 0)) for expr, _ in map_.constraints)
    return map_.symbols[symbol].size <= _MAX_VECTOR and 1 in factors


def _split_edge(map_: IndexingMap, looped: list[int]) -> Split | None:
    """Split off the last or the first value of the outermost variable if some constraint can fail only there."""
    symbol = looped[0]
    interval = map_.symbols[symbol]

    def narrowed(lower: int, upper: int) -> IndexingMap:
        symbols = (*map_.symbols[:symbol], Interval(lower, upper), *map_.symbols[symbol + 1 :])
        return replace(map_, symbols=symbols)

    last = (narrowed(interval.lower, interval.upper - 1), narrowed(interval.upper, interval.upper))
    first = (narrowed(interval.lower, interval.lower), narrowed(interval.lower + 1, interval.upper))
    for parts, main in ((last, last[0]), (first, first[1])):
        for expr, allowed in _sides(map_, looped):
            if allowed.contains_interval(expr.interval(main.dims, main.symbols)):
                return Split((parts[0].simplify(), parts[1].simplify()))
    return None


def _sides(map_: IndexingMap, looped: list[int]) -> list[Constraint]:
    """Return what can fail of the constraints that know the outermost variable.

    The two bounds of a position along all loops fail at different ends, so each counts on its own.
    """
    found = []
    for expr, allowed in map_.constraints:
        symbols, possible = expr.variables()[1], expr.interval(map_.dims, map_.symbols)
        if looped[0] not in symbols:
            continue
        below = Interval(min(allowed.lower, possible.lower), allowed.upper)
        above = Interval(allowed.lower, max(allowed.upper, possible.upper))
        sides = [above, below] if looped[-1] in symbols else [allowed]
        found += [(expr, side) for side in sides if not side.contains_interval(possible)]
    return found


def _split_vector(map_: IndexingMap, looped: list[int], number: int) -> Split | Reason:
    """Split by whether constraint ``number`` holds for all values of the innermost variable of ``looped``."""
    expr, allowed = map_.constraints[number]
    factor = dict(expr.terms).get(Symbol(looped[-1]), 0)
    base = linear({atom: c for atom, c in expr.terms if atom != Symbol(looped[-1])}, expr.constant)
    direction = _direction(base, map_, looped[:-1])
    if not factor or looped[-1] in base.variables()[1]:
        return Reason("s{} is no term of its own in it", (looped[-1],))
    if direction is None:
        return Reason("it neither only rises nor only falls as the loops around s{} run", (looped[-1],))
    offset = map_.symbols[looped[-1]] * factor
    possible = base.interval(map_.dims, map_.symbols)
    main = Interval(allowed.lower - offset.lower, allowed.upper - offset.upper)
    below = possible.intersect(Interval(allowed.lower - offset.upper, main.lower - 1))
    above = possible.intersect(Interval(main.upper + 1, allowed.upper - offset.lower))
    if main.is_empty:
        return Reason("it holds for no whole run of s{}", (looped[-1],))
    if below.is_empty == above.is_empty:
        return Reason("it fails at both ends")
    rest = above if below.is_empty else below
    if not _is_small(base, rest, possible.intersect(main)):
        return Reason(
            "it fails too often: the loop that keeps it would have more than one in {} points", (_REST_SHARE,)
        )
    others = tuple(constraint for i, constraint in enumerate(map_.constraints) if i != number)
    main_map = replace(map_, constraints=(*others, (base, main))).simplify()
    rest_map = map_.with_constraint(base, rest).simplify()
    rest_is_first = direction * (1 if below.is_empty else -1) < 0
    return Split((rest_map, main_map), 0) if rest_is_first else Split((main_map, rest_map), 1)


def _is_small(base: AffineExpr, rest: Interval, main: Interval) -> bool:
    """Whether ``base`` has few values in ``rest`` compared with those in ``main``."""
    step = (base - base.constant).divisor() or 1
    rest_count, main_count = (
        (interval.upper - base.constant) // step - (interval.lower - 1 - base.constant) // step
        for interval in (rest, main)
    )
    return main_count > 0 and (rest_count <= 1 or rest_count * _REST_SHARE <= main_count)


def _direction(base: AffineExpr, map_: IndexingMap, outer: list[int]) -> int | None:
    """Return 1 if ``base`` never falls as the loops over ``outer`` run, -1 if it never rises; None if neither."""
    factors = dict.fromkeys(outer, 0)
    for atom, factor in base.terms:
        if isinstance(atom, Symbol):
            factors[atom.index] = factor
        elif isinstance(atom, Division) and atom.expr.variables()[1]:
            return None
    for direction in (1, -1):
        reach = 0
        for symbol in reversed(outer):
            factor = direction * factors[symbol]
            if factor < reach:
                break
            reach += factor * (map_.symbols[symbol].size - 1)
        else:
            return direction
    return None
