"""The barriers that a block's threads need: found by following what each thread does to each element.

The statements of a block are gone through in the order in which it runs them, loops iteration by iteration. What
threads did to elements since the last barrier is remembered; where a thread accesses an element that another one has
changed since then, or changes one that another one has accessed, there has to be a barrier before. Where only threads
of the same warp meet, since the last barrier that these had, it is one of warps; what warps did is remembered until the
next barrier of the block. What cannot be
followed, an element that a value decides say, is taken to be any element, and so is what a loop accesses whose
iterations are too many.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast

from xgpu import ir
from xgpu.dialects.nests.loops import BLOCK_SCOPE, WARP_SCOPE, BarrierOp, LaunchOp, ParOp, SeqOp, WhereOp
from xgpu.nests.footprints import MOST_POINTS, Footprint, Footprints, Watched
from xgpu.nests.history import READ, WRITE, History, Kind, meets
from xgpu.nests.periods import telling_iterations
from xgpu.nests.structure import (
    ACCESSES,
    PAR,
    SEQ,
    BufferAccess,
    access_of,
    accesses_in,
    ancestors,
    band_at,
    memory_of,
    operations_of,
)
from xgpu.structure import walk

type Answer = Literal["none missing", "one missing", "unknown"]
type Insert = Callable[[ir.Operation, str], str]
"""Inserts a barrier before a statement, of a scope that is enough, and returns the one that it has."""
type _Known = Mapping[ir.Value, int]

MOST_ITERATIONS = (256, 64, 16, 4, 0)
"""Iterations of a loop that are followed, at most: as many as ``MOST_WORK`` allows. Longer ones may access anything."""
MOST_WORK = 1 << 24
"""The work to follow a block once, at most, in accesses of threads: half a second."""
MOST_WORK_OF_ALL = 1 << 26
"""The work to follow a block until all barriers are found, at most."""
_WORK_OF_ACCESS = 1 << 11
"""The effort of looking at an access of a statement, whichever elements threads access by it."""


class Follower:
    """Follows the threads of a block of a kernel."""

    def __init__(self, launch: LaunchOp):
        assert launch.block is not None, "map-threads writes it"
        self._launch = launch
        accesses = accesses_in(launch.operation)
        written = dict.fromkeys(access.buffer for access in accesses if access.writes)
        # What is only read needs no barrier, and what is a thread's own neither.
        self._buffers = {buffer: n for n, buffer in enumerate(written) if not _is_register(buffer)}
        self._footprints = Footprints(launch.operation, launch.block)
        self._watched: dict[ir.Operation, list[Watched]] = {}
        self._used: set[ir.Value] = set()
        self._telling: dict[ir.Operation, Sequence[int]] = {}
        for statement in statements_of(launch.body):
            self._watch(statement)
        self._histories = {BLOCK_SCOPE: History(), WARP_SCOPE: History()}
        self._statements: list[ir.Operation] = []
        self._insert: Insert | None = None
        self._scope = BLOCK_SCOPE
        self._work = 0
        self._most_iterations = next(
            (most for most in MOST_ITERATIONS if self._estimate(launch.body, most) <= MOST_WORK), None
        )

    @property
    def most_iterations(self) -> int | None:
        """The number of iterations of a loop to follow; None if even following none is too much work."""
        return self._most_iterations

    def accesses_shared(self, statement: ir.Operation) -> bool:
        """Whether a statement, as `statements_of` yields them, accesses what threads share and some change."""
        return bool(self._watched.get(statement))

    def run(self, insert: Insert | None = None) -> Answer:
        """Return whether barriers are missing, up to the first one; or ``insert`` each before a statement."""
        self._insert = insert
        self._clear(BLOCK_SCOPE)
        self._statements.clear()
        if self._most_iterations is None:
            return "unknown"
        place = self._block(self._launch.body, {})
        if self._work > MOST_WORK_OF_ALL:
            return "unknown"
        return "none missing" if place is None else "one missing"

    def _watch(self, statement: ir.Operation) -> None:
        accesses = accesses_in(statement) if statement.name == PAR else [access_of(statement)]
        self._watched[statement] = [
            self._footprints.watch(statement, access, self._buffers[access.buffer])
            for access in accesses
            if access.buffer in self._buffers
        ]
        self._used.update(variable for watched in self._watched[statement] for variable in watched.variables)

    def _estimate(self, block: ir.Block, most: int) -> int:
        """Return the work to follow a block, if loops are followed up to this number of iterations."""
        work = 0
        for op in operations_of(block):
            for watched in self._watched.get(op, ()):
                work += _WORK_OF_ACCESS + (watched.points if watched.points <= MOST_POINTS else 0)
            work += _WORK_OF_ACCESS * (op.name == WhereOp.OPERATION_NAME)
            iterations = len(self._iterations(op, most)) if op.name == SEQ else 1
            work += iterations * sum(self._estimate(body, most) for body in _blocks_of(op))
        return work

    def _block(self, block: ir.Block, known: _Known) -> ir.Operation | None:
        """Follow a block; return where a barrier is missing: at a statement around, or anywhere if none is inserted."""
        for op in operations_of(block):
            while (place := self._statement(op, known)) is not None:
                if self._insert is None or place != op or self._work > MOST_WORK_OF_ALL:
                    return place
                self._clear(self._insert(op, self._scope))
        return None

    def _clear(self, scope: str) -> None:
        """Forget what a barrier of a scope orders."""
        self._histories[WARP_SCOPE].clear()
        if scope == BLOCK_SCOPE:
            self._histories[BLOCK_SCOPE].clear()

    def _statement(self, op: ir.Operation, known: _Known) -> ir.Operation | None:
        if op.name == BarrierOp.OPERATION_NAME:
            self._clear(cast(BarrierOp, op.opview).scope)
        elif op in self._watched:
            return self._phase(op, self._watched[op], known)
        elif op.name == SEQ:
            seq = cast(SeqOp, op.opview)
            for iteration in self._iterations(op, self._most_iterations or 0):
                now = known if iteration is None else {**known, seq.variable: iteration}
                if (place := self._block(seq.body, now)) is not None:
                    return place
        elif op.name == WhereOp.OPERATION_NAME:
            return self._where(cast(WhereOp, op.opview), known)
        else:
            for body in _blocks_of(op):
                return self._block(body, known)
        return None

    def _iterations(self, op: ir.Operation, most: int) -> Sequence[int | None]:
        """Return the iterations to follow: twice any if none differs, None if there are too many different ones.

        Those that repeat are left out.
        """
        seq = cast(SeqOp, op.opview)
        if seq.variable not in self._used:
            return range(min(2, seq.extent))
        if op not in self._telling:
            self._telling[op] = self._find_telling(seq)
        found = self._telling[op]
        return found if len(found) <= most else (None, None)

    def _find_telling(self, seq: SeqOp) -> Sequence[int]:
        """Return the iterations of a loop that tell of all of them; these may be all."""
        inside = [op for op in walk(seq.operation) if op in self._watched]
        accesses = [watched.access for op in inside for watched in self._watched[op]]
        wheres = [cast(WhereOp, op.opview) for op in walk(seq.operation, WhereOp.OPERATION_NAME)]
        conditions = [(where.map, where.variables) for where in wheres]
        found = telling_iterations(seq.variable, seq.extent, accesses, conditions)
        return range(seq.extent) if found is None else found

    def _where(self, where: WhereOp, known: _Known) -> ir.Operation | None:
        values = [known.get(variable) for variable in where.variables]
        if None not in values:
            inside = where.map.contains(cast(list[int], values))
            return self._block(where.then if inside else where.otherwise, known)
        # Either may be done, from the same state; a barrier in one is none in the other.
        before = {scope: history.copy() for scope, history in self._histories.items()}
        if (place := self._block(where.then, known)) is not None:
            return place
        after, self._histories = self._histories, before
        if (place := self._block(where.otherwise, known)) is not None:
            return place
        for scope, history in self._histories.items():
            history.add(after[scope])
        return None

    def _phase(self, op: ir.Operation, accesses: Sequence[Watched], known: _Known) -> ir.Operation | None:
        """Follow what threads do between two points where all of them come by."""
        footprints = {
            scope: [self._footprints.of(op, watched, known, scope == WARP_SCOPE) for watched in accesses]
            for scope in self._histories
        }
        for footprint in footprints[WARP_SCOPE]:
            self._work += _WORK_OF_ACCESS + (0 if footprint.positions is None else footprint.positions.size)
        # Two warps that meet need a barrier of the block, whichever threads of one meet as well.
        for scope, history in self._histories.items():
            first = _latest(history, accesses, footprints[scope])
            if first is not None:
                self._scope = scope
                return _place(self._statements[first], op)
        if self._work > MOST_WORK_OF_ALL:
            return op
        self._statements.append(op)
        for scope, history in self._histories.items():
            for watched, footprint in zip(accesses, footprints[scope], strict=True):
                history.note(watched.buffer, _kind_of(watched.access), footprint, len(self._statements) - 1)
        return None


def statements_of(block: ir.Block) -> list[ir.Operation]:
    """Return what the threads of a block do together, one after the other: their par loops, and accesses outside."""
    found: list[ir.Operation] = []
    for op in operations_of(block):
        if op.name in ACCESSES or (op.name == PAR and cast(ParOp, op.opview).band == "thread"):
            found.append(op)
        else:
            found += [statement for body in _blocks_of(op) for statement in statements_of(body)]
    return found


def _blocks_of(op: ir.Operation) -> list[ir.Block]:
    """Return what the threads of a block come by together inside of an operation."""
    if op.name == PAR:
        return [band_at(op)[-1].body] if cast(ParOp, op.opview).band == "block" else []
    return [region.blocks[0] for region in op.regions] if op.name in (SEQ, WhereOp.OPERATION_NAME) else []


def _latest(history: History, accesses: Sequence[Watched], footprints: Sequence[Footprint]) -> int | None:
    """Return the number of a statement that accesses meet something of, None if there is none."""
    for watched, footprint in zip(accesses, footprints, strict=True):
        for kind in history.kinds(watched.buffer):
            if meets(_kind_of(watched.access), kind):
                first = history.earlier(watched.buffer, kind, footprint)
                if first is not None:
                    return first
    return None


def _place(first: ir.Operation, second: ir.Operation) -> ir.Operation:
    """Return the statement before which a barrier stands on every way from the first to the second.

    It is as far outside of loops as it can be: in the block of both.
    """
    blocks = [first.block, *(each.block for each in ancestors(first) if each.name != "builtin.module")]
    place = second
    while place.block not in blocks:
        place = cast(ir.Operation, place.parent).operation
    return place


def _kind_of(access: BufferAccess) -> Kind:
    return access.single_step or (WRITE if access.writes else READ)


def _is_register(buffer: ir.Value) -> bool:
    return memory_of(buffer) in ("register", "threads")
