"""The pass `slice-single-windows`."""

import math
from collections.abc import Sequence
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
    no kernel reads where it begins. One whose elements lie in another order stays. Needs: nothing.

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
        places = _place(read, [0] * len(shape), starts)
        limits = [last + 1 for last in _place(read, [size - 1 for size in shape], starts)]
        extents = [limit - place for place, limit in zip(places, limits, strict=True)]
        if math.prod(extents) == math.prod(shape) and _is_in_order(read, shape, starts, extents):
            replace_op(op, [reshape(hlo.slice(op.operands[0], places, limits, [1] * len(places)), shape)])


def _place(read: Access, index: Sequence[int], starts: Sequence[int]) -> list[int]:
    """Return the operand's index that is read for an index of the result."""
    return [result.evaluate([*index, *starts], []) for result in read.map.results]


def _is_in_order(read: Access, shape: Sequence[int], starts: Sequence[int], extents: Sequence[int]) -> bool:
    """Whether the elements of a slice of these extents are those of the result one after the other.

    They are not where a batch is a dimension of the operand that follows one of the window: a step along a dimension of
    the result is then one over other elements of the slice than there are in the result's later dimensions.
    """
    origin = _place(read, [0] * len(shape), starts)
    for i, size in enumerate(shape):
        if size > 1:
            index = _place(read, [int(i == each) for each in range(len(shape))], starts)
            offsets = [there - here for there, here in zip(index, origin, strict=True)]
            step = sum(offset * math.prod(extents[axis + 1 :]) for axis, offset in enumerate(offsets))
            if step != math.prod(shape[i + 1 :]):
                return False
    return True


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
