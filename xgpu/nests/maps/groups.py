"""Groups of neighbouring threads that have an iteration together: which iterations these are, and their maps."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from xgpu.dialects.nests.loops import LaunchOp, ParOp
from xgpu.indexing.affine import constant, delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.structure import PAR, operations_of, perfect_nest
from xgpu.records import dataclass
from xgpu.structure import walk

MOST_THREADS = 256
"""Threads of a block that runs par loops itself, if the program does not ask for more."""
GRID_THREADS = 128
"""Threads of a block whose blocks share nothing."""


@dataclass(frozen=True)
class Nest:
    """Loops of which a group of threads has each iteration; ``is_mixed``: with other things in it than one par loop."""

    loops: tuple[ParOp, ...]
    group: int
    is_mixed: bool


def is_mixed(nest: Sequence[ParOp]) -> bool:
    """Whether there are iterations that run at once inside of those of a nest, beside other things."""
    inside = [par for op in operations_of(nest[-1].body) for par in walk(op, PAR)]
    return any(cast(ParOp, par.opview).side is not None for par in inside)


def nests_of(launch: LaunchOp) -> list[Nest]:
    """Return the loops of a kernel of which groups of threads have the iterations; none is inside of another one."""
    found: list[Nest] = []
    seen: set[ParOp] = set()
    for op in walk(launch.operation, PAR, post_order=False):
        par = cast(ParOp, op.opview)
        if par in seen or par.band == "block":
            continue
        loops = [loop for loop in perfect_nest(op) if loop.band == par.band]
        seen.update(cast(ParOp, each.opview) for each in walk(op, PAR))
        if (nest := _nest(loops)) is not None:
            found.append(nest)
    return found


def _nest(loops: Sequence[ParOp]) -> Nest | None:
    asked = [number for number, loop in enumerate(loops) if loop.group is not None]
    mixed = is_mixed(loops)
    if asked:
        count = asked[-1] + 1
        return Nest(tuple(loops[:count]), loops[asked[-1]].group or 1, mixed or count == len(loops))
    if not mixed:
        return None
    inside = [cast(ParOp, op.opview) for op in walk(loops[-1].operation, PAR)]
    return Nest(tuple(loops), max(loop.side or 1 for loop in inside), is_mixed=True)


def grouped(band: Sequence[ParOp]) -> list[ParOp]:
    """Return the loops of a band of which groups of threads have the iterations, the first ones."""
    return [loop for loop in band if loop.group is not None]


def asked_threads(launch: LaunchOp) -> int | None:
    """Return how many threads of a block a program asks for."""
    loops = (cast(ParOp, op.opview) for op in walk(launch.operation, PAR))
    return next((loop.threads for loop in loops if loop.threads is not None), None)


def groups_of(group: int, threads: int | None) -> int:
    """Return how many groups of threads a block has, if it is to have so many threads."""
    return max(1, (threads or MOST_THREADS) // group)


def in_groups(
    extents: Sequence[int], threads: int, group: int, blocks: bool, inner: IndexingMap, side: int
) -> IndexingMap:
    """Return the map of a band of whose first loops, of these extents, groups have the iterations.

    ``inner`` is the map of the others to the threads of a group, ``side`` of which have iterations that run at once.
    Groups of all ``blocks`` share the iterations, or those of one take turns.
    """
    groups, total = threads // group, math.prod(extents)
    turns = -(-total // groups)
    dims = (Interval(0, threads - 1), *((Interval(0, turns - 1),) if blocks else ()))
    several = turns > 1 and not blocks
    turn = dim(1) if blocks else symbol(0) if several else constant(0)
    number = turn * groups + dim(0) // group
    own = _by_sides(inner, group, side)
    places = {0: dim(0) // side % (group // side), 1: dim(0) % side}
    steps = {n: symbol(n + several) for n in range(len(own.symbols))}
    results = (*delinearize(number, list(extents)), *(each.substitute(places, steps) for each in own.results))
    sizes = (group // side, side)
    narrowed = [(places[n], each) for n, each in enumerate(own.dims) if each != Interval(0, sizes[n] - 1)]
    constraints = (
        (number, Interval(0, total - 1)),
        *narrowed,
        *((expr.substitute(places, steps), interval) for expr, interval in own.constraints),
    )
    symbols = (*((Interval(0, turns - 1),) if several else ()), *own.symbols)
    map_ = IndexingMap(dims, symbols, results, constraints).simplify()
    # Threads beyond the iterations do nothing; to narrow their numbers' ranges is the same as to say so.
    beyond = [(dim(n), each) for n, each in enumerate(map_.dims) if each != dims[n]]
    return replace(map_, dims=dims, constraints=(*beyond, *map_.constraints))


def _by_sides(inner: IndexingMap, group: int, side: int) -> IndexingMap:
    """Return a map of the threads of a group as one of the number of a ``side``, and of a thread in it."""
    thread = {0: dim(0) * side + dim(1)}
    return IndexingMap(
        (Interval(0, group // side - 1), Interval(0, side - 1)),
        inner.symbols,
        tuple(each.substitute(thread) for each in inner.results),
        (
            (thread[0], inner.dims[0]),
            *((expr.substitute(thread), interval) for expr, interval in inner.constraints),
        ),
    ).simplify()
