"""Short names for arith operations on scalars and vectors, created at the current insertion point."""

from xgpu import ir
from xgpu.hlo.tensor_cores import TF32_MANTISSA_BITS

_Predicate = ir.arith.CmpIPredicate
_FloatPredicate = ir.arith.CmpFPredicate

_TF32_REST = 23 - TF32_MANTISSA_BITS
"""Bits of the mantissa of f32 that tf32 has not."""


def integer_type(bits: int) -> ir.IntegerType:
    """Return the signless integer type of this width."""
    return ir.IntegerType.get_signless(bits)


def like(type_: ir.Type, element: ir.Type) -> ir.Type:
    """Return ``element``, or a vector of it of the shape of ``type_`` if that is a vector."""
    return ir.VectorType.get(type_.shape, element) if isinstance(type_, ir.VectorType) else element


def element_type(type_: ir.Type) -> ir.Type:
    """Return the element type of a vector or tensor, and any other type itself."""
    return type_.element_type if isinstance(type_, ir.ShapedType) else type_


def constant(value: int | float, type_: ir.Type) -> ir.Value:
    """Create a constant of a scalar type, or splat over a vector; an integer is taken modulo the type's range."""
    element = element_type(type_)
    if isinstance(element, ir.IntegerType):
        bits = element.width
        code = int(value) & ((1 << bits) - 1)
        attribute: ir.Attribute = ir.IntegerAttr.get(element, code - (1 << bits) if code >> (bits - 1) else code)
    else:
        attribute = ir.FloatAttr.get(element, float(value))
    if isinstance(type_, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    made = ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute})
    return made.results[0]


def bitcast(value: ir.Value, element: ir.Type) -> ir.Value:
    """Reinterpret a scalar, or each element of a vector."""
    type_ = like(value.type, element)
    return value if value.type == type_ else ir.arith.bitcast(type_, value)


def extend(value: ir.Value, bits: int) -> ir.Value:
    """Widen an integer by zeros."""
    type_ = like(value.type, integer_type(bits))
    return value if value.type == type_ else ir.arith.extui(type_, value)


def truncate(value: ir.Value, bits: int) -> ir.Value:
    """Keep the lower bits of an integer."""
    type_ = like(value.type, integer_type(bits))
    return value if value.type == type_ else ir.arith.trunci(type_, value)


def add(value: ir.Value, other: ir.Value | int) -> ir.Value:
    """Add integers."""
    return ir.arith.addi(value, _operand(other, value))


def sub(value: ir.Value, other: ir.Value | int) -> ir.Value:
    """Subtract integers."""
    return ir.arith.subi(value, _operand(other, value))


def and_(value: ir.Value, other: ir.Value | int) -> ir.Value:
    """Bitwise and."""
    return ir.arith.andi(value, _operand(other, value))


def or_(value: ir.Value, other: ir.Value | int) -> ir.Value:
    """Bitwise or."""
    return ir.arith.ori(value, _operand(other, value))


def xor(value: ir.Value, other: ir.Value | int) -> ir.Value:
    """Bitwise exclusive or."""
    return ir.arith.xori(value, _operand(other, value))


def shift_left(value: ir.Value, bits: int) -> ir.Value:
    """Shift left by a constant."""
    return ir.arith.shli(value, _operand(bits, value)) if bits else value


def shift_right(value: ir.Value, bits: int, signed: bool = False) -> ir.Value:
    """Shift right by a constant, filling with zeros or (``signed``) with the sign."""
    shift = ir.arith.shrsi if signed else ir.arith.shrui
    return shift(value, _operand(bits, value)) if bits else value


def compare(predicate: str, value: ir.Value, other: ir.Value | int) -> ir.Value:
    """Compare integers: eq, ne, slt, sle, sgt, sge, ult, ule, ugt or uge."""
    return ir.arith.cmpi(getattr(_Predicate, predicate), value, _operand(other, value))


def compare_floats(predicate: str, value: ir.Value, other: ir.Value) -> ir.Value:
    """Compare floats: oeq, one, olt, ogt, ..., ueq, une, ..."""
    return ir.arith.cmpf(getattr(_FloatPredicate, predicate.upper()), value, other)


def select(condition: ir.Value, value: ir.Value, other: ir.Value | int) -> ir.Value:
    """Choose between two values."""
    return ir.arith.select(condition, value, _operand(other, value))


def as_tf32(fragment: ir.Value) -> ir.Value:
    """Round the bits of f32 to those of tf32, to the nearest and to even; NaNs stay, and are quiet.

    Bits that tf32 has not are anything: nothing reads them.
    """
    kept = and_(shift_right(fragment, _TF32_REST), 1)
    rounded = add(add(fragment, kept), (1 << (_TF32_REST - 1)) - 1)
    is_nan = compare("ugt", and_(fragment, 0x7FFFFFFF), 0x7F800000)
    return select(is_nan, or_(fragment, 0x00400000), rounded)


def _operand(other: ir.Value | int, like_value: ir.Value) -> ir.Value:
    return constant(other, like_value.type) if isinstance(other, int) else other
