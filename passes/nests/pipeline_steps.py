"""The pass `pipeline-steps`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.attributes import map_attribute
from xgpu.dialects.nests.loops import NewOp, SeqOp, WhereOp
from xgpu.dialects.xgpu import YieldOp
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.rewriting import on_operands
from xgpu.nests.steps import StepCopies, copies_of
from xgpu.nests.structure import ACCESSES, SEQ, access_of, launches_of, operations_of
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk


@dataclass(frozen=True)
class PipelineSteps(Pass):
    """Has the steps of a seq loop fill tiles for later steps, if the program asks for it (``#stages(n)``).

    A tile becomes one for each of ``n`` steps, which take turns. Par loops that fill tiles from what the steps do not
    change do so ``n - 1`` steps ahead: before the loop for the first steps, and where a step begins for the one that
    comes so much later. Threads then wait once in a step, and warps compute while others still load. Refused are loops
    with no such tile.
    Needs assign-bands.

    ```mlir
    "xgpu.seq"() ({
    ^bb0(%k: index):
      %t = "xgpu.new"() {called = "t"} : () -> memref<64xf32>
      "xgpu.par"() ({ ... "xgpu.write"(%x, %t, %i) ... }) ...
      "xgpu.par"() ({ ... "xgpu.read"(%t, %i) ... }) ...
    }) {called = "k", extent = 8 : i64, stages = 2 : i64}
    // becomes
    %t = "xgpu.new"() {called = "t"} : () -> memref<2x64xf32>
    "xgpu.seq"() ({
    ^bb0(%p: index):
      "xgpu.par"() ({ ... "xgpu.write"(%x, %t, %p, %i) ... }) ...
    }) {called = "k", extent = 1 : i64}
    "xgpu.seq"() ({
    ^bb0(%k: index):
      "xgpu.where"(%k) ({ "xgpu.par"() ({ ... "xgpu.write"(%x, %t, %k, %i) {map = ... (d0 + 1) mod 2 ...} ... }) }, {})
      "xgpu.par"() ({ ... "xgpu.read"(%t, %k, %i) {map = ... d0 mod 2 ...} ... }) ...
    }) {called = "k", extent = 8 : i64}
    ```
    """

    NAME: ClassVar[str] = "pipeline-steps"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SEQ,))

    def apply(self, module: ir.Module) -> None:
        """Have the loops of every kernel of ``module`` run ahead that are asked to."""
        for launch in launches_of(module):
            for op in walk(launch.operation, SEQ):
                seq = cast(SeqOp, op.opview)
                if seq.stages is not None:
                    _pipeline(seq, seq.stages)


def _pipeline(seq: SeqOp, stages: int) -> None:
    copies = copies_of(seq)
    if isinstance(copies, str):
        raise InvalidInput(f"'#stages({stages})': {copies}", source_of(seq.operation))
    del seq.operation.attributes["stages"]
    count = min(stages, seq.extent)
    if count > 1:
        _Ahead(seq, copies, count).write()


class _Ahead:
    """A loop whose copies run ``count - 1`` steps ahead."""

    def __init__(self, seq: SeqOp, copies: StepCopies, count: int):
        self._seq, self._copies, self._count = seq, copies, count

    def write(self) -> None:
        """Change the loop."""
        op, ahead = self._seq.operation, self._count - 1
        with op.location:
            with ir.InsertionPoint(op):
                tiles = {tile.buffer: self._widened(tile) for tile in self._copies.tiles}
                first = SeqOp.build(ahead, self._seq.called)
                with ir.InsertionPoint(first.body):
                    self._copy(tiles, first.variable, 0, Interval(0, ahead - 1))
                    YieldOp.build([])
            with ir.InsertionPoint.at_block_begin(self._seq.body):
                later = Interval(0, self._seq.extent - 1 - ahead)
                condition = IndexingMap((Interval(0, self._seq.extent - 1),), (), (), ((dim(0), later),))
                where = WhereOp.build(condition, [self._seq.variable])
            with ir.InsertionPoint(where.then):
                if later.upper >= 0:
                    self._copy(tiles, self._seq.variable, ahead, later)
                YieldOp.build([])
            with ir.InsertionPoint(where.otherwise):
                YieldOp.build([])
        for statement in self._copies.statements:
            statement.erase()
        whole = Interval(0, self._seq.extent - 1)
        for each in walk(self._seq.operation, *ACCESSES):
            if each.operands and access_of(each).buffer in tiles:
                self._turn(each, tiles, self._seq.variable, 0, whole)
        for tile in self._copies.tiles:
            tile.operation.erase()

    def _widened(self, tile: NewOp) -> ir.Value:
        """Return a buffer of as many tiles as take turns."""
        type_ = ir.MemRefType(tile.buffer.type)
        asked = {"memory": tile.memory, "pad": tile.pad, "offset": tile.offset}
        given = {name: value for name, value in asked.items() if value is not None}
        wide = ir.MemRefType.get([self._count, *type_.shape], type_.element_type)
        return NewOp.build(wide, tile.called, given, tile.operation.location)

    def _copy(self, tiles: dict[ir.Value, ir.Value], variable: ir.Value, by: int, steps: Interval) -> None:
        """Write the copies of the step ``by`` after the one that a variable says, which is one of ``steps``."""
        for statement in self._copies.statements:
            copy = statement.clone()
            while (dead := next((op for op in walk(copy) if self._is_never_done(op, by, steps)), None)) is not None:
                _clear_branch(dead)
            for op in walk(copy):
                if self._takes_step(op):
                    self._shift(op, variable, by, steps)
                if op.name in ACCESSES and access_of(op).buffer in tiles:
                    self._turn(op, tiles, variable, by, steps)

    def _takes_step(self, op: ir.Operation) -> bool:
        return "map" in op.attributes and self._seq.variable in list(op.operands)

    def _is_never_done(self, op: ir.Operation, by: int, steps: Interval) -> bool:
        """Whether conditions leave out an operation in all of the steps."""
        if not self._takes_step(op) or op.name == WhereOp.OPERATION_NAME:
            return False
        dims = cast(WhereOp, op.opview).map.dims
        variables = list(op.operands)[len(op.operands) - len(dims) :]
        own = [each for each, variable in zip(dims, variables, strict=True) if variable == self._seq.variable]
        return any(each.upper < steps.lower + by or each.lower > steps.upper + by for each in own)

    def _shift(self, op: ir.Operation, variable: ir.Value, by: int, steps: Interval) -> None:
        """Have an operation take the number of a step from ``variable``, ``by`` steps before it."""
        map_ = cast(WhereOp, op.opview).map
        first = len(op.operands) - len(map_.dims)
        dims = list(map_.dims)
        places = {}
        for number, operand in enumerate(list(op.operands)[first:]):
            if operand == self._seq.variable:
                op.operands[first + number] = variable
                lower, upper = dims[number].lower - by, dims[number].upper - by
                dims[number] = Interval(max(lower, steps.lower), min(upper, steps.upper))
                places[number] = dim(number) + by
        shifted = replace(
            map_,
            dims=tuple(dims),
            results=tuple(result.substitute(places) for result in map_.results),
            constraints=tuple((expr.substitute(places), interval) for expr, interval in map_.constraints),
        )
        op.attributes["map"] = map_attribute(shifted)

    def _turn(
        self, op: ir.Operation, tiles: dict[ir.Value, ir.Value], step: ir.Value, by: int, steps: Interval
    ) -> None:
        """Make an access to a tile one to that of a step, ``by`` after the one that a variable says."""
        access = access_of(op)
        variables: Sequence[ir.Value] = [*access.variables, step]
        number = len(access.map.dims)
        turn = (dim(number) + by) % self._count
        map_ = replace(access.map, dims=(*access.map.dims, steps), results=(turn, *access.map.results))
        value = [op.operands[0]] if access.writes else []
        on_operands(op, [*value, tiles[access.buffer], *variables], map_)


def _clear_branch(op: ir.Operation) -> None:
    """Erase the statements of the branch that an operation is in, the innermost one."""
    block = op.block
    while (parent := cast(ir.Operation, block.owner)).name != WhereOp.OPERATION_NAME:
        block = parent.block
    for each in reversed(operations_of(block)):
        each.erase()
