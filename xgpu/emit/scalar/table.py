"""The scalar code of operations: the builder of each elementwise one of `xgpu.hlo.operations`.

An operation here is elementwise: its result at some indices depends on its operands' values there alone. Operations
that move data (slice, pad, gather, ...) need no builder: their indexing maps say it all.
"""

from collections.abc import Callable

from xgpu import ir
from xgpu.dialects.attributes import WEIGHT
from xgpu.dialects.scalar_functions import BesselI0eOp, BesselI1eOp, DigammaOp, ErfInvOp, LgammaOp, LogisticOp
from xgpu.emit.scalar import arithmetic, convert
from xgpu.emit.scalar.complex_numbers import COMPLEX, is_complex_operation
from xgpu.emit.scalar.op import Builder, ScalarOp
from xgpu.hlo.operations import elementwise, implemented, without_code
from xgpu.hlo.source_location import unsupported
from xgpu.structure import producer

_ACCURACY = "result_accuracy"
_TOLERANCE_OF_WEIGHTS = 1e-5
"""The relative error of an exponential from which on it may be computed as weights are."""


def _math(operation: Callable[..., ir.Value]) -> Builder:
    """Return the builder of a function of floats that `expand-math` writes out."""

    def build(op: ScalarOp) -> ir.Value:
        if not op.dtype.is_float:
            raise unsupported(op.op, f"{op.dtype} is not supported by this operation")
        value = operation(*op.operands)
        if WEIGHT in op.op.attributes or _tolerates_weights(op.op):
            producer(value).attributes[WEIGHT] = ir.UnitAttr.get()
        return value

    return build


def _tolerates_weights(op: ir.Operation) -> bool:
    """Whether a program takes an exponential that is as exact as weights are (`lax.exp` with a tolerance).

    Such a power of two has an exponent that is rounded: of 128 at most, so it is off by 2^-17, and e^x by 6e-6 of it.
    """
    if op.name != "stablehlo.exponential" or _ACCURACY not in op.attributes:
        return False
    accuracy = ir.stablehlo.ResultAccuracyAttr(op.attributes[_ACCURACY])
    return str(accuracy.mode) == "TOLERANCE" and accuracy.rtol >= _TOLERANCE_OF_WEIGHTS


_REAL: dict[str, Builder] = {
    "chlo.acos": _math(ir.math.acos),
    "chlo.acosh": _math(ir.math.acosh),
    "chlo.asin": _math(ir.math.asin),
    "chlo.asinh": _math(ir.math.asinh),
    "chlo.atan": _math(ir.math.atan),
    "chlo.atanh": _math(ir.math.atanh),
    "chlo.bessel_i1e": _math(BesselI1eOp.build),
    "chlo.cosh": _math(ir.math.cosh),
    "chlo.digamma": _math(DigammaOp.build),
    "chlo.erf": _math(ir.math.erf),
    "chlo.erf_inv": _math(ErfInvOp.build),
    "chlo.erfc": _math(ir.math.erfc),
    "chlo.lgamma": _math(LgammaOp.build),
    "chlo.sinh": _math(ir.math.sinh),
    "stablehlo.abs": arithmetic.absolute,
    "stablehlo.add": arithmetic.add,
    "stablehlo.and": arithmetic.bitwise(ir.arith.andi),
    "stablehlo.atan2": _math(ir.math.atan2),
    "stablehlo.bitcast_convert": convert.bitcast_convert,
    "stablehlo.cbrt": _math(ir.math.cbrt),
    "stablehlo.ceil": _math(ir.math.ceil),
    "stablehlo.clamp": arithmetic.clamp,
    "stablehlo.compare": arithmetic.compare,
    "stablehlo.convert": convert.convert,
    "stablehlo.cosine": _math(ir.math.cos),
    "stablehlo.count_leading_zeros": arithmetic.count_leading_zeros,
    "stablehlo.divide": arithmetic.divide,
    "stablehlo.exponential": _math(ir.math.exp),
    "stablehlo.exponential_minus_one": _math(ir.math.expm1),
    "stablehlo.floor": _math(ir.math.floor),
    "stablehlo.is_finite": arithmetic.is_finite,
    "stablehlo.log": _math(ir.math.log),
    "stablehlo.log_plus_one": _math(ir.math.log1p),
    "stablehlo.logistic": _math(LogisticOp.build),
    "stablehlo.maximum": arithmetic.maximum,
    "stablehlo.minimum": arithmetic.minimum,
    "stablehlo.multiply": arithmetic.multiply,
    "stablehlo.negate": arithmetic.negate,
    "stablehlo.not": arithmetic.not_,
    "stablehlo.or": arithmetic.bitwise(ir.arith.ori),
    "stablehlo.popcnt": arithmetic.popcnt,
    "stablehlo.power": arithmetic.power,
    "stablehlo.reduce_precision": convert.reduce_precision,
    "stablehlo.remainder": arithmetic.remainder,
    "stablehlo.round_nearest_afz": _math(ir.math.round),
    "stablehlo.round_nearest_even": _math(ir.math.roundeven),
    "stablehlo.rsqrt": _math(ir.math.rsqrt),
    "stablehlo.select": arithmetic.select,
    "stablehlo.shift_left": arithmetic.shift_left,
    "stablehlo.shift_right_arithmetic": arithmetic.shift_right_arithmetic,
    "stablehlo.shift_right_logical": arithmetic.shift_right_logical,
    "stablehlo.sign": arithmetic.sign,
    "stablehlo.sine": _math(ir.math.sin),
    "stablehlo.sqrt": _math(ir.math.sqrt),
    "stablehlo.subtract": arithmetic.subtract,
    "stablehlo.tan": _math(ir.math.tan),
    "stablehlo.tanh": _math(ir.math.tanh),
    "stablehlo.xor": arithmetic.bitwise(ir.arith.xori),
    "xgpu.bessel_i0e": _math(BesselI0eOp.build),
}
_BUILDERS = {
    "real": implemented(_REAL, elementwise("real")),
    "complex": implemented(COMPLEX, elementwise("complex")),
}


def build_scalar(op: ScalarOp) -> ir.Value:
    """Emit an elementwise operation at the current insertion point and return its value.

    Raises `Unsupported` naming the operation, its type and the user's line if there is no code for it.
    """
    if reason := without_code(op.op):
        raise unsupported(op.op, reason)
    return _BUILDERS["complex" if is_complex_operation(op) else "real"][op.op.name](op)
