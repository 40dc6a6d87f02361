"""The pass `fold-pads`."""

from typing import ClassVar

import numpy as np

from xgpu import ir
from xgpu.hlo.scan_op import binary_function, is_neutral
from xgpu.hlo.stablehlo_builder import shape_of
from xgpu.indexing.access import integers
from xgpu.indexing.window_numbers import PADDING, window_numbers, window_padding
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import is_result_of, is_used, producer

_PAD = "stablehlo.pad"


@dataclass(frozen=True)
class FoldPads(OperationRewrite):
    """Makes the padding of an array that windows read the windows' own.

    The gradient of a pool by sums pads what comes in with zeros. As an operation the pad is computed again in every
    window that reads an element, or the padded array is stored; windows leave out what is outside of their array. So
    it is with any number that the windows' function leaves as it is. Needs: close-window-gaps, for elements that are
    spread out.

    ```mlir
    %0 = stablehlo.pad %x, %zero, low = [1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
    %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 3>}> ({ ... stablehlo.add ... })
        : (tensor<10xf32>, tensor<f32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %1 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<1> : tensor<1x2xi64>,
        window_dimensions = array<i64: 3>}> ({ ... stablehlo.add ... }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "fold-pads"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.reduce_window",))

    def rewrite(self, op: ir.Operation) -> None:
        """Have windows read what their operand pads, as long as they may."""
        while len(op.results) == 1 and is_result_of(op.operands[0], _PAD) and _is_folded(op, producer(op.operands[0])):
            pad = producer(op.operands[0])
            edges = [integers(pad, f"edge_padding_{side}") for side in ("low", "high")]
            padding = np.array(window_padding(op, len(edges[0])), np.int64) + np.array(edges, np.int64).T
            op.attributes[PADDING] = ir.DenseElementsAttr.get(padding)
            op.operands[0] = pad.operands[0]
            if not is_used(pad.results[0]):
                pad.erase()


def _is_folded(op: ir.Operation, pad: ir.Operation) -> bool:
    """Whether all that ``pad`` adds are numbers around an array that the function of the windows leaves as it is."""
    name, rank = binary_function(op.regions[0].blocks[0]), len(shape_of(op.results[0]))
    if name is None or not all(is_neutral(name, each) for each in (pad.operands[1], op.operands[1])):
        return False
    added = [*integers(pad, "edge_padding_low"), *integers(pad, "edge_padding_high")]
    is_plain = min(added, default=0) >= 0 and not any(integers(pad, "interior_padding"))
    return is_plain and window_numbers(op, "base_dilations", rank) == [1] * rank and 0 not in shape_of(pad.operands[0])
