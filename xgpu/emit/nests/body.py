"""Writes the statements of a nest: loops, conditions, barriers, accesses and what is computed from elements."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Self, cast

from xgpu import ir
from xgpu.costs.sectors import SECTOR_BYTES
from xgpu.dialects.nests.accesses import AccumulateOp, FromIndexOp, ReadOp, ToIndexOp, WriteOp, elements_of
from xgpu.dialects.nests.assembly import AsmOp
from xgpu.dialects.nests.loops import WARP_SCOPE, AnchorOp, BarrierOp, LaunchOp, NewOp, ParOp, SeqOp, WhereOp
from xgpu.dialects.threads import AllocateSharedOp
from xgpu.dialects.xgpu import InDomainOp
from xgpu.dtypes import DType, dtype_of_element
from xgpu.emit.builders import Values, apply_map, scalar_type
from xgpu.emit.kernel_builder import Tensor, Variable, choose, loop, sync_threads, sync_warps, when
from xgpu.emit.nests.held import held_by_thread, held_in, parts_of
from xgpu.emit.nests.instructions import emit_instructions
from xgpu.emit.scalar.constants import emit_constant
from xgpu.emit.scalar.op import ScalarOp, compare_integers, constant
from xgpu.emit.scalar.table import build_scalar
from xgpu.errors import CompilerError, Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.indexing.affine import constant as number
from xgpu.indexing.affine import dim, linearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.held_buffers import band_of, row_of
from xgpu.nests.maps.boxes import boxed
from xgpu.nests.structure import (
    SEQ,
    BufferAccess,
    access_of,
    accesses_in,
    band_at,
    is_short,
    memory_of,
    operations_of,
    shared_shape,
)
from xgpu.records import dataclass
from xgpu.structure import dtype_of, owning_op, walk

MOST_REPEATED = 32
"""Operations of an iteration of a loop of which several are written one after the other, at most."""
MOST_ITERATIONS = 128
"""Iterations that these are at most, of the loop and of a box around: more operands than registers hold."""
MAX_UNROLLED = 10_000
"""Statements of a kernel that are written for iterations of unrolled loops, at most."""

Index = ir.Value | int
"""The value of a loop's variable; a number where the loop is unrolled."""


@dataclass(frozen=True)
class Memories:
    """The memories of buffers that threads share: tensors that are only read, and tensors that change.

    ``synchronized`` are the tensors that barriers are for.
    """

    inputs: Mapping[ir.Value, ir.Value]
    tensors: dict[ir.Value, Tensor]
    synchronized: list[Tensor] = field(default_factory=list)

    @classmethod
    def of(cls, launch: LaunchOp, inputs: Mapping[ir.Value, ir.Value], outputs: Mapping[ir.Value, Tensor]) -> Self:
        """Return the memories of a kernel: those that it is given, and tiles, which are made here."""
        memories = cls(inputs, dict(outputs))
        read = {access.buffer for access in accesses_in(launch.operation) if access.reads}
        memories.synchronized.extend(tensor for buffer, tensor in outputs.items() if buffer in read)
        for op in walk(launch.operation, NewOp.OPERATION_NAME):
            new = cast(NewOp, op.opview)
            if new.memory == "shared":
                with op.location:
                    tile = Tensor(AllocateSharedOp.build(shared_shape(new), _scalar(new.buffer), offset=new.offset))
                memories.tensors[new.buffer] = tile
                memories.synchronized.append(tile)
        return memories


@dataclass(frozen=True)
class Iteration:
    """A thread's values in an iteration: numbers of loops, elements that were computed, and buffers in registers."""

    indices: dict[ir.Value, Index] = field(default_factory=dict)
    elements: dict[ir.Value, ir.Value] = field(default_factory=dict)
    registers: dict[ir.Value, list[Variable]] = field(default_factory=dict)

    def inner(self, held: Mapping[ir.Value, list[Variable]]) -> "Iteration":
        """Return an iteration of a loop inside of this one, with these parts of what its thread holds of a block's."""
        return Iteration(dict(self.indices), dict(self.elements), {**self.registers, **held})


class BodyWriter:
    """Writes blocks of statements at the current insertion point; ``position`` is the thread's and block's number.

    Where a thread goes through several iterations of a band together, each statement is written for all of them before
    the next one. They are independent, so that is an order as good as any.
    """

    def __init__(self, memories: Memories, position: Values):
        self._memories = memories
        self._thread, self._block = position
        self._now = Iteration()
        self._together = [self._now]
        self._is_of_thread = self._has_run = False
        self._unrolled: list[SeqOp] = []
        self._written = 0

    def write(self, block: ir.Block) -> None:
        """Write the statements of a block."""
        for op in operations_of(block):
            self._count()
            with op.location:
                self._statement(op)

    def _count(self) -> None:
        """Count a statement of an unrolled loop; raises Unsupported if there are too many."""
        self._written += len(self._together) if self._unrolled else 0
        if self._written > MAX_UNROLLED:
            outermost = self._unrolled[0]
            raise Unsupported(
                f"seq '{outermost.called}' says which registers are meant, so that it is unrolled: expected at most"
                f" {MAX_UNROLLED} statements of such loops",
                source_of(outermost.operation),
            )

    def _statement(self, op: ir.Operation) -> None:
        if (write := _STRUCTURE.get(op.name)) is not None:
            write(self, op.opview)
            return
        for each in self._together:
            self._now = each
            self._of_one(op)

    def _of_one(self, op: ir.Operation) -> None:
        """Write a statement of one iteration."""
        write = _STATEMENTS.get(op.name)
        if write is not None:
            write(self, op.opview)
        elif op.name == "stablehlo.constant":
            self._now.elements[op.results[0]] = emit_constant(op, ())
        else:
            operands = tuple(self._now.elements[operand] for operand in op.operands)
            self._now.elements[op.results[0]] = build_scalar(ScalarOp(op, operands))

    def _changed_in(self, *blocks: ir.Block) -> list[Variable]:
        """Return the existing values that statements change."""
        operations = [op for block in blocks for op in operations_of(block)]
        found: dict[Variable, None] = {}
        for access in accesses_in(*operations):
            if access.writes and access.buffer in self._memories.tensors:
                found[self._memories.tensors[access.buffer]] = None
            elif access.writes:
                for each in self._together:
                    found.update(dict.fromkeys(each.registers.get(access.buffer, ())))
        if any(walk(op, BarrierOp.OPERATION_NAME) for op in operations):
            found.update(dict.fromkeys(self._memories.synchronized))
        return list(found)

    def _par(self, par: ParOp) -> None:
        band = band_at(par.operation)
        body = band[-1].body
        if par.map is None:
            raise CompilerError("expected a map on the first par loop of a band", source_of(par.operation))
        given = {"grid": [self._thread, self._block], "block": [self._block], "thread": [self._thread]}
        around = self._is_of_thread, self._has_run, self._now, self._together
        self._is_of_thread, self._has_run = par.band != "block", bool(par.map.symbols)
        outer, variables = self._now, [member.variable for member in band]
        held = {buffer: row_of(buffer, band) for buffer in held_in(band)}
        for part in parts_of(par.map, len(boxed(band)), written_out=bool(held)):
            self._together = [outer.inner(_rows(held, slot, outer.registers)) for slot in part.slots]
            with loop(part.steps.map, given[par.band or "grid"], self._changed_in(body)) as each:
                for iteration, point in zip(self._together, part.steps.points, strict=True):
                    indices = [each.result_arguments[number] for number in point]
                    iteration.indices.update(zip(variables, indices, strict=True))
                self._now = self._together[0]
                self.write(body)
        self._is_of_thread, self._has_run, self._now, self._together = around

    def _seq(self, seq: SeqOp) -> None:
        if self._is_unrolled(seq):
            self._unrolled.append(seq)
            self._write_out(seq)
            self._unrolled.pop()
            return
        if self._has_run and is_short(seq.operation):
            self._write_out(seq)
            return
        count = _written_out(seq, len(self._together)) if self._is_of_thread else 1
        numbers = tuple(symbol(0) * count + each for each in range(count))
        steps = IndexingMap((), (Interval(0, seq.extent // count - 1),), numbers)
        with loop(steps, [], self._changed_in(seq.body)) as each:
            for iteration in each.result_arguments:
                self._number(seq, iteration)
                self.write(seq.body)

    def _write_out(self, seq: SeqOp) -> None:
        for iteration in range(seq.extent):
            self._number(seq, iteration)
            self.write(seq.body)

    def _number(self, seq: SeqOp, iteration: Index) -> None:
        for each in self._together:
            each.indices[seq.variable] = iteration

    def _is_unrolled(self, seq: SeqOp) -> bool:
        """Whether the loop's variable says which of a thread's own values are meant."""
        for access in accesses_in(seq.operation):
            new = owning_op(access.buffer)
            if new.name != NewOp.OPERATION_NAME or cast(NewOp, new.opview).memory not in ("register", "threads"):
                continue
            used = {n for result in access.map.results for n in result.variables()[0]}
            if any(access.variables[n] == seq.variable for n in used):
                return True
        return False

    def _where(self, where: WhereOp) -> None:
        """Write a condition, for each iteration by itself if it does not hold for all alike."""
        first, *others = together = self._together
        if any(each.indices[variable] != first.indices[variable] for each in others for variable in where.variables):
            for each in together:
                self._now, self._together = each, [each]
                self._where(where)
            self._together = together
            return
        self._now = first
        map_, variables = self._known(where.map, where.variables)
        if map_.is_empty() or not map_.simplify().constraints:
            simple = map_.simplify()
            if simple.is_empty():
                self.write(where.otherwise)
                return
            if simple.dims == map_.dims:
                self.write(where.then)
                return
        condition = InDomainOp.build(map_, variables)
        changed = self._changed_in(where.then, where.otherwise)
        if operations_of(where.otherwise):
            choose(condition, changed, lambda: self.write(where.then), lambda: self.write(where.otherwise))
            return
        with when(condition, changed):
            self.write(where.then)

    def _known(self, map_: IndexingMap, variables: Sequence[ir.Value]) -> tuple[IndexingMap, Values]:
        """Return a map of the variables that are no numbers here, and their values."""
        values = [self._now.indices[variable] for variable in variables]
        kept = [n for n, value in enumerate(values) if not isinstance(value, int)]
        if len(kept) == len(values):
            return map_, cast(Values, values)
        places = {n: dim(kept.index(n)) if n in kept else number(cast(int, value)) for n, value in enumerate(values)}
        substituted = IndexingMap(
            tuple(map_.dims[n] for n in kept),
            (),
            tuple(result.substitute(places) for result in map_.results),
            tuple((expr.substitute(places), interval) for expr, interval in map_.constraints),
        )
        return substituted, [cast(ir.Value, values[n]) for n in kept]

    def _new(self, new: NewOp) -> None:
        """Give a buffer of a thread its values, which are zero until something is written."""
        if new.memory in ("register", "threads"):
            zero = _zero(_scalar(new.buffer))
            count = elements_of(new.buffer) if new.memory == "register" else held_by_thread(new.buffer)
            self._now.registers[new.buffer] = [Variable(zero) for _ in range(count)]

    def _barrier(self, barrier: BarrierOp) -> None:
        wait = sync_warps if barrier.scope == WARP_SCOPE else sync_threads
        wait(self._memories.synchronized)

    def _register(self, access: BufferAccess) -> Variable:
        """Return the value of a thread that an access is to."""
        map_, _ = self._known(access.map, access.variables)
        # Of what a thread holds of a block's buffer, an iteration has a row.
        first = len(band_of(access) or ()) if memory_of(access.buffer) == "threads" else 0
        position = linearize(list(map_.results[first:]), access.shape[first:])
        if not position.is_constant:
            raise CompilerError("expected an index of a register that is known", source_of(access.op))
        return self._now.registers[access.buffer][position.constant]

    def _place(self, access: BufferAccess) -> Values:
        return apply_map(*self._known(access.map, access.variables))

    def _read(self, read: ReadOp) -> None:
        self._now.elements[read.operation.results[0]] = self._element(access_of(read.operation))

    def _element(self, access: BufferAccess) -> ir.Value:
        if access.buffer in self._now.registers:
            return self._register(access).value
        if access.buffer in self._memories.tensors:
            return self._memories.tensors[access.buffer].extract(self._place(access))
        return Tensor(self._memories.inputs[access.buffer]).extract(self._place(access))

    def _write(self, write: WriteOp) -> None:
        self._change(access_of(write.operation), lambda: self._now.elements[write.value])

    def _accumulate(self, accumulate: AccumulateOp) -> None:
        access, value = access_of(accumulate.operation), self._now.elements[accumulate.value]
        combine = _combiner(accumulate)
        if accumulate.atomic and access.buffer in self._memories.tensors:
            tensor = self._memories.tensors[access.buffer]
            with when(self._is_first(), [tensor]):
                tensor.update_atomically(self._place(access), lambda old: combine(old, value))
            return
        self._change(access, lambda: combine(self._element(access), value))

    def _is_first(self) -> ir.Value | None:
        """Return whether this is the first thread, for what a block does once; None for what each thread does."""
        if self._is_of_thread:
            return None
        return compare_integers("eq", self._thread, constant(self._thread.type, 0))

    def _change(self, access: BufferAccess, value: Callable[[], ir.Value]) -> None:
        """Give an element a value: one of a thread's own at once, another one by the first thread, or each."""
        if access.buffer in self._now.registers:
            self._register(access).value = value()
            return
        tensor = self._memories.tensors[access.buffer]
        with when(self._is_first(), [tensor]):
            tensor.insert(value(), self._place(access))

    def _to_index(self, op: ToIndexOp) -> None:
        dtype, index = dtype_of(op.value), ir.IndexType.get()
        cast_ = ir.arith.index_castui if dtype.is_unsigned else ir.arith.index_cast
        self._now.indices[op.operation.results[0]] = cast_(index, self._now.elements[op.value])

    def _from_index(self, op: FromIndexOp) -> None:
        (index,) = apply_map(*self._known(op.map, op.variables))
        i32 = ir.IntegerType.get_signless(32)
        self._now.elements[op.operation.results[0]] = ir.arith.index_cast(i32, index)

    def _asm(self, asm: AsmOp) -> None:
        op = asm.operation
        operands = [self._now.elements[operand] for operand in op.operands]
        types = [scalar_type(dtype_of(result)) for result in op.results]
        found = emit_instructions(asm.text, operands, types, self._thread)
        self._now.elements.update(zip(op.results, found, strict=True))

    def _anchor(self, anchor: AnchorOp) -> None:
        """Emit nothing: the anchored value is computed here already."""


_STRUCTURE: dict[str, Callable[[BodyWriter, ir.OpView], None]] = {
    ParOp.OPERATION_NAME: BodyWriter._par,  # type: ignore[dict-item]
    SeqOp.OPERATION_NAME: BodyWriter._seq,  # type: ignore[dict-item]
    WhereOp.OPERATION_NAME: BodyWriter._where,  # type: ignore[dict-item]
    BarrierOp.OPERATION_NAME: BodyWriter._barrier,  # type: ignore[dict-item]
}
"""The writers of operations that hold others, or are of all threads."""

_STATEMENTS: dict[str, Callable[[BodyWriter, ir.OpView], None]] = {
    NewOp.OPERATION_NAME: BodyWriter._new,  # type: ignore[dict-item]
    ReadOp.OPERATION_NAME: BodyWriter._read,  # type: ignore[dict-item]
    WriteOp.OPERATION_NAME: BodyWriter._write,  # type: ignore[dict-item]
    AccumulateOp.OPERATION_NAME: BodyWriter._accumulate,  # type: ignore[dict-item]
    ToIndexOp.OPERATION_NAME: BodyWriter._to_index,  # type: ignore[dict-item]
    FromIndexOp.OPERATION_NAME: BodyWriter._from_index,  # type: ignore[dict-item]
    AsmOp.OPERATION_NAME: BodyWriter._asm,  # type: ignore[dict-item]
    AnchorOp.OPERATION_NAME: BodyWriter._anchor,  # type: ignore[dict-item]
}
"""The writers of the other operations of an iteration; those that are not here compute elements of elements."""


def _rows(
    held: Mapping[ir.Value, int], slot: int, registers: Mapping[ir.Value, list[Variable]]
) -> dict[ir.Value, list[Variable]]:
    """Return what an iteration has of the buffers that its thread holds, of each as many elements as ``held`` says."""
    return {buffer: registers[buffer][slot * count : (slot + 1) * count] for buffer, count in held.items()}


def _written_out(seq: SeqOp, together: int) -> int:
    """Return how many iterations are written one after the other: those whose elements fill a sector of memory.

    What they read is then on its way at once.
    """
    reads = [access.dtype.storage_bits for access in accesses_in(seq.operation) if access.reads]
    if not reads or len(walk(seq.operation, SEQ)) > 1 or len(walk(seq.operation)) > MOST_REPEATED:
        return 1
    count = math.gcd(seq.extent, max(1, 8 * SECTOR_BYTES // max(reads)))
    while count * together > MOST_ITERATIONS:
        count //= 2
    return max(1, count)


def _combiner(accumulate: AccumulateOp) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """Return what combines an element with a value: the code of the StableHLO operation of the combiner's name."""
    value = accumulate.value
    # Only what it is, and of what type, is asked of it.
    op = ir.Operation.create(
        f"stablehlo.{accumulate.combiner}", results=[value.type], operands=[value, value], ip=False
    )
    return lambda old, new: build_scalar(ScalarOp(op, (old, new)))


def _scalar(buffer: ir.Value) -> ir.Type:
    return scalar_type(_dtype(buffer))


def _dtype(buffer: ir.Value) -> DType:
    return dtype_of_element(ir.MemRefType(buffer.type).element_type)


def _zero(type_: ir.Type) -> ir.Value:
    if isinstance(type_, ir.ComplexType):
        part = ir.FloatAttr.get(type_.element_type, 0.0)
        parts: dict[str, ir.Attribute] = {"value": ir.ArrayAttr.get([part, part])}
        return ir.Operation.create("complex.constant", results=[type_], attributes=parts).results[0]
    return constant(type_, 0)
