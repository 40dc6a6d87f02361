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
from xgpu.dialects.nests import BarrierOp, LaunchOp, NewOp, ParOp, SeqOp, WhereOp
from xgpu.indexing.affine import AffineExpr, Dim
from xgpu.indexing.indexing_map import IndexingMap
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
_NOBODY, _SEVERAL = -1, -2


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
        self.threads: dict[tuple[ir.Value, bool], _Array] = {}
        self.statements: dict[tuple[ir.Value, bool], _Array] = {}
        self.unknown: dict[tuple[ir.Value, bool], int] = {}

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
        used = any(seq.variable in a.variables for a in accesses_in(seq.operation) if a.buffer in self._buffers)
        if not used:
            yield from range(min(2, seq.extent))
        elif seq.extent <= MOST_ITERATIONS:
            yield from range(seq.extent)
        else:
            yield from (None, None)

    def _where(self, where: WhereOp, known: dict[ir.Value, int]) -> Iterator[Conflict]:
        values = [known.get(variable) for variable in where.variables]
        if None in values:
            # Either may be done; what both do is taken to be done.
            yield from self._block(where.then, known)
            yield from self._block(where.otherwise, known)
        else:
            inside = where.map.contains(cast(list[int], values))
            yield from self._block(where.then if inside else where.otherwise, known)

    def _phase(self, op: ir.Operation, accesses: list[Access], known: Mapping[ir.Value, int]) -> Iterator[Conflict]:
        """Follow what threads do between two points where all of them come by."""
        touched = [self._touched(op, access, known) for access in accesses if access.buffer in self._buffers]
        for each in touched:
            for writes in (True, False) if each.access.writes else (True,):
                first = self._earlier(each, writes)
                if first is not None:
                    yield Conflict(self._statements[first], op)
        self._statements.append(op)
        for each in touched:
            self._note(each, len(self._statements) - 1)

    def _earlier(self, touched: _Touched, writes: bool) -> int | None:
        """Return the statement whose writes, or reads, of another thread's elements an access meets; None if none."""
        key = (touched.access.buffer, writes)
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
        key = (touched.access.buffer, touched.access.writes)
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
        key = (access.op, tuple(known.get(variable, -1) for variable in access.variables))
        if key not in self._cache:
            self._cache[key] = self._followed(op, access, known)
        return self._cache[key]

    def _is_common(self, buffer: ir.Value, variable: ir.Value) -> bool:
        """Whether a variable moves all accesses to a buffer by the same, so that it need not be known."""
        offsets = {
            _offset(access, access.variables.index(variable)) if variable in access.variables else 0
            for access in self._accesses
            if access.buffer == buffer
        }
        return len(offsets) == 1 and None not in offsets

    def _followed(self, op: ir.Operation, access: Access, known: Mapping[ir.Value, int]) -> _Touched:
        axes = _Axes(self._count)
        values: list[Any] = []
        if op.name == PAR:
            band = band_at(op)
            places = axes.of_band(cast(IndexingMap, band[0].map))
            members = {loop.variable: place for loop, place in zip(band, places, strict=True)}
        else:
            members = {}
            if access.writes:
                axes.only_first()
        for number, variable in enumerate(access.variables):
            loop = loop_of(variable)
            if variable in members:
                values.append(members[variable])
            elif variable in known:
                values.append(known[variable])
            elif loop is None or (loop.name == SEQ and not _is_inside(loop, op)):
                return _Touched(access, None, None)
            elif loop.name == SEQ:
                values.append(axes.add(cast(SeqOp, loop.opview).extent))
            elif self._is_common(access.buffer, variable):
                values.append(0)
            else:
                return _Touched(access, None, None)
        if axes.points > MOST_POINTS or math.prod(access.shape) > 1 << 26:
            return _Touched(access, None, None)
        return _Touched(access, *axes.evaluate(access, values))


class _Axes:
    """What an access runs over: threads, steps of a thread, inner loops. Values are arrays along these axes."""

    def __init__(self, threads: int):
        self._sizes = [threads]
        self._threads = threads
        self._masks: list[tuple[Any, IndexingMap, list[int]]] = []
        self._band: tuple[IndexingMap, list[int]] | None = None

    @property
    def points(self) -> int:
        """How many points there are."""
        return math.prod(self._sizes)

    def only_first(self) -> None:
        """Only the first thread makes the access."""
        self._sizes[0] = 1

    def add(self, size: int) -> "_Axis":
        """Return a new axis."""
        self._sizes.append(size)
        return _Axis(len(self._sizes) - 1)

    def of_band(self, map_: IndexingMap) -> list["_Result"]:
        """Return the variables of a band, by its map."""
        steps = [self.add(interval.size).number for interval in map_.symbols]
        self._band = (map_, steps)
        return [_Result(number) for number in range(len(map_.results))]

    def evaluate(self, access: Access, values: list[Any]) -> tuple[_Array, _Array]:
        """Return the threads that make the access, and the elements that they access."""
        grid = np.meshgrid(*(np.arange(size) for size in self._sizes), indexing="ij")
        flat = [axis.ravel() for axis in grid]
        inside = np.ones(flat[0].size, bool)
        results: list[Any] = []
        if self._band is not None:
            map_, steps = self._band
            symbols = [flat[number] for number in steps]
            results = [result.evaluate([flat[0]], symbols) for result in map_.results]
            inside &= _holds(map_, [flat[0]], symbols)
        dims = [
            results[value.number]
            if isinstance(value, _Result)
            else flat[value.number]
            if isinstance(value, _Axis)
            else value
            for value in values
        ]
        inside &= _holds(access.map, dims, [])
        positions = np.broadcast_to(np.asarray(access.position.evaluate(dims)), inside.shape)
        size = math.prod(access.shape)
        inside &= (positions >= 0) & (positions < size)
        return flat[0][inside].astype(np.int32), positions[inside]


@dataclass(frozen=True)
class _Axis:
    number: int


@dataclass(frozen=True)
class _Result:
    number: int


def _holds(map_: IndexingMap, dims: list[Any], symbols: list[Any]) -> Any:
    """Return where variables are in a map's domain."""
    inside: Any = True
    for value, interval in zip((*dims, *symbols), (*map_.dims, *map_.symbols), strict=True):
        inside = inside & (value >= interval.lower) & (value <= interval.upper)
    for expr, interval in map_.constraints:
        value = expr.evaluate(dims, symbols)
        inside = inside & (value >= interval.lower) & (value <= interval.upper)
    return inside


def _offset(access: Access, number: int) -> int | None:
    """Return by how much a variable moves the element of an access each time; None if that is not all that it does."""
    if any(number in expr.variables()[0] for expr, _ in access.map.constraints) or access.map.dims[number].lower:
        return None
    coefficient = 0
    for atom, factor in access.position.terms:
        if isinstance(atom, Dim) and atom.index == number:
            coefficient = factor
        elif number in AffineExpr(((atom, 1),), 0).variables()[0]:
            return None
    return coefficient


def _is_register(buffer: ir.Value) -> bool:
    owner = owning_op(buffer)
    return owner.name == NewOp.OPERATION_NAME and cast(NewOp, owner.opview).memory == "register"


def _is_inside(inner: ir.Operation, outer: ir.Operation) -> bool:
    return any(each == outer for each in ancestors(inner))
