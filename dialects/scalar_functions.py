"""Operations of the xgpu dialect that are functions of one float, which the math dialect lacks."""

from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.dialects.base import FLOAT, DeclaredOp, TypeConstraint, Values, declare
from xgpu.dialects.namespace import XgpuDialect
from xgpu.dialects.traits import Traits

_FLOAT_OR_ARRAY = TypeConstraint(
    "a floating-point type, or a tensor of one",
    lambda type_: isinstance(type_.element_type if isinstance(type_, ir.RankedTensorType) else type_, ir.FloatType),
)


class FunctionOp(DeclaredOp):
    """Base of the functions of one float."""

    OPERANDS = (Values("argument", FLOAT, "A number."),)
    RESULTS = (Values("value", FLOAT, "The function's value."),)
    TRAITS = Traits(pure=True)

    @classmethod
    def build(cls, argument: ir.Value, loc: ir.Location | None = None) -> ir.Value:
        """Create the operation and return its result."""
        return cls.create([argument], [argument.type], loc=loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The types of operand and result are one."""
        operand, result = self.operation.operands[0].type, self.operation.results[0].type
        if operand != result:
            yield f"expected a result of the operand's type {operand}, got {result}"


@ir.register_operation(XgpuDialect)
@declare
class ErfInvOp(FunctionOp):
    """The inverse of the error function of a scalar: infinite at 1 and -1, NaN beyond.

    It is what `math.erf_inv` would be, if the math dialect had it: `expand-math` writes it out.

    ```mlir
    %y = "xgpu.erf_inv"(%x) : (f32) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.erf_inv"
    OPERANDS = (Values("argument", FLOAT, "A number from -1 to 1."),)
    RESULTS = (Values("value", FLOAT, "The number whose error function it is."),)


@ir.register_operation(XgpuDialect)
@declare
class LgammaOp(FunctionOp):
    """The logarithm of the absolute value of the gamma function of a scalar; infinite at 0 and negative integers.

    ```mlir
    %y = "xgpu.lgamma"(%x) : (f32) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.lgamma"


@ir.register_operation(XgpuDialect)
@declare
class DigammaOp(FunctionOp):
    """The derivative of `xgpu.lgamma`; -infinity at 0, NaN at negative integers.

    ```mlir
    %y = "xgpu.digamma"(%x) : (f32) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.digamma"


@ir.register_operation(XgpuDialect)
@declare
class BesselI0eOp(FunctionOp):
    """The modified Bessel function of the first kind of order 0, times e^-|x|.

    CHLO has no such operation, so it stands for itself at the levels of tensors too.

    ```mlir
    %y = "xgpu.bessel_i0e"(%x) : (tensor<8xf32>) -> tensor<8xf32>
    ```
    """

    OPERATION_NAME = "xgpu.bessel_i0e"
    OPERANDS = (Values("argument", _FLOAT_OR_ARRAY, "A number, or an array of numbers."),)
    RESULTS = (Values("value", _FLOAT_OR_ARRAY, "The function's value, or those of all elements."),)


@ir.register_operation(XgpuDialect)
@declare
class BesselI1eOp(FunctionOp):
    """The modified Bessel function of the first kind of order 1 of a scalar, times e^-|x|.

    ```mlir
    %y = "xgpu.bessel_i1e"(%x) : (f32) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.bessel_i1e"


@ir.register_operation(XgpuDialect)
@declare
class LogisticOp(FunctionOp):
    """1 / (1 + e^-x) of a scalar.

    ```mlir
    %y = "xgpu.logistic"(%x) : (f32) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.logistic"


FUNCTION_OPS = (ErfInvOp, LgammaOp, DigammaOp, BesselI0eOp, BesselI1eOp, LogisticOp)
"""All functions of one float."""
