"""The pass expand-math."""

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from xgpu import ir
from xgpu.dialects.attributes import COLD, GRADE, WEIGHT
from xgpu.dialects.scalar_functions import BesselI0eOp, BesselI1eOp, DigammaOp, ErfInvOp, LgammaOp, LogisticOp
from xgpu.passes.floats.least_values import LeastValues
from xgpu.passes.framework.base import Pass, function_name, functions
from xgpu.passes.math import bessel, exponential, gamma, logarithm, power, short, special, trigonometry
from xgpu.passes.math.builder import LAYOUTS, Constants, MathBuilder
from xgpu.records import dataclass
from xgpu.structure import is_argument, producer, walk
from xgpu.target_machine import DEFAULT_MACHINE, TargetMachine, TargetName

_Build = Callable[..., ir.Value | Sequence[ir.Value]]


@dataclass(frozen=True)
class Expansion:
    """The expansion of one function. A large one becomes a function of the module, once per type, that is called.

    ``short`` is how to write it if the result is then rounded to bf16, ``weight`` if it is one of several weights, and
    ``normal`` if the last operand is known to be positive and no subnormal number; the same way if left out.
    """

    build: Callable[..., ir.Value]
    is_large: bool = False
    short: Callable[..., ir.Value] | None = None
    weight: Callable[..., ir.Value] | None = None
    normal: Callable[..., ir.Value] | None = None


_EXPONENTIAL = {
    "exp": Expansion(exponential.exp, short=short.exp, weight=exponential.weight),
    "exp2": Expansion(exponential.exp2, weight=exponential.weight_of_two),
    "expm1": Expansion(exponential.expm1),
    "tanh": Expansion(exponential.tanh, short=short.tanh, weight=exponential.cap),
    "sinh": Expansion(exponential.sinh, is_large=True),
    "cosh": Expansion(exponential.cosh, is_large=True),
}
_LOGARITHM = {
    "log": Expansion(logarithm.log, short=short.log, normal=logarithm.log_of_normal),
    "log2": Expansion(logarithm.log2, normal=logarithm.log2_of_normal),
    "log1p": Expansion(logarithm.log1p, short=short.log1p),
    "powf": Expansion(power.powf, is_large=True),
    "asinh": Expansion(logarithm.asinh, is_large=True, short=short.asinh),
    "acosh": Expansion(logarithm.acosh, is_large=True, short=short.acosh),
    "atanh": Expansion(logarithm.atanh, is_large=True, short=short.atanh),
}
_TRIGONOMETRY = {
    "sin": Expansion(trigonometry.sin),
    "cos": Expansion(trigonometry.cos),
    "tan": Expansion(trigonometry.tan, is_large=True),
    "asin": Expansion(trigonometry.asin, is_large=True, short=short.asin),
    "acos": Expansion(trigonometry.acos, is_large=True, short=short.acos),
    "atan": Expansion(trigonometry.atan, is_large=True),
    "atan2": Expansion(trigonometry.atan2, is_large=True),
}
_SPECIAL = {
    "rsqrt": Expansion(special.rsqrt, normal=special.rsqrt_of_normal),
    "cbrt": Expansion(special.cbrt, is_large=True),
    "erf": Expansion(special.erf, is_large=True, short=short.erf),
    "erfc": Expansion(special.erfc, is_large=True, short=short.erfc),
}
_OWN = {
    BesselI0eOp.OPERATION_NAME: Expansion(bessel.bessel_i0e, is_large=True),
    BesselI1eOp.OPERATION_NAME: Expansion(bessel.bessel_i1e, is_large=True),
    DigammaOp.OPERATION_NAME: Expansion(gamma.digamma, is_large=True),
    ErfInvOp.OPERATION_NAME: Expansion(special.erf_inv, is_large=True, short=short.erf_inv),
    LgammaOp.OPERATION_NAME: Expansion(gamma.lgamma, is_large=True),
    LogisticOp.OPERATION_NAME: Expansion(exponential.logistic),
}
EXPANSIONS = _OWN | {
    f"math.{name}": each for name, each in (_EXPONENTIAL | _LOGARITHM | _TRIGONOMETRY | _SPECIAL).items()
}
"""Every function that is written out, by operation name; other operations of the math dialect stay."""
_SMALLEST_NORMAL = LAYOUTS[32].smallest_normal
INSTRUCTIONS = {
    "arith.divf": Expansion(special.quotient, short=short.quotient, normal=special.quotient_by_normal),
    "math.round": Expansion(special.round_away),
    "math.sqrt": Expansion(special.sqrt, normal=special.sqrt_of_normal),
}
"""Functions that targets compute without a library, but GPUs slower in f32 than XLA does within its errors."""

HELPERS: dict[str, Callable[..., Sequence[ir.Value]]] = {
    gamma.FAR_LGAMMA: gamma.far_lgamma,
    power.GENERAL_POWER: power.general_power,
    trigonometry.REDUCE_LARGE: trigonometry.reduce_large,
}
"""Functions of the module that expansions call for what is rare, by name."""


@dataclass(frozen=True)
class ExpandMath(Pass):
    """Expands functions of f32 and f64 to arithmetic, as there is no math library on the GPU.

    Needs expand-floats to have run: narrower floats are computed in f32. Results are within 2 units in the last place
    of the exact ones (tan, sinh, erf_inv, erfc and some inverse functions: 3 to 5, lgamma, digamma and the Bessel
    functions: 6 to 16), for all arguments: zeros, subnormal numbers, infinities and NaN included; docs/accuracy.md has
    the errors. On the GPU, f32 uses its approximate instructions where they are as good as that. A function with the
    attribute ``xgpu.grade = 16``, whose result is then rounded to bf16, is computed to 2^-18 only, an exponential with
    ``xgpu.weight`` to 2^-18 of 1, and a hyperbolic tangent with it to 2^-21 of 1. What the targets compute themselves
    stays: sqrt, fma, absf, copysign and roundings. Large functions, and what is rare in some, are functions of the
    module, which are called.

    ```mlir
    %y = math.rsqrt %x : f32
    %z = math.powf %x, %y : f32
    // becomes, for nvvm
    %y = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%x) : (f32) -> f32
    %z = func.call @xgpu_powf_f32(%x, %y) : (f32, f32) -> f32
    ```
    """

    NAME: ClassVar[str] = "expand-math"
    target: TargetName = DEFAULT_MACHINE
    """The machine to expand for."""

    def apply(self, module: ir.Module) -> None:
        machine = self.target.machine()
        helpers = _Helpers(machine, module)
        for function in functions(module):
            operations = [op for op in walk(function.operation) if _is_expanded(op, machine)]
            least = LeastValues()
            normal = {op for op in operations if least.of(op.operands[-1]) >= _SMALLEST_NORMAL}
            constants = Constants(function.operation.regions[0].blocks[0])
            for op in operations:
                with ir.InsertionPoint(op), op.location:
                    value = _expand(machine, op, op in normal, constants, helpers)
                op.results[0].replace_all_uses_with(value)
                op.erase()


def _expand(
    machine: TargetMachine, op: ir.Operation, is_normal: bool, constants: Constants, helpers: "_Helpers"
) -> ir.Value:
    expansion = EXPANSIONS.get(op.name) or INSTRUCTIONS[op.name]
    operands = list(op.operands)
    grade = ir.IntegerAttr(op.attributes[GRADE]).value if GRADE in op.attributes else None
    build = expansion.build
    if expansion.weight and WEIGHT in op.attributes:
        build = expansion.weight
    elif expansion.short and grade == 16:
        build = expansion.short
    elif op.name == "arith.divf" and all(map(_is_f16, operands)):
        build = special.quotient_of_narrow
    elif op.name == "arith.divf" and (inverse := _inverse_of_constant(operands[1])):
        operands, build = operands[:1], lambda b, x: b.mul(x, inverse)
    elif expansion.normal and is_normal:
        build = expansion.normal
    if expansion.is_large:
        return helpers.call(op.name.partition(".")[2], build, operands, grade)[0]
    builder = MathBuilder(machine, operands[0].type, constants, helpers.call_helper, grade)
    return build(builder, *operands)


def _is_expanded(op: ir.Operation, machine: TargetMachine) -> bool:
    type_ = op.results[0].type if op.results else None
    if op.name in INSTRUCTIONS:
        is_product = op.name == "arith.divf" and _is_power_of_two(op.operands[1])
        return bool(machine.fast_instructions) and isinstance(type_, ir.F32Type) and not is_product
    return op.name in EXPANSIONS and isinstance(type_, ir.F32Type | ir.F64Type)


def _is_power_of_two(value: ir.Value) -> bool:
    """Whether a value is a constant that LLVM multiplies by the inverse of, be it extended from a narrower type."""
    constant = _constant(value)
    return constant is not None and abs(math.frexp(constant)[0]) == 0.5


def _inverse_of_constant(value: ir.Value) -> float | None:
    """Return the rounded inverse of a value that is a constant, if it is a normal number and so is its inverse."""
    constant = _constant(value)
    if not constant or not _SMALLEST_NORMAL <= abs(1 / constant) < 1 / _SMALLEST_NORMAL:
        return None
    return float(np.float32(1) / np.float32(constant))


def _constant(value: ir.Value) -> float | None:
    """Return the number that a value is, be it extended from a narrower type."""
    if is_argument(value):
        return None
    op = producer(value)
    if op.name == "arith.extf":
        return _constant(op.operands[0])
    return float(ir.FloatAttr(op.attributes["value"]).value) if op.name == "arith.constant" else None


def _is_f16(value: ir.Value) -> bool:
    """Whether a value is extended from f16."""
    return (
        not is_argument(value)
        and producer(value).name == "arith.extf"
        and isinstance(producer(value).operands[0].type, ir.F16Type)
    )


class _Helpers:
    """The functions that expansions call; each is added to the module at its first use, once per type and grade."""

    def __init__(self, machine: TargetMachine, module: ir.Module):
        self._machine = machine
        self._module = module
        self._names: dict[tuple[str, ir.Type, int | None], tuple[str, list[ir.Type]]] = {}
        self._taken = {function_name(function) for function in functions(module)}

    def call_helper(self, name: str, operands: Sequence[ir.Value]) -> Sequence[ir.Value]:
        """Call a helper of ours at the insertion point and return its results."""
        return self.call(name, HELPERS[name], operands, None, is_cold=True)

    def call(
        self, name: str, build: _Build, operands: Sequence[ir.Value], grade: int | None, is_cold: bool = False
    ) -> Sequence[ir.Value]:
        """Call the function that ``build`` writes at the insertion point and return its results."""
        key = name, operands[0].type, grade
        if key not in self._names:
            symbol = self._new_symbol(name, operands[0].type, grade)
            self._names[key] = symbol, self._define(symbol, build, [value.type for value in operands], grade, is_cold)
        symbol, results = self._names[key]
        return list(ir.func.CallOp(results, symbol, operands).results)

    def _new_symbol(self, name: str, type_: ir.Type, grade: int | None) -> str:
        symbol = f"xgpu_{name}_{type_}" + (f"_{grade}" if grade else "")
        while symbol in self._taken:
            symbol += "_"
        self._taken.add(symbol)
        return symbol

    def _define(
        self, symbol: str, build: _Build, types: Sequence[ir.Type], grade: int | None, is_cold: bool
    ) -> list[ir.Type]:
        """Add the function to the module and return the types of its results."""
        with ir.InsertionPoint(self._module.body), ir.Location.unknown():
            function = ir.func.FuncOp(symbol, ir.FunctionType.get(list(types), []))
            function.operation.attributes["sym_visibility"] = ir.StringAttr.get("private")
            if is_cold:
                function.operation.attributes[COLD] = ir.UnitAttr.get()
            block = function.add_entry_block()
        with ir.InsertionPoint(block), ir.Location.unknown():
            builder = MathBuilder(self._machine, types[0], Constants(block), self.call_helper, grade)
            built = build(builder, *block.arguments)
            values = [built] if isinstance(built, ir.Value) else list(built)
            ir.func.return_(values)
        results = [value.type for value in values]
        type_ = ir.FunctionType.get(list(types), results)
        function.operation.attributes["function_type"] = ir.TypeAttr.get(type_)
        return results
