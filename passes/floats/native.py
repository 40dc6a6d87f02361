"""Conversions between 8-bit floats and f16 and f32 by the machine's own instructions."""

from xgpu import ir
from xgpu.passes.llvm.call import call_intrinsic
from xgpu.passes.support import arith_builder as b
from xgpu.target_machine import ByteConversion

# The numbers that round beyond the largest finite number, from this one on. In f8E4M3FN, 464 itself, halfway between
# the largest number and one that does not exist, rounds to the largest, whose code is even.
_OVERFLOW = {"f8E4M3FN": ("ogt", 464.0), "f8E5M2": ("oge", 61440.0)}


def decode(value: ir.Value, conversion: ByteConversion) -> ir.Value:
    """Return a value of an 8-bit float type as f16, exactly."""
    code = b.extend(b.bitcast(value, b.integer_type(8)), 16)
    f16 = ir.F16Type.get()
    pair = call_intrinsic(conversion.decode, ir.VectorType.get([2], f16), [code])
    return _first(pair, f16)


def encode(value: ir.Value, type_: ir.Type, conversion: ByteConversion) -> ir.Value:
    """Return an f16 or f32 as an 8-bit float type, rounded to nearest, ties to even.

    The instruction gives the largest number for what is beyond it. The next code is infinity in f8E5M2 and NaN in
    f8E4M3FN, which is what overflow is there.
    """
    zero = b.constant(0.0, value.type)
    i16 = b.integer_type(16)
    if isinstance(value.type, ir.F16Type):
        pair_type = ir.VectorType.get([2], value.type)
        pair = ir.Operation.create("vector.from_elements", results=[pair_type], operands=[value, zero]).results[0]
        codes = call_intrinsic(conversion.encode_f16, i16, [pair])
    else:
        codes = call_intrinsic(conversion.encode_f32, i16, [zero, value])
    predicate, limit = _OVERFLOW[str(type_)]
    overflows = b.compare_floats(predicate, ir.math.absf(value), b.constant(limit, value.type))
    code = b.add(b.truncate(codes, 8), b.extend(overflows, 8))
    return b.bitcast(code, type_)


def _first(vector: ir.Value, element: ir.Type) -> ir.Value:
    position: dict[str, ir.Attribute] = {"static_position": ir.DenseI64ArrayAttr.get([0])}
    return ir.Operation.create("vector.extract", results=[element], operands=[vector], attributes=position).results[0]
