"""The pass expand-atomics."""

from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import int_of
from xgpu.errors import Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.llvm.memory import (
    ATOMIC_OPERATIONS,
    GLOBAL_SPACE,
    SHARED_SPACE,
    SYNC_SCOPE,
    atomic_update,
    element_pointer,
)
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.compare_and_swap import PartOfWord, swap_in_loop
from xgpu.passes.support.refusals import refuse
from xgpu.records import dataclass
from xgpu.structure import is_used, walk
from xgpu.target_machine import DEFAULT_MACHINE, LATEST, TargetMachine, TargetName

_ATOMIC = frozenset(("llvm.atomicrmw", "llvm.cmpxchg", "llvm.load", "llvm.store"))
_SMALL_FLOATS = frozenset(("f16", "bf16"))
_SPACES = (0, GLOBAL_SPACE, SHARED_SPACE)
"""Address spaces that are updated; pointers of space 0 say at run time which of the others it is."""
# Adding the number with these bits, -0, to a float of 16 bits leaves that as it is: +0 stays +0, -0 stays -0.
_TWO_NEGATIVE_ZEROS = 0x80008000


@dataclass(frozen=True)
class ExpandAtomics(Pass):
    """Converts atomic operations to those that the target has.

    - *Vectors of floats*, of which each element is added on its own, become instructions of up to 16 bytes (f16, bf16
      and f32 in global memory, from compute capability 9.0 on), or additions of the elements.
    - *One f16 or bf16* becomes the addition to the pair in its 32-bit word of it and of -0, which changes nothing:
      GPUs add pairs (bf16 from 9.0 on), and what PTX calls the addition of one is a loop. Elsewhere the word is
      compared and exchanged in a loop that computes the sum.
    - *128 bits* are compared and exchanged from 9.0 on; before, they are refused.
    - *The host* has no scopes: an operation is for all threads.

    Needs: lower-tensors. Run it before expand-floats, which expands the sums in loops.

    ```mlir
    llvm.atomicrmw fadd %p, %x syncscope("device") monotonic : !llvm.ptr<1>, vector<4xf32>
    // becomes
    llvm.inline_asm has_side_effects "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f,~{memory}"
        %p, %x0, %x1, %x2, %x3 : (!llvm.ptr<1>, f32, f32, f32, f32) -> ()
    ```
    """

    NAME: ClassVar[str] = "expand-atomics"
    target: TargetName = DEFAULT_MACHINE
    """The machine to compile for."""
    capability: int = LATEST
    """Compute capability of the GPU times ten."""

    def apply(self, module: ir.Module) -> None:
        machine = self.target.machine(self.capability)
        for op in walk(module.operation):
            if op.name not in _ATOMIC or SYNC_SCOPE not in op.attributes:
                continue
            _check_width(machine, op)
            if op.name == "llvm.atomicrmw" and _needs_expansion(op):
                if is_used(op.results[0]):
                    refuse(self.NAME, op, "expected no use of its result")
                if (space := op.operands[0].type.address_space) not in _SPACES:
                    refuse(self.NAME, op, f"expected a pointer of address space 0, 1 or 3, got one of {space}")
                with ir.InsertionPoint(op), op.location:
                    pointer, value = op.operands
                    _add(machine, pointer, value)
                op.erase()
        if not machine.has_scopes:
            for op in walk(module.operation):
                if op.name in _ATOMIC and SYNC_SCOPE in op.attributes:
                    del op.attributes[SYNC_SCOPE]


def _add(machine: TargetMachine, pointer: ir.Value, value: ir.Value) -> None:
    """Add a float of 16 bits, or a vector of floats, to memory."""
    type_ = value.type
    if not isinstance(type_, ir.VectorType):
        _add_small(machine, pointer, value)
        return
    element, count = type_.element_type, type_.shape[0]
    step = _vector_length(machine, pointer, element)
    for start in range(0, count, step):
        part = value
        if step < count:
            part = _slice(value, start, min(step, count - start))
        place = element_pointer(pointer, element, start) if start else pointer
        if step == 1:
            atomic_update("fadd", place, _elements(part)[0])
        elif str(element) == "f32" or str(element) in machine.atomic_pairs:
            machine.add_to_memory(place, str(element), _registers(part))
        else:
            _add_pair_in_loop(place, part)


def _vector_length(machine: TargetMachine, pointer: ir.Value, element: ir.Type) -> int:
    """Return how many elements one instruction, or a loop on one word, adds."""
    is_added = str(element) == "f32" or str(element) in machine.atomic_pairs
    if machine.atomic_vector_bytes and is_added and pointer.type.address_space == GLOBAL_SPACE:
        return machine.atomic_vector_bytes * 8 // ir.FloatType(element).width
    return 2 if str(element) in _SMALL_FLOATS else 1


def _add_small(machine: TargetMachine, pointer: ir.Value, value: ir.Value) -> None:
    """Add a float of 16 bits."""
    part = PartOfWord(pointer, 16)
    if str(value.type) in machine.atomic_pairs:
        zeros = b.and_(b.constant(_TWO_NEGATIVE_ZEROS, part.word), b.xor(part.mask(), -1))
        machine.add_to_memory(part.pointer, str(value.type), [b.or_(part.place(_code(value)), zeros)])
        return

    def add(word: ir.Value) -> ir.Value:
        return part.put(word, _code(ir.arith.addf(b.bitcast(part.take(word), value.type), value)))

    swap_in_loop(part.pointer, part.word, add)


def _needs_expansion(op: ir.Operation) -> bool:
    type_ = op.operands[1].type
    is_sum = int_of(op.attributes["bin_op"]) == ATOMIC_OPERATIONS["fadd"]
    return is_sum and (isinstance(type_, ir.VectorType) or str(type_) in _SMALL_FLOATS)


def _check_width(machine: TargetMachine, op: ir.Operation) -> None:
    value = op.results[0] if op.name == "llvm.load" else op.operands[0 if op.name == "llvm.store" else 1]
    if isinstance(value.type, ir.IntegerType) and value.type.width > machine.atomic_bits:
        raise Unsupported(
            "updates of complex128 elements by several threads need a GPU of compute capability 9.0 or later",
            source_of(op),
        )


def _registers(vector: ir.Value) -> list[ir.Value]:
    """Return what a vector of f32, or of pairs of smaller floats, has in registers of 32 bits."""
    if str(vector.type.element_type) == "f32":
        return _elements(vector)
    pairs = ir.VectorType.get([vector.type.shape[0] // 2], b.integer_type(32))
    return _elements(ir.Operation.create("vector.bitcast", results=[pairs], operands=[vector]).results[0])


def _add_pair_in_loop(pointer: ir.Value, pair: ir.Value) -> None:
    word = b.integer_type(32)

    def add(old: ir.Value) -> ir.Value:
        vector = ir.VectorType.get([1], word)
        old = ir.Operation.create("vector.from_elements", results=[vector], operands=[old]).results[0]
        old = ir.Operation.create("vector.bitcast", results=[pair.type], operands=[old]).results[0]
        new = ir.arith.addf(old, pair)
        return _elements(ir.Operation.create("vector.bitcast", results=[vector], operands=[new]).results[0])[0]

    swap_in_loop(pointer, word, add)


def _code(value: ir.Value) -> ir.Value:
    return b.bitcast(value, b.integer_type(16))


def _elements(vector: ir.Value) -> list[ir.Value]:
    type_ = ir.VectorType(vector.type)
    types = [type_.element_type] * type_.shape[0]
    return list(ir.Operation.create("vector.to_elements", results=types, operands=[vector]).results)


def _slice(vector: ir.Value, start: int, size: int) -> ir.Value:
    numbers = {"offsets": start, "sizes": size, "strides": 1}
    i64 = b.integer_type(64)
    return ir.Operation.create(
        "vector.extract_strided_slice",
        results=[ir.VectorType.get([size], ir.VectorType(vector.type).element_type)],
        operands=[vector],
        attributes={name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, n)]) for name, n in numbers.items()},
    ).results[0]
