"""Instructions of PTX as inline assembly, for operations that LLVM has no instruction for."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.attributes import CONVERGENT
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering
from xgpu.passes.support.refusals import refuse
from xgpu.target_machine import GPU_INSTRUCTIONS

_REGISTERS = {"i1": "b", "i16": "h", "i32": "r", "i64": "l", "f32": "f", "f64": "d"}
_SHARED_SPACE = 3


def ptx(
    b: LlvmBuilder,
    text: str,
    operands: Sequence[ir.Value] = (),
    results: Sequence[ir.Type] = (),
    *,
    together: bool = False,
    pure: bool = False,
    changed: Sequence[ir.Value] = (),
) -> list[ir.Value]:
    """Create PTX ``text`` and return its results.

    ``$0`` and so on are the results, then the ``changed``, then the operands. ``changed`` are registers that the
    text writes where they are; their new values follow the results. A pointer to shared memory is an operand of 32
    bits. ``together``: threads of a warp execute it together. Unless ``pure``, it stays where it is among all accesses
    to memory.
    """
    types = [*results, *(value.type for value in changed)]
    given = [_register(b, value) for value in operands]
    constraints = [f"={_REGISTERS[str(type_)]}" for type_ in types]
    constraints += [_letter(value.type) for value in given]
    # An operand that is tied to a result has the result's number for a constraint.
    constraints += [str(len(results) + number) for number in range(len(changed))]
    if not pure:
        constraints.append("~{memory}")
    attributes = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(",".join(constraints)),
        **({} if pure else {"has_side_effects": ir.UnitAttr.get()}),
        **({CONVERGENT: ir.UnitAttr.get()} if together else {}),
    }
    made = ir.Operation.create(
        "llvm.inline_asm",
        results=[types[0] if len(types) == 1 else ir.llvm.StructType.get_literal(types)] if types else [],
        operands=[*given, *changed],
        attributes=attributes,
    )
    if len(types) < 2:
        return list(made.results)
    return [
        b.op("extractvalue", [made.results[0]], type_, {"position": ir.DenseI64ArrayAttr.get([number])})
        for number, type_ in enumerate(types)
    ]


def names(first: int, count: int) -> str:
    """Return ``$2, $3, $4``: ``count`` registers of a text, from a number on."""
    return ", ".join(f"${number}" for number in range(first, first + count))


def elements(b: LlvmBuilder, vector: ir.Value) -> list[ir.Value]:
    """Return the elements of a vector."""
    type_ = ir.VectorType(vector.type)
    return [
        b.op("extractelement", [vector, b.constant(number, b.i32)], type_.element_type)
        for number in range(type_.shape[0])
    ]


def vector_of(b: LlvmBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """Return the vector of the elements."""
    type_ = ir.VectorType.get([len(values)], values[0].type)
    vector = b.op("mlir.poison", [], type_)
    for number, value in enumerate(values):
        vector = b.op("insertelement", [vector, value, b.constant(number, b.i32)], type_)
    return vector


def require(b: LlvmBuilder, op: ir.Operation, instruction: str) -> None:
    """Refuse ``op`` if the machine lacks an instruction, a key of `GPU_INSTRUCTIONS`."""
    if instruction not in b.machine.instructions:
        refuse("lower-to-llvm", op, f"expected {GPU_INSTRUCTIONS[instruction]}, got {b.machine.processor}")


def requiring(instruction: str, lowering: Lowering) -> Lowering:
    """Return ``lowering`` for machines that have an instruction; for others it refuses the operation."""

    def checked(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
        require(b, op, instruction)
        return lowering(b, op)

    return checked


def fixed(text: str, together: bool = False) -> Lowering:
    """Return the lowering to a text that has the operation's operands in their order, and no result."""

    def lower(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
        return ptx(b, text, list(op.operands), together=together)

    return lower


def _letter(type_: ir.Type) -> str:
    return "l" if isinstance(type_, ir.llvm.PointerType) else _REGISTERS[str(type_)]


def _register(b: LlvmBuilder, value: ir.Value) -> ir.Value:
    type_ = value.type
    if isinstance(type_, ir.llvm.PointerType) and type_.address_space == _SHARED_SPACE:
        return b.op("ptrtoint", [value], b.i32)
    return value
