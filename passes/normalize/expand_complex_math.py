"""The pass `expand-complex-math`."""

from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.legalization import run_mlir_passes
from xgpu.passes.base import Pass


@dataclass(frozen=True)
class ExpandComplexMath(Pass):
    """Writes exponentials, logarithms, square roots and the like of complex numbers in functions of real numbers.

    Needs: constants of complex numbers split.

    ```mlir
    %0 = stablehlo.log_plus_one %x : tensor<4xcomplex<f32>>
    ```
    becomes what computes it from ``stablehlo.real %x`` and ``stablehlo.imag %x``.
    """

    NAME: ClassVar[str] = "expand-complex-math"

    def apply(self, module: ir.Module) -> None:
        """Rewrite all operations, if there are complex numbers."""
        if _has_complex(module):
            run_mlir_passes(module, "func.func(stablehlo-complex-math-expander)")


def _has_complex(module: ir.Module) -> bool:
    """Whether an operation has complex operands or results."""
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = found or any(_is_complex(value.type) for values in (op.results, op.operands) for value in values)
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _is_complex(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.ComplexType)
