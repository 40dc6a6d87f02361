"""Steps of a block: which tiles a seq loop fills from what its steps do not change, so that it may do so ahead."""

from collections.abc import Sequence
from typing import cast

from xgpu import ir
from xgpu.dialects.nests.accesses import WriteOp
from xgpu.dialects.nests.loops import NewOp, ParOp, SeqOp
from xgpu.nests.structure import PAR, accesses_in, ancestors, operations_of
from xgpu.records import dataclass
from xgpu.structure import defining_op, walk

_NO_TILE = "expected a tile that is made in each step, and that par loops alone fill, from what the steps do not change"


@dataclass(frozen=True)
class StepCopies:
    """The statements of a step that may be done for later ones, and the tiles that they fill."""

    statements: list[ir.Operation]
    tiles: list[NewOp]


def copies_of(seq: SeqOp) -> StepCopies | str:
    """Return the copies of a loop's steps, or why they cannot be done ahead.

    These are par loops that write to tiles of the step alone, and read what no step changes. Nothing else may write to
    a tile, as the next step's elements would be lost.
    """
    around = [cast(ParOp, each.opview) for each in ancestors(seq.operation) if each.name == PAR]
    if any(par.band != "block" for par in around):
        return "a thread runs its steps alone"
    statements = operations_of(seq.body)
    tiles = [cast(NewOp, op.opview) for op in statements if op.name == NewOp.OPERATION_NAME]
    changed = {access.buffer for access in accesses_in(*statements) if access.writes}
    copies = [op for op in statements if op.name == PAR and _is_copy(op, {tile.buffer for tile in tiles}, changed, seq)]
    while True:
        others = [op for op in statements if op not in copies]
        lost = {access.buffer for access in accesses_in(*others) if access.writes}
        kept = [op for op in copies if not lost & _written(op)]
        if kept == copies:
            break
        copies = kept
    filled = set().union(*(_written(op) for op in copies))
    if not copies:
        return _NO_TILE
    return StepCopies(copies, [tile for tile in tiles if tile.buffer in filled])


def _written(op: ir.Operation) -> set[ir.Value]:
    return {access.buffer for access in accesses_in(op) if access.writes}


def _is_copy(op: ir.Operation, tiles: set[ir.Value], changed: set[ir.Value], seq: SeqOp) -> bool:
    accesses = accesses_in(op)
    own = {new.results[0] for new in walk(op, NewOp.OPERATION_NAME)}
    fills = all(
        (access.op.name == WriteOp.OPERATION_NAME and access.buffer in tiles) or access.buffer in own
        for access in accesses
        if access.writes
    )
    reads = all(access.buffer not in changed or access.buffer in own for access in accesses if access.reads)
    return fills and reads and not _takes_values(op, seq)


def _takes_values(op: ir.Operation, seq: SeqOp) -> bool:
    """Whether a statement uses a value that its step computes."""
    inside = set(walk(op))
    made: Sequence[ir.Operation | None] = [
        defining_op(operand)
        for each in inside
        for operand in each.operands
        if not isinstance(operand.type, ir.MemRefType)
    ]
    return any(maker is not None and maker not in inside and _is_in(maker, seq.operation) for maker in made)


def _is_in(op: ir.Operation, outer: ir.Operation) -> bool:
    return any(each == outer for each in ancestors(op))
