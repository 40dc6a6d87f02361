"""Instructions of PTX that the compiler knows: they become operations of the dialect, which every machine has.

A text that is one of these, written in the one way that the table has, means what the operation means, on the host too.
All others are passed on as they are, and run on a GPU only.
"""

import re
from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.dialects.block.matrices import ELEMENT_BITS, MmaOp, accumulator_of, contracted
from xgpu.dialects.nests.assembly import PtxOp
from xgpu.dialects.threads import ShuffleOp
from xgpu.emit.builders import Values
from xgpu.emit.scalar.op import constant
from xgpu.target_machine import WARP_SIZE

_MMA = re.compile(
    r"mma\.sync\.aligned\.m16n8k(\d+)\.row\.col\.(f32|s32)\.(\w+)\.(\w+)\.(f32|s32)"
    r" \{\$0, \$1, \$2, \$3\}, \{\$4, \$5, \$6, \$7\}, \{\$8, \$9\}, \{\$10, \$11, \$12, \$13\};"
)
_SHUFFLE = re.compile(r"shfl\.sync\.(bfly|idx|up|down)\.b32 \$0, \$1, (\$2|\d+), (0|31), (?:0xffffffff|-1);")
_ELEMENTS = {"s8": "si8", "u8": "ui8", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
"""PTX's names of elements of matrices, where it has others."""
KNOWN = "mma.sync.aligned.m16n8k*.row.col with f32 or s32 sums, shfl.sync.{bfly, idx, up, down}.b32"
"""The instructions of the table, in words."""


def emit_instructions(text: str, operands: Sequence[ir.Value], types: Sequence[ir.Type], thread: ir.Value) -> Values:
    """Write the instructions of a text on scalars, which are bits of registers; ``thread`` is this one's number."""
    given = [_as_register(value) for value in operands]
    registers = [_register_type(type_) for type_ in types]
    one_line = " ".join(text.split())
    known = _mma(one_line, given, registers) or _shuffle(one_line, given, registers, thread)
    found = known if known is not None else PtxOp.build(text, given, registers)
    return [_from_register(value, type_) for value, type_ in zip(found, types, strict=True)]


def _register_type(type_: ir.Type) -> ir.Type:
    is_small = isinstance(type_, ir.FloatType) and type_.width == 16
    return ir.IntegerType.get_signless(16) if is_small else type_


def _as_register(value: ir.Value) -> ir.Value:
    type_ = _register_type(value.type)
    return value if value.type == type_ else ir.arith.bitcast(type_, value)


def _from_register(value: ir.Value, type_: ir.Type) -> ir.Value:
    return value if value.type == type_ else ir.arith.bitcast(type_, value)


def _mma(text: str, operands: Values, types: Sequence[ir.Type]) -> Values | None:
    """Return the product of a warp that a text is, None for others."""
    match = _MMA.fullmatch(text)
    if match is None:
        return None
    k, sums, left, right, before = match.groups()
    a, b = (_ELEMENTS.get(each, each) for each in (left, right))
    accumulator = {"s32": "i32"}.get(sums, sums)
    if a not in ELEMENT_BITS or sums != before or accumulator != accumulator_of(a) or int(k) != contracted(a):
        return None
    parts = (operands[:4], operands[4:6], operands[6:])
    expected = ["i32"] * 6 + [accumulator] * 8
    if [str(value.type) for value in operands] + list(map(str, types)) != expected:
        return None
    a_type, b_type = (ir.Type.parse(each) for each in (a, b))
    vectors = [_vector(part) for part in parts]
    made = MmaOp.create(vectors, [vectors[2].type], {"a_element": a_type, "b_element": b_type})
    if list(made.problems()):
        return None
    return _elements(made.operation.results[0])


def _vector(scalars: Values) -> ir.Value:
    type_ = ir.VectorType.get([len(scalars)], scalars[0].type)
    return ir.Operation.create("vector.from_elements", results=[type_], operands=list(scalars)).results[0]


def _elements(vector: ir.Value) -> Values:
    type_ = ir.VectorType(vector.type)
    return list(ir.Operation.create("vector.to_elements", [type_.element_type] * 4, [vector]).results)


def _shuffle(text: str, operands: Values, types: Sequence[ir.Type], thread: ir.Value) -> Values | None:
    """Return what a shuffle gives, None for other texts."""
    match = _SHUFFLE.fullmatch(text)
    if match is None or str(types[0]) not in ("i32", "f32") or operands[0].type != types[0]:
        return None
    mode, by, clamp = match.groups()
    if (clamp == "0") != (mode == "up") or len(operands) != 1 + (by == "$2"):
        return None
    i32 = ir.IntegerType.get_signless(32)
    if by == "$2" and operands[1].type != i32:
        return None
    lane = ir.arith.remui(ir.arith.index_cast(i32, thread), constant(i32, WARP_SIZE))
    distance = operands[1] if by == "$2" else constant(i32, int(by))
    other = _OTHER[mode](lane, ir.arith.andi(distance, constant(i32, WARP_SIZE - 1)))
    return ShuffleOp.build(ir.arith.index_cast(ir.IndexType.get(), other), [operands[0]])


def _up(lane: ir.Value, by: ir.Value) -> ir.Value:
    is_there = ir.arith.cmpi(ir.arith.CmpIPredicate.uge, lane, by)
    return ir.arith.select(is_there, ir.arith.subi(lane, by), lane)


def _down(lane: ir.Value, by: ir.Value) -> ir.Value:
    other = ir.arith.addi(lane, by)
    is_there = ir.arith.cmpi(ir.arith.CmpIPredicate.ult, other, constant(lane.type, WARP_SIZE))
    return ir.arith.select(is_there, other, lane)


_OTHER: dict[str, Callable[[ir.Value, ir.Value], ir.Value]] = {
    "bfly": lambda lane, by: ir.arith.xori(lane, by),
    "idx": lambda lane, by: by,
    "up": _up,
    "down": _down,
}
"""The lane whose value a lane gets (PTX ISA, ``shfl.sync``), its own where that is none of the warp's."""
