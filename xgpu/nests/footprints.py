"""The elements that each thread of a block accesses when all of them execute a statement."""

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from xgpu import ir
from xgpu.dialects.nests.loops import SeqOp
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.points import holds, is_made, offset, position, variables_of
from xgpu.nests.structure import PAR, SEQ, BufferAccess, accesses_in, ancestors, band_at, loop_of
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

type Array = np.ndarray[Any, Any]

MOST_POINTS = 1 << 20
"""Accesses of a statement that are followed, at most."""
MOST_ELEMENTS = 1 << 24
"""The position of an element that is followed is below this."""
SEVERAL = -2
"""In place of a thread: more than one."""


@dataclass(frozen=True)
class Watched:
    """An access of a statement to a buffer that threads share, with the variables that it depends on."""

    access: BufferAccess
    buffer: int
    variables: tuple[ir.Value, ...]
    points: int
    """The number of accesses that threads make, all conditions left out."""


@dataclass(frozen=True)
class Footprint:
    """Accesses: ``threads`` access ``positions``, each of which ``owners`` access alone; None if it is not known."""

    threads: Array | None
    positions: Array | None
    owners: Array | None


_UNKNOWN = Footprint(None, None, None)


class Footprints:
    """Finds the footprints of accesses of a kernel whose blocks have ``count`` threads, each once."""

    def __init__(self, kernel: ir.Operation, count: int):
        self._count = count
        self._accesses = accesses_in(kernel)
        self._common: dict[tuple[ir.Value, ir.Value], bool] = {}
        self._found: dict[tuple[ir.Operation, tuple[int, ...]], Footprint] = {}
        self._of_warps: dict[tuple[ir.Operation, tuple[int, ...]], Footprint] = {}

    def watch(self, statement: ir.Operation, access: BufferAccess, buffer: int) -> Watched:
        """Return an access of a statement with what is known of it for all iterations."""
        variables = variables_of(access)
        points = self._threads(statement, access)
        if statement.name == PAR:
            map_ = cast(IndexingMap, band_at(statement)[0].map)
            points *= math.prod(interval.size for interval in map_.symbols)
        points *= math.prod(cast(SeqOp, loop.opview).extent for loop in _inner_loops(statement, variables).values())
        return Watched(access, buffer, variables, points)

    def of(
        self, statement: ir.Operation, watched: Watched, known: Mapping[ir.Value, int], by_threads: bool
    ) -> Footprint:
        """Return who accesses what, for known variables of the loops around: which threads, or which warps."""
        key = (watched.access.op, tuple(known.get(variable, -1) for variable in watched.variables))
        if key not in self._found:
            self._found[key] = self._of(statement, watched, known)
        if by_threads:
            return self._found[key]
        if key not in self._of_warps:
            self._of_warps[key] = _by_warps(self._found[key])
        return self._of_warps[key]

    def _threads(self, statement: ir.Operation, access: BufferAccess) -> int:
        """Return how many threads do a statement: what a block changes outside of par loops is done by the first."""
        return self._count if statement.name == PAR or not access.writes else 1

    def _is_common(self, buffer: ir.Value, variable: ir.Value) -> bool:
        """Whether a variable moves all accesses to a buffer by the same, so that it need not be known.

        Which of them are made it may decide, too: they are all taken to be.
        """
        key = (buffer, variable)
        if key not in self._common:
            offsets = {offset(access, variable, if_made=True) for access in self._accesses if access.buffer == buffer}
            self._common[key] = len(offsets) == 1 and None not in offsets
        return self._common[key]

    def _of(self, statement: ir.Operation, watched: Watched, known: Mapping[ir.Value, int]) -> Footprint:
        access = watched.access
        band = band_at(statement) if statement.name == PAR else []
        members = [loop.variable for loop in band]
        inner = _inner_loops(statement, watched.variables)
        values: dict[ir.Value, Any] = {}
        unknown: set[ir.Value] = set()
        for variable in watched.variables:
            if variable in known:
                values[variable] = known[variable]
            elif variable not in members and variable not in inner:
                loop = loop_of(variable)
                if loop is None or loop.name != PAR or not self._is_common(access.buffer, variable):
                    return _UNKNOWN
                values[variable] = 0
                unknown.add(variable)
        if watched.points > MOST_POINTS:
            return _UNKNOWN
        threads = self._threads(statement, access)
        map_ = cast(IndexingMap, band[0].map) if band else IndexingMap((Interval(0, threads - 1),), (), ())
        extents = [cast(SeqOp, loop.opview).extent for loop in inner.values()]
        sizes = [threads, *extents, *(interval.size for interval in map_.symbols)]
        grid = [axis.ravel() for axis in np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij")]
        values |= dict(zip(inner, grid[1:], strict=False))
        dims: list[Any] = [grid[0]]
        symbols: list[Any] = list(grid[1 + len(inner) :])
        values |= {v: r.evaluate(dims, symbols) for v, r in zip(members, map_.results, strict=True)}
        inside = np.broadcast_to(holds(map_, dims, symbols) & is_made(access, values, unknown), grid[0].shape)
        positions = np.broadcast_to(position(access, values), grid[0].shape)[inside]
        if positions.size and (positions.max() >= MOST_ELEMENTS or positions.min() < 0):
            return _UNKNOWN
        return _footprint(grid[0][inside].astype(np.int32), positions.astype(np.int32))


def _inner_loops(statement: ir.Operation, variables: tuple[ir.Value, ...]) -> dict[ir.Value, ir.Operation]:
    """Return the seq loops inside a statement that have some of these variables."""
    loops = {variable: loop_of(variable) for variable in variables}
    return {
        variable: loop
        for variable, loop in loops.items()
        if loop is not None and loop.name == SEQ and any(each == statement for each in ancestors(loop))
    }


def _by_warps(footprint: Footprint) -> Footprint:
    if footprint.threads is None or footprint.positions is None:
        return footprint
    return _footprint(footprint.threads // np.int32(WARP_SIZE), footprint.positions)


def _footprint(threads: Array, positions: Array) -> Footprint:
    if not positions.size:
        return Footprint(threads, positions, threads)
    last = np.empty(int(positions.max()) + 1, np.int32)
    last[positions] = threads
    others = last[positions] != threads
    if not others.any():
        return Footprint(threads, positions, threads)
    last[positions[others]] = SEVERAL
    return Footprint(threads, positions, last[positions])
