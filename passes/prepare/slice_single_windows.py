"""The pass `slice-single-windows`."""

import math
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.constants.integers import known_integers
from xgpu.fusion.fallback import DYNAMIC_SLICE
from xgpu.hlo.stablehlo_builder import hlo, reshape
from xgpu.indexing.access import Access, shape_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op

_GATHER = "stablehlo.gather"


@dataclass(frozen=True)
class SliceSingleWindows(OperationRewrite):
    """Rewrites gathers of a single window at a known place, and dynamic slices at one, as slices.

    The gradient of ``x.at[:, 2].set(y)`` is such a gather. What looks for the origin of a slice sees where it lies, and
    no kernel reads where it begins. Needs: nothing.

    ```mlir
    %i = stablehlo.constant dense<2> : tensor<1xi32>
    %0 = "stablehlo.gather"(%x, %i) <{... collapsed_slice_dims = [1], start_index_map = [1] ... slice_sizes = [8, 1]}>
        : (tensor<8x4xf32>, tensor<1xi32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %1 = stablehlo.slice %x [0:8, 2:3] : (tensor<8x4xf32>) -> tensor<8x1xf32>
    %0 = stablehlo.reshape %1 : (tensor<8x1xf32>) -> tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "slice-single-windows"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_GATHER, DYNAMIC_SLICE))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace an operation that is one of those."""
        shape = shape_of(op.results[0])
        if not math.prod(shape):
            return
        read = accesses(op)[-1]
        if (starts := _starts(op, read)) is None:
            return
        first, last = ([*ends, *starts] for ends in ([0] * len(shape), [size - 1 for size in shape]))
        places = [result.evaluate(first, []) for result in read.map.results]
        limits = [result.evaluate(last, []) + 1 for result in read.map.results]
        if math.prod(limit - place for place, limit in zip(places, limits, strict=True)) == math.prod(shape):
            replace_op(op, [reshape(hlo.slice(op.operands[0], places, limits, [1] * len(places)), shape)])


def _starts(op: ir.Operation, read: Access) -> list[int] | None:
    """Return the indices that the only window of ``op`` begins at, each moved to where it fits; None if not known."""
    indices = list(op.operands)[1:]
    if sum(math.prod(shape_of(each)) for each in indices) != len(read.runtime):
        return None
    known = [known_integers(each) for each in indices]
    numbers = [number for each in known for number in each or ()]
    if None in known:
        return None
    clamps = read.map.dims[len(read.map.dims) - len(numbers) :]
    return [min(max(number, clamp.lower), clamp.upper) for number, clamp in zip(numbers, clamps, strict=True)]
