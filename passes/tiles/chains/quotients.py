"""Quotients by a number, of threads that have no room for divisions of all that they hold."""

import numpy as np

from xgpu import ir
from xgpu.emit.scalar.op import constant


def quotient(value: ir.Value, divisor: float) -> ir.Value:
    """Write a quotient of f32 by a normal number, rounded as a division rounds it unless it is next to underflow.

    What the product with the inverse leaves corrects it, unless that is infinite. (Source: P. Markstein, IA-64 and
    Elementary Functions. Divisors whose fraction has no bit that is zero may round one dividend of 2^23 otherwise.)
    """
    inverse = constant(value.type, float(np.float32(1) / np.float32(divisor)))
    near = ir.arith.mulf(value, inverse)
    rest = ir.math.fma(ir.arith.negf(near), constant(value.type, divisor), value)
    is_number = ir.arith.cmpf(ir.arith.CmpFPredicate.ORD, rest, rest)
    corrected: ir.Value = ir.arith.select(is_number, ir.math.fma(rest, inverse, near), near)
    return corrected
