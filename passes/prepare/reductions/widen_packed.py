"""The pass `widen-packed`."""

from typing import ClassVar

from xgpu import ir
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.reduction_regions import region_names
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.dialects.attributes import FALLBACK
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.widening import Widening
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass

_ARITHMETIC = frozenset(f"stablehlo.{name}" for name in "add subtract multiply and or xor".split())
_ORDERING = frozenset(f"stablehlo.{name}" for name in "maximum minimum compare select and or".split())
_NO_COMPUTATION = frozenset(("stablehlo.constant", "stablehlo.return"))


@dataclass(frozen=True)
class WidenPacked(OperationRewrite):
    """Widens reductions and scans of 2- and 4-bit integers to 8 bits, where the results are the same.

    Two threads cannot write results that share a byte. Arithmetic agrees in the lower bits, comparisons on extended
    numbers. Scans of packed numbers that cannot be widened fall back to XLA. Needs: nothing.

    ```mlir
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<8x64xi4>, tensor<i4>) -> tensor<8xi4>
    ```
    becomes
    ```mlir
    %0 = stablehlo.convert %x : (tensor<8x64xi4>) -> tensor<8x64xi8>
    %1 = stablehlo.convert %zero : (tensor<i4>) -> tensor<i8>
    %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = [1]
        : (tensor<8x64xi8>, tensor<i8>) -> tensor<8xi8>
    %sum = stablehlo.convert %2 : (tensor<8xi8>) -> tensor<8xi4>
    ```
    """

    NAME: ClassVar[str] = "widen-packed"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((REDUCE, SCAN))

    def rewrite(self, op: ir.Operation) -> None:
        """Widen one reduction or scan."""
        if not any(map(is_packed, op.results)):
            return
        names = region_names(op) - _NO_COMPUTATION
        if names <= _ARITHMETIC or names <= _ORDERING:
            Widening(_byte_of).widen(op)
        if op.name == SCAN and any(map(is_packed, op.results)):
            op.attributes[FALLBACK] = ir.StringAttr.get(
                "elements that share a byte, of which threads would write parts"
            )


def _byte_of(type_: ir.Type) -> ir.Type | None:
    """Return the 8-bit type for integers of 2 and 4 bits, None for other types."""
    if not isinstance(type_, ir.IntegerType) or type_.width not in (2, 4):
        return None
    return ir.IntegerType.get_unsigned(8) if type_.is_unsigned else ir.IntegerType.get_signless(8)
