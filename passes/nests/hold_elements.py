"""The pass `hold-elements`."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.nests.accesses import ReadOp, WriteOp, extent_of
from xgpu.dialects.nests.loops import NewOp, ParOp, WhereOp
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.independence import are_apart
from xgpu.nests.rewriting import on_operands
from xgpu.nests.structure import (
    PAR,
    SEQ,
    BufferAccess,
    access_of,
    accesses_in,
    ancestors,
    has_par,
    name_of_buffer,
    operations_of,
)
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import owning_op, walk


@dataclass(frozen=True)
class HoldElements(Pass):
    """Holds an element of memory in a register while a seq loop changes it.

    The element is read before the loop and written after it, if all accesses of the loop to the buffer are to this one
    element, under whatever conditions, and no other iteration of the par loops around accesses it. In a block's own
    buffer the element has a value before, or the loop accesses it under no condition, so that no thread reads what was
    not written.
    Needs form-launches; of blocks' buffers it holds elements after assign-bands alone.

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
    """Whether a thread runs a loop alone; where bands are not assigned yet, whether that is certain."""
    around = _pars_around(seq)
    if has_par(seq) or not around:
        return False
    if any(par.band in ("grid", "thread") for par in around):
        return True
    return around[0].band is None and not has_par(*operations_of(around[0].body))


def _held(seq: ir.Operation) -> Iterator[list[BufferAccess]]:
    """Yield the accesses to each buffer that are all to one element, the same in every iteration."""
    by_buffer: dict[ir.Value, list[BufferAccess]] = {}
    for access in accesses_in(seq):
        by_buffer.setdefault(access.buffer, []).append(access)
    for buffer, accesses in by_buffer.items():
        first = _unguarded(accesses[0])
        if (
            all(_is_same(_unguarded(access), first) for access in accesses)
            and any(access.writes for access in accesses)
            and not any(access.is_atomic for access in accesses)
            and _is_in_memory(buffer)
            and not any(_is_in(owning_op(variable), seq) for variable in first.variables)
            and _is_own(first, seq)
            and (not _is_of_block(buffer) or _is_certain(accesses[0], seq) or _has_value(first, seq))
        ):
            yield accesses


def _unguarded(access: BufferAccess) -> BufferAccess:
    """Return an access as it is under no condition, with the variables alone that its element depends on."""
    used = sorted({number for result in access.map.results for number in result.variables()[0]})
    variables = tuple(access.variables[number] for number in used)
    places = {number: dim(place) for place, number in enumerate(used)}
    dims = tuple(Interval(0, (extent_of(variable) or 1) - 1) for variable in variables)
    results = tuple(result.substitute(places) for result in access.map.results)
    return replace(access, map=IndexingMap(dims, (), results), variables=variables, guards=())


def _is_same(access: BufferAccess, other: BufferAccess) -> bool:
    """Whether two accesses, both under no condition, are to the same element."""
    return (access.map, access.variables) == (other.map, other.variables)


def _is_of_block(buffer: ir.Value) -> bool:
    """Whether a block makes a buffer: what nobody has written there is no value."""
    owner = owning_op(buffer)
    return owner.name == NewOp.OPERATION_NAME and any(each.name == PAR for each in ancestors(owner))


def _is_certain(access: BufferAccess, seq: ir.Operation) -> bool:
    """Whether each iteration of a loop makes an access."""
    return all(
        each.name != WhereOp.OPERATION_NAME for each in takewhile(lambda each: each != seq, ancestors(access.op))
    )


def _has_value(access: BufferAccess, seq: ir.Operation) -> bool:
    """Whether the thread has written the element before a loop, in a block that the loop is in."""
    earlier = (
        op
        for inner in (seq, *takewhile(lambda each: each.name != PAR, ancestors(seq)))
        for op in takewhile(lambda each, inner=inner: each != inner, operations_of(inner.block))  # type: ignore[misc]
    )
    writes = (access_of(op) for op in earlier if op.name == WriteOp.OPERATION_NAME)
    return any(write.buffer == access.buffer and _is_same(_unguarded(write), access) for write in writes)


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
    first = _unguarded(accesses[0])
    outside = first.map
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
        on_operands(access.op, [*([access.op.operands[0]] if access.writes else []), held], whole)
