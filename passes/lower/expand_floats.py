"""The pass expand-floats."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import GRADE
from xgpu.dialects.xgpu import FUNCTIONS
from xgpu.passes.floats.formats import (
    FloatFormat,
    add_to_odd,
    codes,
    format_of,
    integer_to_f64_odd,
    narrow,
    narrow_to_odd,
    widen,
)
from xgpu.passes.floats.native import decode, encode
from xgpu.passes.floats.remainder import RemainderFunctions
from xgpu.passes.floats.rounding import round_in_f32
from xgpu.passes.floats.storage import is_narrow_float, store_as_integers
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.llvm.call import call_intrinsic
from xgpu.passes.lower.expand_math import EXPANSIONS, INSTRUCTIONS
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.refusals import refuse, refuse_type
from xgpu.records import dataclass
from xgpu.structure import walk
from xgpu.target_machine import DEFAULT_MACHINE, LATEST, ByteConversion, TargetMachine, TargetName

_NATIVE_FLOATS = frozenset(("f32", "f64"))
# What moves a value without computing with it.
_MOVES = frozenset(("arith.constant", "arith.select", "arith.bitcast"))
# What needs expanding on f32 and f64 too.
_ALWAYS = frozenset(("arith.fptosi", "arith.fptoui", "arith.remf"))


@dataclass(frozen=True)
class ExpandFloats(Pass):
    """Converts operations on floats to those that the target has, rounded to the type of the original.

    Comes before expand-math, which then meets only f32 and f64. Arithmetic on narrower floats is done in
    f32 and rounded once, conversions round once, and those to integers saturate and give 0 for NaN. Remainders become
    calls of a function, and floats of 8 and 4 bits become integers. What is rounded to bf16 and widened at once stays
    in f32, if the target has an instruction that gives a bf16 where the upper half of an f32 is.

    ```mlir
    %s = arith.divf %x, %y : bf16
    // becomes, for nvvm
    %a = arith.extf %x : bf16 to f32
    %b = arith.extf %y : bf16 to f32
    %q = arith.divf %a, %b : f32
    %s = arith.truncf %q : f32 to bf16
    ```
    """

    NAME: ClassVar[str] = "expand-floats"
    target: TargetName = DEFAULT_MACHINE
    """The machine to compile for. For the host, conversions of small floats are integer arithmetic."""
    capability: int = LATEST
    """Compute capability of the GPU times ten: from 89 on it converts 8-bit floats, from 90 on it adds bf16."""

    def apply(self, module: ir.Module) -> None:
        machine = self.target.machine(self.capability)
        expander = _Expander(machine, RemainderFunctions(module, machine))
        # Caches of this run: types are asked for every value of the module.
        is_narrow, is_small = cache(is_narrow_float), cache(_is_small_float)
        entries = [function.operation.regions[0].blocks[0] for function in functions(module)]
        has_narrow = any(is_narrow(argument.type) for entry in entries for argument in entry.arguments)
        for op in walk(module.operation):
            results = [value.type for value in op.results]
            has_narrow = has_narrow or any(map(is_narrow, results))
            name = op.name
            if name in _MOVES or not (name.startswith(("arith.", "math.")) or name in FUNCTIONS):
                continue
            if name in _ALWAYS or any(map(is_small, (*results, *(value.type for value in op.operands)))):
                expander.expand(op)
        if machine.rounding_of_pairs:
            round_in_f32(module, machine.rounding_of_pairs)
        if has_narrow:
            store_as_integers(module)


def _is_small_float(type_: ir.Type) -> bool:
    element = b.element_type(type_)
    return isinstance(element, ir.FloatType) and str(element) not in _NATIVE_FLOATS


class _Expander:
    def __init__(self, machine: TargetMachine, remainders: RemainderFunctions):
        self._machine = machine
        self._remainders = remainders
        self._f32 = ir.F32Type.get()
        self._f64 = ir.F64Type.get()
        self._formats: dict[ir.Type, FloatFormat | None] = {}
        self._expansions: dict[str, Callable[[ir.Operation], Sequence[ir.Value] | None]] = {
            **dict.fromkeys(("arith.extf", "arith.truncf", "arith.convertf"), self._convert),
            **dict.fromkeys(("arith.sitofp", "arith.uitofp"), self._from_integer),
            **dict.fromkeys(("arith.fptosi", "arith.fptoui"), self._to_integer),
            **dict.fromkeys(("arith.negf", "math.absf", "math.copysign"), self._on_sign),
            "arith.remf": self._remainder,
            "math.fma": self._fused,
        }

    def expand(self, op: ir.Operation) -> None:
        """Replace ``op`` if the target has no such operation on its types."""
        expansion = self._expansions.get(op.name, self._compute)
        with ir.InsertionPoint(op), op.location:
            values = expansion(op)
        if values is None:
            return
        for old, new in zip(op.results, values, strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def _format(self, value: ir.Value, op: ir.Operation) -> FloatFormat | None:
        """Return the format of a value of a small float type, None for any other value."""
        type_ = value.type
        if type_ not in self._formats:
            self._formats[type_] = format_of(type_, op) if _is_small_float(type_) else None
        return self._formats[type_]

    def _has_cast(self, type_: ir.Type) -> bool:
        """Whether the target converts between f32 and this small type itself."""
        return str(b.element_type(type_)) in self._machine.casts

    def _conversion(self, type_: ir.Type) -> ByteConversion | None:
        """Return the intrinsics by which the target converts scalars of this type, if it does."""
        return self._machine.byte_conversions.get(str(type_))

    def _to_f32(self, value: ir.Value, layout: FloatFormat) -> ir.Value:
        if conversion := self._conversion(value.type):
            value = decode(value, conversion)
        if self._has_cast(value.type):
            return ir.arith.extf(b.like(value.type, self._f32), value)
        return widen(value, layout)

    def _from_f32(self, value: ir.Value, type_: ir.Type, layout: FloatFormat) -> ir.Value:
        if conversion := self._conversion(type_):
            return encode(value, type_, conversion)
        return ir.arith.truncf(type_, value) if self._has_cast(type_) else narrow(value, layout, type_)

    def _from_f64(self, value: ir.Value, type_: ir.Type, layout: FloatFormat) -> ir.Value:
        if str(b.element_type(type_)) in self._machine.casts_of_f64:
            return ir.arith.truncf(type_, value)
        return self._from_f32(narrow_to_odd(value), type_, layout)

    def _compute(self, op: ir.Operation) -> Sequence[ir.Value] | None:
        """Compute in f32, which has more than twice the bits: for + - * / and sqrt, rounding again changes nothing."""
        layouts = [self._format(value, op) for value in op.operands]
        results = [self._format(value, op) for value in op.results]
        if not any((*layouts, *results)) or self._is_native(op):
            return None
        operands = [
            self._to_f32(value, layout) if layout else value for value, layout in zip(op.operands, layouts, strict=True)
        ]
        types = [
            b.like(value.type, self._f32) if layout else value.type
            for value, layout in zip(op.results, results, strict=True)
        ]
        if op.name == "arith.remf":
            values = [self._remainders.call(*operands)]
        else:
            attributes = dict(op.attributes.items())
            if (op.name in EXPANSIONS or op.name in INSTRUCTIONS) and str(op.results[0].type) == "bf16":
                attributes[GRADE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 16)
            made = ir.Operation.create(op.name, results=types, operands=operands, attributes=attributes)
            values = list(made.results)
        return [
            self._from_f32(new, old.type, layout) if layout else new
            for old, new, layout in zip(op.results, values, results, strict=True)
        ]

    def _is_native(self, op: ir.Operation) -> bool:
        return op.name in self._machine.arithmetic.get(str(b.element_type(op.operands[0].type)), ())

    def _remainder(self, op: ir.Operation) -> Sequence[ir.Value] | None:
        x, y = op.operands
        if not isinstance(x.type, ir.FloatType):
            refuse_type(op, "remainders", x.type)
        return self._compute(op) or [self._remainders.call(x, y)]

    def _convert(self, op: ir.Operation) -> Sequence[ir.Value] | None:
        mode = op.attributes.get("roundingmode")
        if mode is not None and ir.IntegerAttr(mode).value != 0:
            refuse(ExpandFloats.NAME, op, f"expected to round to nearest, got rounding mode {mode}")
        source, type_ = op.operands[0], op.results[0].type
        layout, result = self._format(source, op), self._format(op.results[0], op)
        source_element, element = (b.element_type(each) for each in (source.type, type_))
        if layout is None and result is None:
            return None
        if layout is None and result is not None:
            if source_element == self._f64:
                return [self._from_f64(source, type_, result)]
            return [self._from_f32(source, type_, result)]
        assert layout is not None
        if isinstance(element, ir.F16Type) and (conversion := self._conversion(source.type)):
            return [decode(source, conversion)]
        if isinstance(source_element, ir.F16Type) and (conversion := self._conversion(type_)):
            return [encode(source, type_, conversion)]
        wide = self._to_f32(source, layout)
        if result is not None:
            return [self._from_f32(wide, type_, result)]
        return [wide if element == self._f32 else ir.arith.extf(type_, wide)]

    def _from_integer(self, op: ir.Operation) -> Sequence[ir.Value] | None:
        """Convert by way of a type that holds the integer exactly, or else rounded to odd."""
        source, type_ = op.operands[0], op.results[0].type
        layout = self._format(op.results[0], op)
        if layout is None:
            return None
        signed = op.name == "arith.sitofp"
        convert = ir.arith.sitofp if signed else ir.arith.uitofp
        bits = ir.IntegerType(b.element_type(source.type)).width
        if bits <= 24:
            return [self._from_f32(convert(b.like(type_, self._f32), source), type_, layout)]
        wide = convert(b.like(type_, self._f64), source) if bits <= 53 else integer_to_f64_odd(source, signed)
        return [self._from_f64(wide, type_, layout)]

    def _to_integer(self, op: ir.Operation) -> Sequence[ir.Value]:
        """Convert as HLO does: towards zero, the nearest integer for what is out of range, 0 for NaN."""
        source, type_ = op.operands[0], op.results[0].type
        layout = self._format(source, op)
        if layout is not None:
            source = self._to_f32(source, layout)
        name = f"llvm.{op.name.removeprefix('arith.')}.sat.{_suffix(type_)}.{_suffix(source.type)}"
        return [call_intrinsic(name, type_, [source])]

    def _on_sign(self, op: ir.Operation) -> Sequence[ir.Value] | None:
        """Change the sign bit alone; only formats whose zero and NaN have no sign need arithmetic."""
        value, type_ = op.operands[0], op.results[0].type
        layout = self._format(value, op)
        if layout is None or self._is_native(op):
            return None
        if layout.specials in ("fnuz", "powers"):
            return self._compute(op)
        bits = codes(value, layout)
        if op.name == "arith.negf":
            bits = b.xor(bits, layout.sign)
        else:
            bits = b.and_(bits, layout.largest)
            if op.name == "math.copysign":
                bits = b.or_(bits, b.and_(codes(op.operands[1], layout), layout.sign))
        return [b.bitcast(bits, b.element_type(type_))]

    def _fused(self, op: ir.Operation) -> Sequence[ir.Value] | None:
        """Multiply exactly in f64, add and round to odd there, then round once more to the type itself."""
        type_ = op.results[0].type
        layout = self._format(op.results[0], op)
        if layout is None or self._has_cast(type_):
            return None
        f64 = b.like(type_, self._f64)
        x, y, z = (ir.arith.extf(f64, self._to_f32(value, layout)) for value in op.operands)
        product = ir.arith.mulf(x, y)
        return [self._from_f64(add_to_odd(product, z), type_, layout)]


def _suffix(type_: ir.Type) -> str:
    """Return how the name of an LLVM intrinsic spells a type."""
    return f"v{type_.shape[0]}{type_.element_type}" if isinstance(type_, ir.VectorType) else str(type_)
