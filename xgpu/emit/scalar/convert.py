"""Scalar builders of the conversions between element types."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dtypes import DType
from xgpu.emit.scalar.op import ScalarOp, compare_floats, compare_integers, constant
from xgpu.hlo.source_location import unsupported

_arith = ir.arith


def convert(op: ScalarOp) -> ir.Value:
    """Convert by value: integers wrap, floats round to nearest even, floats to integers saturate and NaN gives 0."""
    return convert_value(op.operands[0], op.operand_dtype, op.dtype)


def convert_value(value: ir.Value, source: DType, target: DType) -> ir.Value:
    """Convert a scalar between two real types; `arith.fptosi` and `fptoui` stand for HLO's saturating conversion."""
    if source == target:
        return value
    type_ = ir.Type.parse(target.signless)
    if target.kind == "bool":
        zero = constant(value.type, 0)
        return compare_floats("une", value, zero) if source.is_float else compare_integers("ne", value, zero)
    if source.is_float and target.is_float:
        return _convert_float(value, source, target, type_)
    if source.is_float:
        return _arith.fptosi(type_, value) if target.is_signed else _arith.fptoui(type_, value)
    if target.is_float:
        return _arith.uitofp(type_, value) if source.is_unsigned else _arith.sitofp(type_, value)
    return _resize_integer(value, source, target, type_)


def _convert_float(value: ir.Value, source: DType, target: DType, type_: ir.Type) -> ir.Value:
    if source.bits < target.bits:
        return _arith.extf(type_, value)
    if source.bits > target.bits:
        return _arith.truncf(type_, value)
    # Two formats of one width: every 8- and 16-bit format is exact in f32.
    return _arith.truncf(type_, _arith.extf(ir.F32Type.get(), value))


def _resize_integer(value: ir.Value, source: DType, target: DType, type_: ir.Type) -> ir.Value:
    if source.bits == target.bits:
        return value
    if source.bits > target.bits:
        return _arith.trunci(type_, value)
    return _arith.extui(type_, value) if source.is_unsigned else _arith.extsi(type_, value)


def bitcast_convert(op: ScalarOp) -> ir.Value:
    """Reinterpret bits as another type: of a value, of its part at the last index, or of all parts of a wider one.

    The parts of a value are numbered from its lowest bits up.
    """
    source, target = op.operand_dtype, op.dtype
    if source == target:
        return op.operands[0]
    if "complex" in (source.kind, target.kind):
        raise unsupported(op.op, "a bitcast of complex numbers is not supported")
    values = [_as_integer(value, source) for value in op.operands]
    if source.bits > target.bits:
        return _from_integer(_part(values[0], op.indices[-1], target.bits), op.type)
    if source.bits < target.bits:
        return _from_integer(_joined(values, source.bits, target.bits), op.type)
    return _from_integer(values[0], op.type)


def _as_integer(value: ir.Value, dtype: DType) -> ir.Value:
    integer = ir.IntegerType.get_signless(dtype.bits)
    return value if value.type == integer else _arith.bitcast(integer, value)


def _from_integer(value: ir.Value, type_: ir.Type) -> ir.Value:
    return value if value.type == type_ else _arith.bitcast(type_, value)


def _part(value: ir.Value, number: ir.Value, width: int) -> ir.Value:
    """Return the ``width`` bits of an integer that a part has."""
    amount = _arith.muli(_arith.index_castui(value.type, number), constant(value.type, width))
    return _arith.trunci(ir.IntegerType.get_signless(width), _arith.shrui(value, amount))


def _joined(parts: Sequence[ir.Value], width: int, joined_width: int) -> ir.Value:
    """Return the integer that parts of ``width`` bits make."""
    type_ = ir.IntegerType.get_signless(joined_width)
    total = _arith.extui(type_, parts[0])
    for number, part in enumerate(parts[1:], 1):
        shifted = _arith.shli(_arith.extui(type_, part), constant(type_, number * width))
        total = _arith.ori(total, shifted)
    return total


def reduce_precision(op: ScalarOp) -> ir.Value:
    """Round to a format of fewer exponent and mantissa bits, to nearest even, within the wider type.

    Overflow gives infinity and values below the format's normal range give a zero of the same sign.
    """
    (value,) = op.operands
    exponent_bits = ir.IntegerAttr(op.op.attributes["exponent_bits"]).value
    mantissa_bits = ir.IntegerAttr(op.op.attributes["mantissa_bits"]).value
    width = op.dtype.bits
    source_mantissa = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}.get(op.dtype.hlo)
    if source_mantissa is None:
        raise unsupported(op.op, f"reduce_precision of {op.dtype} is not supported")
    integer = ir.IntegerType.get_signless(width)
    bits = _arith.bitcast(integer, value)
    if mantissa_bits < source_mantissa:
        bits = _round_mantissa(bits, integer, source_mantissa - mantissa_bits)
    source_exponent = width - 1 - source_mantissa
    if exponent_bits < source_exponent:
        bits = _clip_exponent(bits, integer, source_mantissa, source_exponent, exponent_bits)
    is_nan = compare_floats("uno", value, value)
    # A format with no mantissa has no NaN: XLA then gives infinity.
    kept_nan = value if mantissa_bits > 0 else constant(value.type, float("inf"))
    return _arith.select(is_nan, kept_nan, _arith.bitcast(value.type, bits))


def _round_mantissa(bits: ir.Value, integer: ir.Type, dropped: int) -> ir.Value:
    """Round to nearest even by adding half a unit, less one if the kept part is even, then clearing what is dropped."""
    last_kept = _arith.andi(_arith.shrui(bits, constant(integer, dropped)), constant(integer, 1))
    bias = _arith.addi(last_kept, constant(integer, (1 << (dropped - 1)) - 1))
    return _arith.andi(_arith.addi(bits, bias), constant(integer, -(1 << dropped)))


def _clip_exponent(bits: ir.Value, integer: ir.Type, mantissa: int, exponent: int, kept: int) -> ir.Value:
    """Replace magnitudes beyond a narrower exponent's range by infinity, and those below it by zero."""
    exponent_mask = ((1 << exponent) - 1) << mantissa
    bias, kept_bias = (1 << (exponent - 1)) - 1, (1 << (kept - 1)) - 1
    largest, smallest = (bias + kept_bias) << mantissa, (bias - kept_bias + 1) << mantissa
    field = _arith.andi(bits, constant(integer, exponent_mask))
    sign = _arith.andi(bits, constant(integer, -(1 << (exponent + mantissa))))
    overflows = compare_integers("ugt", field, constant(integer, largest))
    underflows = compare_integers("ult", field, constant(integer, smallest))
    infinity = _arith.ori(sign, constant(integer, exponent_mask))
    return _arith.select(underflows, sign, _arith.select(overflows, infinity, bits))
