"""The pass `expand-complex-math`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.contents import Contents
from xgpu.hlo.legalization import run_mlir_passes
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass


@dataclass(frozen=True)
class ExpandComplexMath(Pass):
    """Expands exponentials, logarithms, square roots and the like of complex numbers to functions of real numbers.

    Needs: constants of complex numbers split.

    ```mlir
    %0 = stablehlo.log_plus_one %x : tensor<4xcomplex<f32>>
    ```
    becomes what computes it from ``stablehlo.real %x`` and ``stablehlo.imag %x``.
    """

    NAME: ClassVar[str] = "expand-complex-math"

    def has_work(self, contents: Contents) -> bool:
        """Whether there are complex numbers."""
        return any(isinstance(element, ir.ComplexType) for element in contents.elements)

    def apply(self, module: ir.Module) -> None:
        """Rewrite all operations."""
        run_mlir_passes(module, "func.func(stablehlo-complex-math-expander)")
