"""The lifetimes of a block's buffers: the spans between two barriers in which some thread may access their memory.

Spans are bits of a number, as in `xgpu.block_plan.order.lifetimes`: the first one begins with the block, each other one
where threads have waited, and all that may be done before they wait again is in it. A span goes on in the next
iteration of a loop, and in either branch of a condition. Two buffers may lie in the same memory if they have no span in
common: on every way from an access of one to an access of the other all threads wait.
"""

import math
from collections.abc import Sequence
from typing import cast

from xgpu import ir
from xgpu.dialects.nests.loops import BLOCK_SCOPE, BarrierOp, LaunchOp, NewOp, ParOp, SeqOp, WhereOp
from xgpu.dialects.threads import TILE_ALIGNMENT
from xgpu.dtypes import dtype_of_element
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.nests.structure import PAR, SEQ, accesses_in, ancestors, band_at, operations_of, shared_shape
from xgpu.structure import walk


def lifetimes(launch: LaunchOp) -> dict[ir.Value, int]:
    """Return the spans of the buffers of a kernel that are in shared memory, in the order in which they are made.

    What a buffer holds is kept from the first to the last statement of its block that accesses it.
    """
    spans = _Spans()
    spans.block(launch.body, 1)
    used: dict[ir.Value, list[ir.Operation]] = {}
    for access in accesses_in(launch.operation):
        used.setdefault(access.buffer, []).append(access.op)
    return {new.buffer: spans.through(_through(new, used.get(new.buffer, []))) for new in shared_buffers(launch)}


def shared_buffers(launch: LaunchOp) -> list[NewOp]:
    """Return the buffers of a kernel that are in shared memory, in the order in which they are made."""
    buffers = [cast(NewOp, op.opview) for op in walk(launch.operation, NewOp.OPERATION_NAME)]
    return [new for new in buffers if new.memory == "shared"]


def bytes_of(new: NewOp) -> int:
    """Return the bytes of a buffer in shared memory, up to where the next one may begin; elements take whole bytes."""
    bits = dtype_of_element(ir.MemRefType(new.buffer.type).element_type).storage_bits
    size = math.prod(shared_shape(new)) * max(1, bits // 8)
    return -(-size // TILE_ALIGNMENT) * TILE_ALIGNMENT


def shared_bytes(launch: LaunchOp) -> int:
    """Return the bytes of shared memory of a kernel's blocks."""
    size = 0
    for new in sorted(shared_buffers(launch), key=lambda each: each.offset is None):
        size = max(size, (size if new.offset is None else new.offset) + bytes_of(new))
    return size


def first_access(new: NewOp) -> ir.Operation | None:
    """Return the first statement of a buffer's block that accesses it; None if none does."""
    return next(iter(_through(new, [use.owner.operation for use in new.buffer.uses])), None)


def _through(new: NewOp, accesses: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Return the operations of a buffer's block from the first to the last one in which it is accessed."""
    block = new.operation.block
    operations = operations_of(block)
    places = [operations.index(next(each for each in (op, *ancestors(op)) if each.block == block)) for op in accesses]
    return operations[min(places) : max(places) + 1] if places else []


class _Spans:
    """Finds in which spans the operations of a block may be done."""

    def __init__(self) -> None:
        self._found: dict[ir.Operation, int] = {}
        self._barriers: dict[ir.Operation, int] = {}

    def block(self, block: ir.Block, spans: int) -> int:
        """Go through operations that begin in these spans; return those in which what comes next begins."""
        for op in operations_of(block):
            self._found[op] = self._found.get(op, 0) | spans
            spans = self._after(op, spans)
        return spans

    def through(self, operations: Sequence[ir.Operation]) -> int:
        """Return the spans in which these operations, and all that is inside of them, may be done."""
        found = 0
        for op in operations:
            for each in walk(op):
                found |= self._found.get(each, 0)
        return found

    def _after(self, op: ir.Operation, spans: int) -> int:
        if op.name == BarrierOp.OPERATION_NAME:
            if cast(BarrierOp, op.opview).scope != BLOCK_SCOPE:
                return spans
            return self._barriers.setdefault(op, 2 << len(self._barriers))
        if op.name == SEQ:
            seq = cast(SeqOp, op.opview)
            return self._loop(seq.body, spans, seq.extent > 1)
        if op.name == PAR and cast(ParOp, op.opview).band == "block":
            map_ = cast(IndexingMap, cast(ParOp, op.opview).map)
            return self._loop(band_at(op)[-1].body, spans, any(each.size > 1 for each in map_.symbols))
        if op.name == WhereOp.OPERATION_NAME:
            where = cast(WhereOp, op.opview)
            return self.block(where.then, spans) | self.block(where.otherwise, spans)
        return spans

    def _loop(self, body: ir.Block, spans: int, repeats: bool) -> int:
        """Go through a loop: what is done last in an iteration may be done beside the begin of the next one."""
        after = self.block(body, spans)
        return self.block(body, spans | after) if repeats else after
