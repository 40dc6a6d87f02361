"""The pass `widen-sums`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.contents import Contents
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.widening import Widening
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk

_ROUNDING = frozenset(f"stablehlo.{name}" for name in "add subtract multiply".split())
_EXACT = frozenset(f"stablehlo.{name}" for name in "maximum minimum compare select and or constant return".split())


@dataclass(frozen=True)
class WidenSums(Pass):
    """Widens reductions and scans that add or multiply f16 and bf16 to f32, rounded at the end, as XLA does.

    Reductions that only pick elements stay, and so do those whose regions have operations that differ in f32 in more
    than the rounding. Needs: calls inlined.

    ```mlir
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<8xbf16>, tensor<bf16>) -> tensor<bf16>
    ```
    becomes
    ```mlir
    %1 = stablehlo.convert %x : (tensor<8xbf16>) -> tensor<8xf32>
    %2 = stablehlo.convert %zero : (tensor<bf16>) -> tensor<f32>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [0]
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %0 = stablehlo.convert %3 : (tensor<f32>) -> tensor<bf16>
    ```
    """

    NAME: ClassVar[str] = "widen-sums"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.reduce", SCAN))

    def has_work(self, contents: Contents) -> bool:
        """Whether there are reductions or scans, and such floats."""
        return super().has_work(contents) and any(_wider_half(element) is not None for element in contents.elements)

    def apply(self, module: ir.Module) -> None:
        """Widen all of them, outer ones first, with one memory of types."""
        widening = Widening(_wider_half)
        sums = walk(module.operation, *self.OPERATIONS, post_order=False)
        for op in [op for op in sums if widening.is_needed(op)]:
            names = {inner.operation.name for inner in op.regions[0].blocks[0].operations}
            if names & _ROUNDING and names <= _ROUNDING | _EXACT:
                with op.location:
                    widening.widen(op)


def _wider_half(element: ir.Type) -> ir.Type | None:
    return ir.F32Type.get(element.context) if isinstance(element, ir.F16Type | ir.BF16Type) else None
