"""The exact remainder of a floating-point division, as functions: GPUs have no instruction for it."""

import numpy as np

from xgpu import ir
from xgpu.target_machine import TargetMachine

_BITS = {"f32": 32, "f64": 64}
# Of each type: bits of the mantissa, the smallest normal number's exponent, and a bound below which numbers are scaled.
_LAYOUTS = {"f32": (23, -126, -100), "f64": (52, -1022, -900)}

# The integer next to the quotient is enough: the rest is exact and may be negative, which one more divisor makes good.
# The quotient may be off by some units in the last place, as what is left says whether it was right: a number from zero
# to the divisor, tested by its bits, as those of negative numbers and NaN are larger. Anything else (a large quotient,
# an inverse that has no place in the type, what is not finite) is left to the function below.
_SHORT = """
func.func private @{name}(%x: {t}, %y: {t}) -> {t} {{
  %zero = arith.constant 0.0 : {t}
  %rounder = arith.constant {rounder} : {t}
  %abs_x = math.absf %x : {t}
  %abs_y = math.absf %y : {t}
  {inverse}
  %shifted = math.fma %abs_x, %inverse, %rounder : {t}
  %whole = arith.subf %shifted, %rounder : {t}
  %minus_whole = arith.negf %whole : {t}
  %rest = math.fma %minus_whole, %abs_y, %abs_x : {t}
  %too_much = arith.cmpf olt, %rest, %zero : {t}
  %one_less = arith.addf %rest, %abs_y : {t}
  %magnitude = arith.select %too_much, %one_less, %rest : {t}
  %signed = math.copysign %magnitude, %x : {t}
  %code = arith.bitcast %magnitude : {t} to {i}
  %most = arith.bitcast %abs_y : {t} to {i}
  %is_short = arith.cmpi ult, %code, %most : {i}
  %result = scf.if %is_short -> ({t}) {{
    scf.yield %signed : {t}
  }} else {{
    %long = func.call @{name}_long(%x, %y) : ({t}, {t}) -> {t}
    scf.yield %long : {t}
  }}
  return %result : {t}
}}
"""
_DIVISION = "%one = arith.constant 1.0 : {t}\n  %inverse = arith.divf %one, %abs_y : {t}"
_INSTRUCTION = '%inverse = llvm.call_intrinsic "{instruction}"(%abs_y) : ({t}) -> {t}'

# The divisor is doubled until the next doubling would exceed the dividend, then halved back; wherever it fits it is
# subtracted, which is exact. Both are scaled up first if the dividend is so small that its exponent field may be 0.
_LONG = """
func.func private @{name}_long(%x: {t}, %y: {t}) -> {t} attributes {{xgpu.cold}} {{
  %zero = arith.constant 0.0 : {t}
  %minus_one = arith.constant -1.0 : {t}
  %half = arith.constant 0.5 : {t}
  %one = arith.constant 1.0 : {t}
  %infinity = arith.constant {infinity} : {t}
  %nan = arith.constant {nan} : {t}
  %small = arith.constant {small} : {t}
  %normal = arith.constant {normal} : {t}
  %up = arith.constant {up} : {t}
  %down = arith.constant {down} : {t}
  %mantissa = arith.constant {mantissa} : {i}
  %exponent = arith.constant {exponent} : {i}
  %abs_x = math.absf %x : {t}
  %abs_y = math.absf %y : {t}
  %is_small = arith.cmpf olt, %abs_x, %small : {t}
  %scale = arith.select %is_small, %up, %one : {t}
  %unscale = arith.select %is_small, %down, %one : {t}
  %dividend = arith.mulf %abs_x, %scale : {t}
  %divisor = arith.mulf %abs_y, %scale : {t}
  %is_denormal = arith.cmpf olt, %divisor, %normal : {t}
  %raised = arith.mulf %divisor, %up : {t}
  %normalized = arith.select %is_denormal, %raised, %divisor : {t}
  %divisor_bits = arith.bitcast %normalized : {t} to {i}
  %dividend_bits = arith.bitcast %dividend : {t} to {i}
  %m = arith.andi %divisor_bits, %mantissa : {i}
  %e = arith.andi %dividend_bits, %exponent : {i}
  %first_bits = arith.ori %m, %e : {i}
  %first = arith.bitcast %first_bits : {i} to {t}
  %too_large = arith.cmpf ogt, %first, %dividend : {t}
  %halved = arith.mulf %first, %half : {t}
  %largest = arith.select %too_large, %halved, %first : {t}
  %divides = arith.cmpf oge, %dividend, %divisor : {t}
  %x_finite = arith.cmpf olt, %abs_x, %infinity : {t}
  %y_nonzero = arith.cmpf ogt, %abs_y, %zero : {t}
  %valid = arith.andi %x_finite, %y_nonzero : i1
  %runs = arith.andi %divides, %valid : i1
  %start = arith.select %runs, %largest, %minus_one : {t}
  %end:2 = scf.while (%s = %start, %r = %dividend) : ({t}, {t}) -> ({t}, {t}) {{
    %more = arith.cmpf oge, %s, %divisor : {t}
    scf.condition(%more) %s, %r : {t}, {t}
  }} do {{
  ^bb0(%s: {t}, %r: {t}):
    %fits = arith.cmpf oge, %r, %s : {t}
    %difference = arith.subf %r, %s : {t}
    %rest = arith.select %fits, %difference, %r : {t}
    %next = arith.mulf %s, %half : {t}
    scf.yield %next, %rest : {t}, {t}
  }}
  %magnitude = arith.mulf %end#1, %unscale : {t}
  %signed = math.copysign %magnitude, %x : {t}
  %result = arith.select %valid, %signed, %nan : {t}
  return %result : {t}
}}
"""


class RemainderFunctions:
    """Adds the functions that a module needs for a machine, each at its first use."""

    def __init__(self, module: ir.Module, machine: TargetMachine):
        self._module = module
        self._machine = machine
        self._names: dict[str, str] = {}

    def call(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """Return the remainder of f32 or f64 scalars, with the sign of ``x``: a call at the insertion point."""
        type_ = str(x.type)
        name = self._names.get(type_)
        if name is None:
            name = self._names[type_] = self._define(type_)
        return ir.func.call([x.type], name, [x, y])

    def _define(self, type_: str) -> str:
        name = f"xgpu_remainder_{type_}"
        mantissa_bits, normal, small = _LAYOUTS[type_]
        bits = _BITS[type_]
        infinity = ((1 << (bits - 1 - mantissa_bits)) - 1) << mantissa_bits
        shift = mantissa_bits + 1
        floats = {"small": 2.0**small, "normal": 2.0**normal, "up": 2.0**shift, "down": 2.0**-shift}
        floats["rounder"] = 1.5 * 2.0**mantissa_bits
        instruction = self._machine.fast_instructions.get("reciprocal") if type_ == "f32" else None
        inverse = _INSTRUCTION if instruction else _DIVISION
        words = {
            "name": name,
            "t": type_,
            "i": f"i{bits}",
            "inverse": inverse.format(t=type_, instruction=instruction),
            "infinity": hex(infinity),
            "nan": hex(infinity | 1 << (mantissa_bits - 1)),
            "mantissa": (1 << mantissa_bits) - 1,
            "exponent": infinity,
            **{key: _literal(value, type_) for key, value in floats.items()},
        }
        # One refers to the other, so they are parsed as a whole.
        made = ir.Module.parse((_SHORT + _LONG).format(**words))
        for function in list(made.body.operations):
            self._module.body.append(function)
        return name


def _literal(value: float, type_: str) -> str:
    """Return the bit pattern, as MLIR takes it, of a value that is exact in the type."""
    array = np.array(value, {"f32": np.float32, "f64": np.float64}[type_])
    return hex(int.from_bytes(array.tobytes()[::-1], "big"))
