"""The pass `stage-reads`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, cast

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, DeviceName, device
from xgpu.dialects.nests.accesses import ReadOp, WriteOp
from xgpu.dialects.nests.loops import LaunchOp, NewOp, ParOp, SeqOp
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.hlo.stablehlo_builder import splat
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.maps.staging import ReadTiles, StagedRead, Statements, is_ragged, staging_of
from xgpu.nests.rewriting import condition, inside, on_operands, on_variables
from xgpu.nests.structure import (
    ACCESSES,
    LAUNCH,
    PAR,
    SEQ,
    access_of,
    launches_of,
    name_of_buffer,
    operations_of,
    perfect_nest,
)
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass
from xgpu.structure import captured, copy_operation, is_constant, owning_op, producer, walk


@dataclass(frozen=True)
class StageReads(Pass):
    """Stages what seq loops read in shared memory, where iterations of the par loops around share it.

    Blocks then have tiles of the par loops' iterations. Each step copies the elements that its iterations of the seq
    loop read, each once, to buffers whose rows go along the par loops, and threads read them there. The iterations'
    own buffers are in registers, with an element for each. Where tiles do not divide a loop, what is beyond its end is
    computed from zeros and written nowhere; a step more has the rest of a seq loop. It is done where reads take fewer
    passes through the first cache by it (`xgpu.nests.maps.staging`), or where the program asks for tiles
    (``#tile(n)``); ``#tile(0)`` on a seq loop leaves its reads as they are.
    Needs form-launches.

    ```mlir
    "xgpu.par"() ({ "xgpu.par"() ({
      "xgpu.seq"() ({ ... "xgpu.read"(%a, %i, %k) ... "xgpu.read"(%b, %j, %k) ... }) {called = "k", extent = 512 : i64}
    }) {called = "j", extent = 256 : i64} }) {called = "i", extent = 256 : i64}
    // becomes
    "xgpu.par"() ({ "xgpu.par"() ({
      "xgpu.seq"() ({
        %ta = "xgpu.new"() {called = "a_tile"} : () -> memref<32x64xf32>
        %tb = "xgpu.new"() {called = "b_tile"} : () -> memref<32x64xf32>
        "xgpu.par"() ({ ... "xgpu.write"(%x, %ta, %k, %i) ... }) ...
        "xgpu.par"() ({ ... "xgpu.write"(%y, %tb, %k, %j) ... }) ...
        "xgpu.par"() ({ "xgpu.par"() ({
          "xgpu.seq"() ({ ... "xgpu.read"(%ta, %k, %i) ... }) {called = "k", extent = 32 : i64}
        }) {called = "j", extent = 64 : i64} }) {called = "i", extent = 64 : i64}
      }) {called = "k_step", extent = 16 : i64}
    }) {called = "j_tile", extent = 4 : i64} }) {called = "i_tile", extent = 4 : i64}
    ```
    """

    NAME: ClassVar[str] = "stage-reads"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((LAUNCH,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU, whose caches and multiprocessors there are."""

    def apply(self, module: ir.Module) -> None:
        """Stage the reads of every kernel of ``module`` for which that pays."""
        launches = launches_of(module)
        bands = sum(not _is_only_one(op) for op in walk(module.operation, PAR))
        for launch in launches:
            self._look_at(launch, bands)

    def _look_at(self, launch: LaunchOp, bands: int) -> None:
        asked = [op for op in walk(launch.operation, PAR, SEQ) if cast(SeqOp, op.opview).tile]
        top = operations_of(launch.body)
        if len(top) != 1 or top[0].name != PAR:
            found: ReadTiles | str = "the kernel is not one nest of par loops"
        else:
            found = staging_of(perfect_nest(top[0]), device(self.target), bands)
        if isinstance(found, ReadTiles):
            staged = {read.seq.operation for read in found.reads}
            if left := [op for op in asked if op.name == SEQ and op not in staged]:
                raise _refused(left[0], "no read of the loop can be staged")
            _Tiling(perfect_nest(top[0]), found).write()
        elif asked:
            raise _refused(asked[0], found)
        elif walk(launch.operation, SEQ):
            remark(self.NAME, launch.operation, "reads are not staged in shared memory: {}", found)


def _refused(op: ir.Operation, reason: str) -> InvalidInput:
    loop = cast(SeqOp, op.opview)
    return InvalidInput(f"'#tile({loop.tile})' on '{loop.called}': {reason}", source_of(op))


def _is_only_one(par: ir.Operation) -> bool:
    """Whether a par loop is the only thing in another one."""
    return par.parent is not None and par.parent.name == PAR and len(operations_of(par.block)) == 1


@dataclass(frozen=True)
class _Place:
    """A loop's variable in the tiles: an expression of variables, the last of which is the one inside."""

    variables: tuple[ir.Value, ...]
    sizes: tuple[int, ...]
    expr: AffineExpr


class _Tiling:
    """Par loops whose blocks have tiles, and what is written in their place."""

    def __init__(self, loops: Sequence[ParOp], plan: ReadTiles):
        self._loops, self._plan = loops, plan
        self._tiled = [(loop, side) for loop, side in zip(loops, plan.sides, strict=True) if side > 1]
        self._tiles: dict[ir.Value, ir.Value] = {}
        self._places: dict[ir.Value, _Place] = {}
        self._buffers: dict[ir.Value, ir.Value] = {}
        self._kept: dict[ir.Value, ir.Value] = {}
        self._staged: dict[ir.Operation, ir.Value] = {}

    def write(self) -> None:
        """Write the tiles in front of the loops, and erase these."""
        first = self._loops[0].operation
        with first.location, ir.InsertionPoint(first), ExitStack() as blocks:
            for loop, side in zip(self._loops, self._plan.sides, strict=True):
                called = f"{loop.called}_tile" if side > 1 else loop.called
                outer = ParOp.build(-(-loop.extent // side), called, _independence(loop))
                blocks.enter_context(inside(outer.body))
                self._tiles[loop.variable] = outer.variable
                if side == 1:
                    self._places[loop.variable] = _Place((outer.variable,), (loop.extent,), dim(0))
            self._body()
        first.erase()

    def _body(self) -> None:
        statements = Statements.of(self._loops, self._plan.reads)
        staged = {read.seq.operation for read in self._plan.reads}
        for op in operations_of(self._loops[-1].body):
            if op.name == NewOp.OPERATION_NAME:
                new = cast(NewOp, op.opview)
                self._buffers[new.buffer] = self._new(ir.MemRefType(new.buffer.type).element_type, new.called)
        for part in statements.parts:
            if part[0] in staged:
                with part[0].location:
                    self._steps(cast(SeqOp, part[0].opview))
            else:
                self._statements(part, [value for value in statements.kept if owning_op(value) in part])

    def _new(self, element: ir.Type, called: str) -> ir.Value:
        """Make a buffer with an element for each iteration of a tile; threads hold them."""
        type_ = ir.MemRefType.get([side for _, side in self._tiled], element)
        buffer = NewOp.build(type_, called, {"memory": "register"})
        if any(is_ragged(loop, side) for loop, side in self._tiled):
            with self._band(guarded=False):
                WriteOp.build(_zero(element), buffer, *self._own_place())
        return buffer

    def _statements(self, part: Sequence[ir.Operation], kept: Sequence[ir.Value]) -> None:
        """Write statements of an iteration, for all of a tile; values that are ``kept`` go to buffers."""
        # A constant is written where it is used.
        if all(op.name == "stablehlo.constant" for op in part):
            return
        buffers = {value: self._new(ir.RankedTensorType(value.type).element_type, "kept") for value in kept}
        with self._band(guarded=True) as copies:
            for op in part:
                with op.location:
                    self._copy(op, copies)
            for value, buffer in buffers.items():
                WriteOp.build(copies[value], buffer, *self._own_place())
        self._kept |= buffers

    @contextmanager
    def _band(self, guarded: bool) -> Iterator[dict[ir.Value, ir.Value]]:
        """Write the loops over a tile; gives copies of values. ``guarded``: nothing is done beyond loops' ends."""
        with ExitStack() as points:
            for loop, _ in self._tiled:
                inner = ParOp.build(self._side(loop), loop.called, _independence(loop))
                points.enter_context(inside(inner.body))
                self._set_place(loop, inner.variable)
            if guarded and (guard := self._guard([loop for loop, _ in self._tiled])):
                points.enter_context(guard[0])
            yield {}

    def _set_place(self, loop: ParOp, inner: ir.Value) -> None:
        side = self._side(loop)
        sizes = (-(-loop.extent // side), side)
        self._places[loop.variable] = _Place((self._tiles[loop.variable], inner), sizes, dim(0) * side + dim(1))

    def _side(self, loop: ParOp) -> int:
        return self._plan.sides[list(self._loops).index(loop)]

    def _guard(self, loops: Sequence[ParOp]) -> tuple[ir.InsertionPoint, ir.InsertionPoint] | None:
        """Write the condition that iterations are before the ends of these loops; None if they always are.

        Returns where the statements go for those that are, and for those that are not.
        """
        ragged = [loop for loop in loops if is_ragged(loop, self._side(loop))]
        if not ragged:
            return None
        exprs, variables, sizes = self._joined([loop.variable for loop in ragged])
        ends = (Interval(0, loop.extent - 1) for loop in ragged)
        return condition(IndexingMap(sizes, (), (), tuple(zip(exprs, ends, strict=True))), variables)

    def _joined(self, values: Sequence[ir.Value]) -> tuple[list[AffineExpr], list[ir.Value], tuple[Interval, ...]]:
        """Return what loops' variables are now: expressions, of which variables, and how far these go."""
        exprs: list[AffineExpr] = []
        variables: list[ir.Value] = []
        sizes: list[Interval] = []
        for place in (self._places[value] for value in values):
            shift = {number: dim(len(variables) + number) for number in range(len(place.variables))}
            exprs.append(place.expr.substitute(shift))
            variables += place.variables
            sizes += [Interval(0, size - 1) for size in place.sizes]
        return exprs, variables, tuple(sizes)

    def _own_place(self) -> tuple[IndexingMap, list[ir.Value]]:
        """Return the map to the element of the iteration of a tile, and its variables."""
        return _identity([side for _, side in self._tiled]), self._inner(loop.variable for loop, _ in self._tiled)

    def _inner(self, values: Iterable[ir.Value]) -> list[ir.Value]:
        """Return the variables inside of a tile that say which value of a loop's variable it is."""
        return [self._places[value].variables[-1] if value in self._places else value for value in values]

    def _steps(self, seq: SeqOp) -> None:
        """Write a seq loop whose reads are staged, by steps; the last one may be shorter."""
        step = self._plan.step_of(seq)
        whole, rest = divmod(seq.extent, step)
        self._step(seq, whole, step, 0)
        if rest:
            self._step(seq, 1, rest, whole * step)

    def _step(self, seq: SeqOp, count: int, step: int, first: int) -> None:
        outer = SeqOp.build(count, f"{seq.called}_step")
        with inside(outer.body):
            reads = [read for read in self._plan.reads if read.seq == seq]

            def place(inner: ir.Value) -> None:
                self._places[seq.variable] = _Place(
                    (outer.variable, inner), (count, step), dim(0) * step + dim(1) + first
                )

            filled: dict[object, ir.Value] = {}
            for read in reads:
                if read.key not in filled:
                    with read.access.op.location:
                        filled[read.key] = self._filled(read, step, place)
                self._staged[read.access.op] = filled[read.key]
            with self._band(guarded=False) as copies:
                inner = SeqOp.build(step, seq.called)
                place(inner.variable)
                with inside(inner.body):
                    for op in operations_of(seq.body):
                        with op.location:
                            self._copy(op, copies)

    def _filled(self, read: StagedRead, step: int, place: Callable[[ir.Value], None]) -> ir.Value:
        """Make the tile of a read for a step, and write the loops that fill it; ``place`` sets the step's variable."""
        loops = {loop.variable: loop for loop in self._loops}
        inside_tile = self._inside_tile(read)
        extents = [
            step if value == read.seq.variable else self._plan.extent_of(value, self._loops, read.seq)
            for value in inside_tile
        ]
        element = ir.MemRefType(read.access.buffer.type).element_type
        tile = NewOp.build(ir.MemRefType.get(extents, element), f"{name_of_buffer(read.access.buffer)}_tile")
        own = []
        with ExitStack() as points:
            for value, extent in zip(inside_tile, extents, strict=True):
                loop = cast(SeqOp, owning_op(value).opview)
                copying = ParOp.build(extent, loop.called, {"independent": "proved"})
                points.enter_context(inside(copying.body))
                own.append(copying.variable)
                if value == read.seq.variable:
                    place(copying.variable)
                elif value in loops:
                    self._set_place(loops[value], copying.variable)
                else:
                    self._places[value] = _Place((copying.variable,), (extent,), dim(0))
            guard = self._guard([loop for value, loop in loops.items() if value in read.variables])
            to = tile, _identity(extents), own
            if guard:
                with guard[1]:
                    WriteOp.build(_zero(element), *to)
                points.enter_context(guard[0])
            exprs, variables, sizes = self._joined(read.variables)
            indices = tuple(result.substitute(exprs) for result in read.map.results)
            ends = zip(exprs, read.map.dims, strict=True)
            whole = tuple((expr, end) for expr, end in ends if not end.contains_interval(expr.interval(sizes, ())))
            value_read = ReadOp.build(read.access.buffer, IndexingMap(sizes, (), indices, whole), variables)
            WriteOp.build(value_read, *to)
        for value in read.variables:
            if value != read.seq.variable and value not in loops:
                del self._places[value]
        return tile

    def _inside_tile(self, read: StagedRead) -> list[ir.Value]:
        """Return the variables of which a tile has several values."""
        tiled = [loop.variable for loop, _ in self._tiled]
        return [value for value in read.variables if value in tiled or value not in self._tiles]

    def _copy(self, op: ir.Operation, copies: dict[ir.Value, ir.Value]) -> None:
        """Copy a statement, and the constants that it uses, for an iteration of the tile."""
        for operand in dict.fromkeys((*op.operands, *captured(op))):
            if operand in copies:
                continue
            if operand in self._kept:
                copies[operand] = ReadOp.build(self._kept[operand], *self._own_place())
            elif is_constant(operand):
                copies[operand] = copy_operation(producer(operand), {}).results[0]
            else:
                copies[operand] = operand
        copy = copy_operation(op, copies)
        for loop in walk(copy, SEQ):
            if "tile" in loop.attributes:
                del loop.attributes["tile"]
        for old, new in zip(walk(op), walk(copy), strict=True):
            is_whole = new == copy
            if old in self._staged:
                changed = self._from_tile(old, new)
            elif new.name in ACCESSES and access_of(new).buffer in self._buffers:
                changed = self._of_iteration(new)
            elif "map" in new.attributes:
                changed = self._moved(new)
            else:
                continue
            if is_whole:
                copies.update(zip(op.results, changed.results, strict=True))

    def _from_tile(self, old: ir.Operation, new: ir.Operation) -> ir.Operation:
        """Replace the copy of a staged read by one of its tile."""
        read = next(each for each in self._plan.reads if each.access.op == old)
        tile = self._staged[old]
        names = dict(zip(read.access.variables, access_of(new).variables, strict=True))
        variables = self._inner(names[value] for value in self._inside_tile(read))
        return on_operands(new, [tile, *variables], _identity(ir.MemRefType(tile.type).shape))

    def _of_iteration(self, op: ir.Operation) -> ir.Operation:
        """Replace an access to an iteration's own buffer by one to its element of the tile's."""
        map_, variables = self._own_place()
        value = [op.operands[0]] if access_of(op).writes else []
        return on_operands(op, [*value, self._buffers[access_of(op).buffer], *variables], map_)

    def _moved(self, op: ir.Operation) -> ir.Operation:
        """Replace an operation on variables of the loops by one on those of the tile."""
        values = list(dict.fromkeys(operand for operand in op.operands if operand in self._places))
        if not values:
            return op
        exprs, variables, sizes = self._joined(values)
        return on_variables(op, dict(zip(values, exprs, strict=True)), variables, sizes)


def _independence(loop: ParOp) -> dict[str, Any]:
    return {} if loop.independent is None else {"independent": loop.independent}


def _identity(sizes: Sequence[int]) -> IndexingMap:
    dims = tuple(Interval(0, size - 1) for size in sizes)
    return IndexingMap(dims, (), tuple(dim(number) for number in range(len(dims))))


def _zero(element: ir.Type) -> ir.Value:
    return splat(0, ir.RankedTensorType.get([], element))
