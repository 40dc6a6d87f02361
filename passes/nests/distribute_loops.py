"""The pass `distribute-loops`."""

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, cast

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.nests.accesses import FromIndexOp, ReadOp, ToIndexOp, WriteOp
from xgpu.dialects.nests.loops import NewOp, ParOp, SeqOp, WhereOp
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.indexing.affine import delinearize, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.maps.groups import Nest, asked_threads, groups_of, is_mixed, nests_of
from xgpu.nests.rewriting import condition, inside, on_operands, on_variables
from xgpu.nests.structure import (
    ACCESSES,
    PAR,
    SEQ,
    access_of,
    accesses_in,
    ancestors,
    has_par,
    launches_of,
    loop_of,
    name_of_buffer,
    operations_of,
    perfect_nest,
)
from xgpu.passes.framework.base import Pass
from xgpu.passes.support.regions import move_body
from xgpu.records import dataclass
from xgpu.structure import captured, copy_operation, defining_op, made, walk

_OF_INNER = ("extent", "called", "independent", "threads", "vector", "together", "mma", "block_barrier", "align")
"""The attributes that loops inside of an iteration keep."""
_INDICES = (ToIndexOp.OPERATION_NAME, FromIndexOp.OPERATION_NAME)


@dataclass(frozen=True)
class DistributeLoops(Pass):
    """Distributes loops whose iterations groups of threads have over the statements of an iteration.

    An iteration is a group's if there is a ``fully par`` in it beside other things, or the program says so
    (``#group(n)``). Each par loop in it becomes a band with the loops around it, which the threads of a group run; what
    the group does alone is done by its first thread. Seq loops and conditions around them are then the block's, and its
    buffers have an element more for each iteration. A value that later statements change is kept in a buffer, others
    are computed where they are used. Groups without a thread of their own take turns: a seq loop goes through them, or
    blocks do. Iterations are independent, so that is an order as good as any.
    Needs assign-bands.

    ```mlir
    "xgpu.par"() ({
    ^bb0(%w: index):
      %t = "xgpu.new"() {called = "t"} : () -> memref<32xf32>
      "xgpu.seq"() ({ ... "xgpu.par"() ({ ... }) {align = 32 : i64, band = "thread", called = "l", ...} ... })
    }) {band = "thread", called = "w", extent = 8 : i64}
    // becomes
    %t = "xgpu.new"() {called = "t"} : () -> memref<8x32xf32>
    "xgpu.seq"() ({
      ...
      "xgpu.par"() ({ "xgpu.par"() ({ ... }) {align = 32 : i64, band = "thread", called = "l", ...} })
          {band = "thread", called = "w", extent = 8 : i64, group = 32 : i64}
      ...
    })
    ```
    """

    NAME: ClassVar[str] = "distribute-loops"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PAR,))

    def apply(self, module: ir.Module) -> None:
        """Distribute such loops of every kernel of ``module``."""
        for launch in launches_of(module):
            threads = asked_threads(launch)
            for nest in nests_of(launch):
                for loop in nest.loops:
                    if loop.group not in (None, nest.group):
                        text = (
                            f"'#group({loop.group})': loops inside of 'par {loop.called}' have '#group({nest.group})'"
                        )
                        raise InvalidInput(text, source_of(loop.operation))
                    loop.operation.attributes["group"] = attributes.int_attribute(nest.group)
                if nest.is_mixed:
                    _distribute(nest, groups_of(nest.group, threads))


def _distribute(nest: Nest, groups: int) -> None:
    for loop in nest.loops:
        for name, value in (("vector", loop.vector), ("together", loop.together)):
            if value is not None:
                text = f"'#{name}({value})': a group of threads has each iteration of 'par {loop.called}'"
                raise InvalidInput(text, source_of(loop.operation))
    loops = list(nest.loops)
    if loops[0].band == "grid" or math.prod(loop.extent for loop in loops) > groups:
        loops = [_take_turns(loops, groups)]
    _Distribution(loops, nest.group).write()


def _take_turns(loops: Sequence[ParOp], groups: int) -> ParOp:
    """Make a loop of as many iterations as there are groups of these, inside of one of turns; return it."""
    first, last = loops[0], loops[-1]
    extents = [loop.extent for loop in loops]
    total = math.prod(extents)
    groups = min(groups, total)
    turns = -(-total // groups)
    with first.operation.location, ir.InsertionPoint(first.operation):
        outer: ParOp | SeqOp
        if first.band == "grid":
            outer = ParOp.build(turns, "block", {**_decided(first, "independent"), "band": "block"})
        else:
            outer = SeqOp.build(turns, "turn")
        with inside(outer.body):
            given = {**_decided(first, "independent", "threads", "block_barrier", "group"), "band": "thread"}
            inner = ParOp.build(groups, first.called, given)
    number = dim(0) * groups + dim(1)
    new = (outer.variable, inner.variable)
    places = dict(zip((loop.variable for loop in loops), delinearize(number, extents), strict=True))
    for op in walk(last.operation):
        if "map" in op.attributes and any(operand in places for operand in op.operands):
            on_variables(op, places, new, (Interval(0, turns - 1), Interval(0, groups - 1)))
    with first.operation.location:
        point = inside(inner.body)
        if total % groups:
            dims = (Interval(0, turns - 1), Interval(0, groups - 1))
            with point:
                point, _ = condition(IndexingMap(dims, (), (), ((number, Interval(0, total - 1)),)), new)
    end = point.ref_operation
    assert end is not None, "it is before the end of a block"
    move_body(last.body, [inner.variable] * len(last.body.arguments), end)
    first.operation.erase()
    return inner


def _stages(seq: SeqOp) -> dict[str, Any]:
    return {} if seq.stages is None else {"stages": seq.stages}


def _decided(loop: ParOp, *names: str) -> dict[str, Any]:
    """Return those of a loop's attributes that it has."""
    return {name: value for name in names if (value := getattr(loop, name)) is not None}


class _Distribution:
    """Loops, of whose iterations each is one of a group of threads, and what is written in their place."""

    def __init__(self, loops: Sequence[ParOp], group: int):
        self._loops, self._group = loops, group
        self._variables = [loop.variable for loop in loops]
        self._body = loops[-1].body
        self._inside = set(walk(loops[-1].operation))
        self._changed = {access.buffer for access in accesses_in(loops[-1].operation) if access.writes}
        self._known: dict[ir.Value, ir.Value] = {}
        self._buffers: dict[ir.Value, ir.Value] = {}
        self._kept: dict[ir.Value, ir.Value] = {}
        self._guards: list[tuple[WhereOp, bool]] = []
        self._alone: list[ir.Operation] = []
        self._now: list[ir.Value] = []
        self._barrier = _decided(loops[0], "block_barrier")

    def write(self) -> None:
        """Write the bands in front of the loops, and erase these."""
        first = self._loops[0].operation
        with first.location, ir.InsertionPoint(first):
            self._block(self._body)
        first.erase()

    def _block(self, block: ir.Block) -> None:
        for op in operations_of(block):
            with op.location:
                self._statement(op)
        self._flush()

    def _statement(self, op: ir.Operation) -> None:
        if op.name == NewOp.OPERATION_NAME:
            self._buffers[op.results[0]] = self._widened(cast(NewOp, op.opview))
        elif op.name == PAR:
            self._flush()
            self._par(op)
        elif has_par(op):
            self._flush()
            self._seq(cast(SeqOp, op.opview)) if op.name == SEQ else self._where(cast(WhereOp, op.opview))
        elif not _is_value(op) or self._is_kept(op):
            self._alone.append(op)

    def _widened(self, new: NewOp) -> ir.Value:
        """Make a buffer with an element of one for each iteration."""
        type_ = ir.MemRefType(new.buffer.type)
        asked = {"memory": new.memory, "pad": new.pad, "offset": new.offset}
        return self._new(type_.shape, type_.element_type, new.called, {k: v for k, v in asked.items() if v is not None})

    def _new(self, shape: Sequence[int], element: ir.Type, called: str, given: dict[str, Any]) -> ir.Value:
        type_ = ir.MemRefType.get([*(loop.extent for loop in self._loops), *shape], element)
        return NewOp.build(type_, called, given)

    def _is_kept(self, op: ir.Operation) -> bool:
        """Whether an element that is read may be another one where it is used."""
        if op.name != ReadOp.OPERATION_NAME or (buffer := cast(ReadOp, op.opview).buffer) not in self._changed:
            return False
        operations = operations_of(op.block)
        place = operations.index(op)
        for user in _statements_with(op):
            number = operations.index(user)
            changing = [other for other in operations[place + 1 : number] if _changes(other, buffer)]
            if changing or (has_par(operations[number]) and _changes(operations[number], buffer)):
                return True
        return False

    def _par(self, par: ir.Operation) -> None:
        nest = perfect_nest(par)
        for loop in nest:
            if loop.group is not None:
                text = f"'#group({loop.group})': 'par {loop.called}' is inside of an iteration that a group has"
                raise InvalidInput(text, source_of(loop.operation))
            if (loop.side or 1) > self._group:
                text = f"'fully par {loop.called}' takes {loop.side} threads, got groups of {self._group}"
                raise InvalidInput(text, source_of(loop.operation))
        if is_mixed(nest):
            self._one_by_one(nest)
            return
        given = [_decided(loop, *_OF_INNER) for loop in nest]
        with self._band(given, [loop.variable for loop in nest]) as copies:
            for op in operations_of(nest[-1].body):
                with op.location:
                    self._copy(op, copies)

    def _one_by_one(self, nest: Sequence[ParOp]) -> None:
        """Go through the iterations of loops inside of a group's, in which the group has several things to do."""
        loop, *inner = nest
        for name, value in (("vector", loop.vector), ("together", loop.together)):
            if value is not None:
                text = f"'#{name}({value})': a group of threads has the iterations of 'par {loop.called}' one by one"
                raise InvalidInput(text, source_of(loop.operation))
        with self._around(SeqOp.build(loop.extent, loop.called), loop.variable):
            self._one_by_one(inner) if inner else self._block(loop.body)

    def _seq(self, seq: SeqOp) -> None:
        with self._around(SeqOp.build(seq.extent, seq.called, _stages(seq)), seq.variable):
            self._block(seq.body)

    @contextmanager
    def _around(self, seq: SeqOp, variable: ir.Value) -> Iterator[None]:
        """Write the body of a loop of the block; ``variable`` is what was its variable."""
        self._known[variable] = seq.variable
        with inside(seq.body):
            yield

    def _where(self, where: WhereOp) -> None:
        """Write what is under a condition: the block's condition if all groups have the same, else that of each."""
        if all(loop_of(each) is not None and each not in self._variables for each in where.variables):
            new = WhereOp.build(where.map, [self._known.get(each, each) for each in where.variables])
            for old, block in ((where.then, new.then), (where.otherwise, new.otherwise)):
                with inside(block):
                    self._block(old)
            return
        for block, holds in ((where.then, True), (where.otherwise, False)):
            self._guards.append((where, holds))
            self._block(block)
            self._guards.pop()

    def _flush(self) -> None:
        """Write what the first thread of a group does alone."""
        statements, self._alone = self._alone, []
        if not statements:
            return
        lane = {"extent": self._group, "called": "lane", "align": self._group, "independent": "proved"}
        kept: list[tuple[ir.Value, ir.Value]] = []
        for op in statements:
            if op.name == ReadOp.OPERATION_NAME and any(user not in statements for user in _statements_with(op)):
                read = cast(ReadOp, op.opview)
                type_ = ir.MemRefType(read.buffer.type)
                kept.append((op.results[0], self._new([], type_.element_type, name_of_buffer(read.buffer), {})))
        with self._band([lane], [None]) as copies:
            first = IndexingMap((Interval(0, self._group - 1),), (), (), ((dim(0), Interval(0, 0)),))
            with condition(first, [self._lane])[0]:
                for op in statements:
                    with op.location:
                        self._copy(op, copies)
                for value, buffer in kept:
                    WriteOp.build(copies[value], buffer, self._own_place(), self._now)
        self._kept.update(kept)

    def _own_place(self) -> IndexingMap:
        """Return the map of an iteration's variables to its element of a buffer that has one for each."""
        dims = tuple(Interval(0, loop.extent - 1) for loop in self._loops)
        return IndexingMap(dims, (), tuple(dim(number) for number in range(len(dims))))

    @contextmanager
    def _band(
        self, given: Sequence[dict[str, Any]], variables: Sequence[ir.Value | None]
    ) -> Iterator[dict[ir.Value, ir.Value]]:
        """Write the loops around and these in them, with the conditions of the statement; gives copies of values."""
        outer = [
            {"extent": loop.extent, "called": loop.called, "group": self._group}
            | _decided(loop, "independent", "threads")
            for loop in self._loops
        ]
        outer[0] |= self._barrier
        self._barrier = {}
        copies, now = dict(self._known), []
        bands = itertools.chain(zip(outer, self._variables, strict=True), zip(given, variables, strict=True))
        with ExitStack() as points:
            for each, variable in bands:
                rest = {**each, "band": "thread"}
                loop = ParOp.build(rest.pop("extent"), rest.pop("called"), rest)
                if variable is not None:
                    copies[variable] = loop.variable
                now.append(loop.variable)
                points.enter_context(inside(loop.body))
            self._now, self._lane = now[: len(outer)], now[-1]
            for where, holds in self._guards:
                values = [self._value(each, copies) for each in where.variables]
                points.enter_context(condition(where.map, values)[0 if holds else 1])
            yield copies

    def _value(self, value: ir.Value, copies: dict[ir.Value, ir.Value]) -> ir.Value:
        """Return a value's copy at the insertion point; computes it if there is none."""

        def source(each: ir.Value) -> ir.Operation | None:
            op = defining_op(each)
            is_own = op is not None and op in self._inside and op.name != NewOp.OPERATION_NAME
            return op if is_own and each not in self._kept else None

        def needs(each: ir.Value) -> Sequence[ir.Value]:
            op = source(each)
            return [] if op is None else list(op.operands)

        def make(each: ir.Value, _: list[ir.Value]) -> ir.Value:
            if each in self._kept:
                return ReadOp.build(self._kept[each], self._own_place(), self._now)
            op = source(each)
            if op is not None:
                self._written(op, copies)
            return copies.get(each, each)

        return made(value, copies, needs, make)

    def _copy(self, op: ir.Operation, copies: dict[ir.Value, ir.Value]) -> None:
        """Copy a statement, and what is computed for it."""
        for operand in dict.fromkeys((*op.operands, *captured(op))):
            self._value(operand, copies)
        if not any(result in copies for result in op.results):
            self._written(op, copies)

    def _written(self, op: ir.Operation, copies: dict[ir.Value, ir.Value]) -> None:
        copy = copy_operation(op, copies)
        for each in walk(copy, *ACCESSES):
            access = access_of(each)
            if access.buffer not in self._buffers:
                continue
            count = len(self._now)
            shift = {number: dim(count + number) for number in range(len(access.map.dims))}
            own = self._own_place()
            map_ = IndexingMap(
                (*own.dims, *access.map.dims),
                (),
                (*own.results, *(result.substitute(shift) for result in access.map.results)),
                tuple((expr.substitute(shift), interval) for expr, interval in access.map.constraints),
            )
            value = [each.operands[0]] if access.writes else []
            is_copy = each == copy
            new = on_operands(each, [*value, self._buffers[access.buffer], *self._now, *access.variables], map_)
            if is_copy:
                copies.update(zip(op.results, new.results, strict=True))


def _is_value(op: ir.Operation) -> bool:
    """Whether an operation only computes, or reads an element."""
    return op.name in (ReadOp.OPERATION_NAME, *_INDICES) or op.name.startswith("stablehlo.")


def _changes(op: ir.Operation, buffer: ir.Value) -> bool:
    return any(access.writes and access.buffer == buffer for access in accesses_in(op))


def _statements_with(op: ir.Operation) -> Iterator[ir.Operation]:
    """Yield the statements of an operation's block that use what it computes, by other values too."""
    pending, seen = [op], {op}
    while pending:
        for result in pending.pop().results:
            for use in result.uses:
                user = use.owner.operation
                if user in seen:
                    continue
                seen.add(user)
                if _is_value(user):
                    pending.append(user)
                if not _is_value(user) or user.block != op.block:
                    yield next(each for each in (user, *ancestors(user)) if each.block == op.block)
