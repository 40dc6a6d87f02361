"""The pass `hold-elements`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.attributes import map_attribute
from xgpu.dialects.nests.accesses import ReadOp, WriteOp, extent_of
from xgpu.dialects.nests.loops import NewOp, ParOp
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.independence import are_apart
from xgpu.nests.structure import PAR, SEQ, BufferAccess, accesses_in, ancestors, has_par, name_of_buffer
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import attributes_of, owning_op, walk


@dataclass(frozen=True)
class HoldElements(Pass):
    """Holds an element of memory in a register while a seq loop changes it.

    The element is read before the loop and written after it, if all accesses of the loop to the buffer are to this one
    element and no other iteration of the par loops around accesses it.
    Needs assign-bands.

    ```mlir
    "xgpu.seq"() ({ ... "xgpu.accumulate"(%x, %c, %i, %j) {combiner = "add", ...} ... }) {extent = 64 : i64, ...}
    // becomes
    %held = "xgpu.new"() {called = "held_C"} : () -> memref<f32>
    %before = "xgpu.read"(%c, %i, %j) ...
    "xgpu.write"(%before, %held) ...
    "xgpu.seq"() ({ ... "xgpu.accumulate"(%x, %held) {combiner = "add", ...} ... }) {extent = 64 : i64, ...}
    %after = "xgpu.read"(%held) ...
    "xgpu.write"(%after, %c, %i, %j) ...
    ```
    """

    NAME: ClassVar[str] = "hold-elements"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SEQ,))

    def apply(self, module: ir.Module) -> None:
        """Hold what the seq loops of ``module`` change, outer loops first."""
        for op in walk(module.operation, SEQ, post_order=False):
            if _is_of_thread(op):
                for accesses in list(_held(op)):
                    _hold(op, accesses)


def _pars_around(seq: ir.Operation) -> list[ParOp]:
    return [cast(ParOp, each.opview) for each in ancestors(seq) if each.name == PAR]


def _is_of_thread(seq: ir.Operation) -> bool:
    """Whether a thread runs a loop alone."""
    return any(par.band in ("grid", "thread") for par in _pars_around(seq)) and not has_par(seq)


def _held(seq: ir.Operation) -> Iterator[list[BufferAccess]]:
    """Yield the accesses to each buffer that are all to one element, the same in every iteration."""
    by_buffer: dict[ir.Value, list[BufferAccess]] = {}
    for access in accesses_in(seq):
        by_buffer.setdefault(access.buffer, []).append(access)
    for buffer, accesses in by_buffer.items():
        places = {(access.map.results, access.variables) for access in accesses}
        if (
            len(places) == 1
            and any(access.writes for access in accesses)
            and not any(access.is_atomic for access in accesses)
            and _is_in_memory(buffer)
            and not any(_is_in(owning_op(variable), seq) for variable in accesses[0].variables)
            and _is_own(_unguarded(accesses[0]), seq)
        ):
            yield accesses


def _unguarded(access: BufferAccess) -> BufferAccess:
    """Return an access as it is under no condition."""
    dims = tuple(Interval(0, (extent_of(variable) or 1) - 1) for variable in access.variables)
    return replace(access, map=IndexingMap(dims, (), access.map.results), guards=())


def _is_own(access: BufferAccess, seq: ir.Operation) -> bool:
    """Whether an element is there under no condition, and no other iteration of the par loops around accesses it."""
    sizes = zip(access.map.result_ranges(), access.shape, strict=True)
    if not all(Interval(0, size - 1).contains_interval(found) for found, size in sizes):
        return False
    return all(
        are_apart(access, other, par.operation, par.variable)
        for par in _pars_around(seq)
        for other in accesses_in(par.operation)
        if other.buffer == access.buffer and not _is_in(owning_op(access.buffer), par.operation)
    )


def _is_in_memory(buffer: ir.Value) -> bool:
    """Whether a buffer is made outside of what a thread runs."""
    owner = owning_op(buffer)
    if owner.name != NewOp.OPERATION_NAME:
        return True
    return all(each.name != PAR or cast(ParOp, each.opview).band == "block" for each in ancestors(owner))


def _is_in(op: ir.Operation, outer: ir.Operation) -> bool:
    return op == outer or any(each == outer for each in ancestors(op))


def _hold(seq: ir.Operation, accesses: list[BufferAccess]) -> None:
    first = accesses[0]
    outside = _unguarded(first).map
    whole = IndexingMap((), (), ())
    type_ = ir.MemRefType.get([], ir.MemRefType(first.buffer.type).element_type)
    with seq.location:
        with ir.InsertionPoint(seq):
            held = NewOp.build(type_, f"held_{name_of_buffer(first.buffer)}")
            WriteOp.build(ReadOp.build(first.buffer, outside, first.variables), held, whole, [])
        following = [op.operation for op in seq.block.operations]
        with ir.InsertionPoint(following[following.index(seq) + 1]):
            WriteOp.build(ReadOp.build(held, whole, []), first.buffer, outside, first.variables)
    for access in accesses:
        _redirect(access, held, whole)


def _redirect(access: BufferAccess, held: ir.Value, whole: IndexingMap) -> None:
    """Make an access one to the register."""
    op = access.op
    value = [op.operands[0]] if access.writes else []
    new = ir.Operation.create(
        op.name,
        results=[result.type for result in op.results],
        operands=[*value, held],
        attributes={**attributes_of(op), "map": map_attribute(whole)},
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()
