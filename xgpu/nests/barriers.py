"""Where the threads of a block have to wait for each other: found by following what each does to each element.

The statements of a block are gone through in the order in which it runs them, loops iteration by iteration. What
threads did to elements since the last barrier is remembered; where a thread accesses an element that another one has
changed since then, or changes one that another one has accessed, there has to be a barrier before. What cannot be
followed, an element that a value decides say, is taken to be any element.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from xgpu import ir
from xgpu.dialects.nests.loops import BarrierOp, LaunchOp, NewOp, ParOp, SeqOp, WhereOp
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.points import holds, is_made, offset, position, variables_of
from xgpu.nests.structure import (
    ACCESSES,
    PAR,
    SEQ,
    Access,
    access_of,
    accesses_in,
    ancestors,
    band_at,
    loop_of,
    operations_of,
)
from xgpu.structure import owning_op

type _Array = np.ndarray[Any, Any]

MOST_POINTS = 1 << 20
"""Accesses of a statement that are followed, at most."""
MOST_ITERATIONS = 256
"""Iterations of a loop that are followed, at most: those of a longer one are taken to access any element."""
_MOST_ELEMENTS = 1 << 24
"""Elements of a buffer that are followed, at most."""
_NOBODY, _SEVERAL = -1, -2


type _Kind = str
"""What an access does: ``read``, ``write``, or the function by which it combines in a single step."""
type _Key = tuple[ir.Value, _Kind]
_READ, _WRITE = "read", "write"


def _kind_of(access: Access) -> _Kind:
    return access.single_step or (_WRITE if access.writes else _READ)


def _meets(one: _Kind, other: _Kind) -> bool:
    """Whether accesses of two threads are not to run at once: two reads may, and two that combine by one function."""
    return one != other or one == _WRITE


@dataclass(frozen=True)
class Conflict:
    """Two statements of a block that are not to run at once; the later one comes ``before`` nothing between them."""

    first: ir.Operation
    second: ir.Operation

    def place(self) -> ir.Operation:
        """Return the statement before which a barrier stands on every way from the first to the second.

        It is as far outside of loops as it can be: in the block of both.
        """
        blocks = [self.first.block, *(each.block for each in ancestors(self.first) if each.name != "builtin.module")]
        place = self.second
        while place.block not in blocks:
            place = cast(ir.Operation, place.parent).operation
        return place


class _State:
    """What threads did since the last barrier: who wrote and read each element last, and by which statement."""

    def __init__(self) -> None:
        self.threads: dict[_Key, _Array] = {}
        self.statements: dict[_Key, _Array] = {}
        self.unknown: dict[_Key, int] = {}

    def kinds(self, buffer: ir.Value) -> list[_Kind]:
        """Return what was done to a buffer, writes first."""
        found = {kind for its, kind in (*self.threads, *self.unknown) if its == buffer}
        return sorted(found, key=lambda kind: (kind != _WRITE, kind != _READ, kind))

    def copy(self) -> "_State":
        """Return a state that goes on from this one by itself."""
        copy = _State()
        copy.threads = {key: array.copy() for key, array in self.threads.items()}
        copy.statements = {key: array.copy() for key, array in self.statements.items()}
        copy.unknown = dict(self.unknown)
        return copy

    def add(self, other: "_State") -> None:
        """Take in what threads did if they went another way."""
        for key, threads in other.threads.items():
            if key not in self.threads:
                self.threads[key], self.statements[key] = threads, other.statements[key]
                continue
            own = self.threads[key]
            both = np.where((own == _NOBODY) | (own == threads), threads, np.where(threads == _NOBODY, own, _SEVERAL))
            self.threads[key] = both
            self.statements[key] = np.maximum(self.statements[key], other.statements[key])
        self.unknown |= other.unknown

    def clear(self) -> None:
        """Forget all: a barrier."""
        self.threads.clear()
        self.statements.clear()
        self.unknown.clear()


@dataclass(frozen=True)
class _Touched:
    """An access: which threads access which elements; None if that is not known."""

    access: Access
    threads: _Array | None
    positions: _Array | None


def first_conflict(launch: LaunchOp) -> Conflict | None:
    """Return two statements between which the threads of a block do not wait for each other, though they have to."""
    return _Follower(launch).run()


class _Follower:
    def __init__(self, launch: LaunchOp):
        assert launch.block is not None, "map-threads writes it"
        self._launch = launch
        self._count = launch.block
        accesses = accesses_in(launch.operation)
        written = {access.buffer for access in accesses if access.writes}
        # What is only read needs no barrier, and what is a thread's own neither.
        self._buffers = {buffer for buffer in written if not _is_register(buffer)}
        self._state = _State()
        self._statements: list[ir.Operation] = []
        self._cache: dict[tuple[ir.Operation, tuple[int, ...]], _Touched] = {}
        self._accesses = accesses

    def run(self) -> Conflict | None:
        """Return the first conflict of a block's run."""
        return next(self._block(self._launch.body, {}), None)

    def _block(self, block: ir.Block, known: dict[ir.Value, int]) -> Iterator[Conflict]:
        for op in operations_of(block):
            yield from self._statement(op, known)

    def _statement(self, op: ir.Operation, known: dict[ir.Value, int]) -> Iterator[Conflict]:
        if op.name == BarrierOp.OPERATION_NAME:
            self._state.clear()
        elif op.name == PAR and cast(ParOp, op.opview).band == "block":
            yield from self._block(band_at(op)[-1].body, known)
        elif op.name == PAR and cast(ParOp, op.opview).band == "thread":
            yield from self._phase(op, accesses_in(op), known)
        elif op.name == SEQ:
            seq = cast(SeqOp, op.opview)
            for iteration in self._iterations(seq):
                yield from self._block(seq.body, known if iteration is None else {**known, seq.variable: iteration})
        elif op.name == WhereOp.OPERATION_NAME:
            yield from self._where(cast(WhereOp, op.opview), known)
        elif op.name in ACCESSES:
            yield from self._phase(op, [access_of(op)], known)

    def _iterations(self, seq: SeqOp) -> Iterator[int | None]:
        """Yield the iterations to follow: twice any if none differs, None if there are too many different ones."""
        used = any(seq.variable in variables_of(a) for a in accesses_in(seq.operation) if a.buffer in self._buffers)
        if not used:
            yield from range(min(2, seq.extent))
        elif seq.extent <= MOST_ITERATIONS:
            yield from range(seq.extent)
        else:
            yield from (None, None)

    def _where(self, where: WhereOp, known: dict[ir.Value, int]) -> Iterator[Conflict]:
        values = [known.get(variable) for variable in where.variables]
        if None in values:
            # Either may be done, from the same state; a barrier in one is none in the other.
            before = self._state.copy()
            yield from self._block(where.then, known)
            after, self._state = self._state, before
            yield from self._block(where.otherwise, known)
            self._state.add(after)
        else:
            inside = where.map.contains(cast(list[int], values))
            yield from self._block(where.then if inside else where.otherwise, known)

    def _phase(self, op: ir.Operation, accesses: list[Access], known: Mapping[ir.Value, int]) -> Iterator[Conflict]:
        """Follow what threads do between two points where all of them come by."""
        touched = [self._touched(op, access, known) for access in accesses if access.buffer in self._buffers]
        for each in touched:
            for kind in self._state.kinds(each.access.buffer):
                if not _meets(_kind_of(each.access), kind):
                    continue
                first = self._earlier(each, kind)
                if first is not None:
                    yield Conflict(self._statements[first], op)
        self._statements.append(op)
        for each in touched:
            self._note(each, len(self._statements) - 1)

    def _earlier(self, touched: _Touched, kind: _Kind) -> int | None:
        """Return the statement whose accesses of a kind, by other threads, an access meets; None if there is none."""
        key = (touched.access.buffer, kind)
        if key in self._state.unknown:
            return self._state.unknown[key]
        if key not in self._state.threads:
            return None
        if touched.positions is None:
            return int(self._state.statements[key].max())
        owners = self._state.threads[key][touched.positions]
        meets = (owners != _NOBODY) & (owners != touched.threads)
        return int(self._state.statements[key][touched.positions][meets].max()) if meets.any() else None

    def _note(self, touched: _Touched, statement: int) -> None:
        """Remember what threads did to elements."""
        key = (touched.access.buffer, _kind_of(touched.access))
        if touched.positions is None or touched.threads is None:
            self._state.unknown[key] = statement
            return
        size = math.prod(touched.access.shape)
        if key not in self._state.threads:
            self._state.threads[key] = np.full(size, _NOBODY, np.int32)
            self._state.statements[key] = np.full(size, -1, np.int32)
        owners = self._state.threads[key]
        before = owners[touched.positions]
        lowest, highest = np.full(size, self._count, np.int32), np.full(size, -1, np.int32)
        np.minimum.at(lowest, touched.positions, touched.threads)
        np.maximum.at(highest, touched.positions, touched.threads)
        now = np.where(lowest == highest, lowest, _SEVERAL)[touched.positions]
        owners[touched.positions] = np.where((before == _NOBODY) | (before == now), now, _SEVERAL)
        self._state.statements[key][touched.positions] = statement

    def _touched(self, op: ir.Operation, access: Access, known: Mapping[ir.Value, int]) -> _Touched:
        key = (access.op, tuple(known.get(variable, -1) for variable in variables_of(access)))
        if key not in self._cache:
            self._cache[key] = self._followed(op, access, known)
        return self._cache[key]

    def _is_common(self, buffer: ir.Value, variable: ir.Value) -> bool:
        """Whether a variable moves all accesses to a buffer by the same, so that it need not be known."""
        offsets = {offset(access, variable) for access in self._accesses if access.buffer == buffer}
        return len(offsets) == 1 and None not in offsets

    def _followed(self, op: ir.Operation, access: Access, known: Mapping[ir.Value, int]) -> _Touched:
        """Return who accesses what when all threads come by a statement, for known variables of the loops around."""
        unknown = _Touched(access, None, None)
        threads = self._count if op.name == PAR or not access.writes else 1
        axes: dict[ir.Value | None, int] = {None: threads}
        band = band_at(op) if op.name == PAR else []
        members = [loop.variable for loop in band]
        values: dict[ir.Value, Any] = {}
        for variable in variables_of(access):
            loop = loop_of(variable)
            if variable in known:
                values[variable] = known[variable]
            elif variable in members:
                continue
            elif loop is not None and loop.name == SEQ and _is_inside(loop, op):
                axes[variable] = cast(SeqOp, loop.opview).extent
            elif loop is not None and loop.name == PAR and self._is_common(access.buffer, variable):
                values[variable] = 0
            else:
                return unknown
        map_ = cast(IndexingMap, band[0].map) if band else IndexingMap((Interval(0, threads - 1),), (), ())
        sizes = [*axes.values(), *(interval.size for interval in map_.symbols)]
        if math.prod(sizes) > MOST_POINTS or math.prod(access.shape) > _MOST_ELEMENTS:
            return unknown
        grid = [axis.ravel() for axis in np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij")]
        values |= {variable: grid[n] for n, variable in enumerate(axes) if variable is not None}
        dims: list[Any] = [grid[0]]
        symbols: list[Any] = list(grid[len(axes) :])
        values |= {v: r.evaluate(dims, symbols) for v, r in zip(members, map_.results, strict=True)}
        inside = np.broadcast_to(holds(map_, dims, symbols) & is_made(access, values), grid[0].shape)
        positions = np.broadcast_to(position(access, values), grid[0].shape)[inside]
        return _Touched(access, grid[0][inside].astype(np.int32), positions)


def _is_register(buffer: ir.Value) -> bool:
    owner = owning_op(buffer)
    return owner.name == NewOp.OPERATION_NAME and cast(NewOp, owner.opview).memory == "register"


def _is_inside(inner: ir.Operation, outer: ir.Operation) -> bool:
    return any(each == outer for each in ancestors(inner))
