"""The pass `expand-short-scans`."""

import math
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.heroes import SMALL_REDUCTION
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.scan_op import SCAN, combine_elements, is_elementwise
from xgpu.hlo.stablehlo_builder import Value, hlo, shape_of
from xgpu.indexing.access import integer, integers
from xgpu.indexing.hlo_maps import access_kind
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op, users_of

_REDUCE = "stablehlo.reduce"
_MOST_TOGETHER = 64
"""Elements that lie together and of which each part of a scan reads some."""
_MOST_READERS = 32
"""Operations behind a scan that are looked at."""


@dataclass(frozen=True)
class ExpandShortScans(OperationRewrite):
    """Writes scans of few elements as one combination of arrays after the other, put together again.

    A scan has a kernel of its own, from memory to memory. Reductions of as few elements have none: threads compute them
    where they are read. The same is done for scans whose elements lie together, and for those that reductions of as
    many elements read, as of the conditions of `jnp.piecewise`. Of others each part of the result would read all parts
    before it from memory. Needs: scans as they are, and not their steps.

    ```mlir
    %0 = "xgpu.scan"(%x) ({ ... add ... }) {dimension = 1, reverse = false} : (tensor<64x2xf32>) -> tensor<64x2xf32>
    // becomes
    %1 = stablehlo.slice %x [0:64, 0:1] : (tensor<64x2xf32>) -> tensor<64x1xf32>
    %2 = stablehlo.slice %x [0:64, 1:2] : (tensor<64x2xf32>) -> tensor<64x1xf32>
    %3 = stablehlo.add %1, %2 : tensor<64x1xf32>
    %0 = stablehlo.concatenate %1, %3, dim = 1 : (tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x2xf32>
    ```
    """

    NAME: ClassVar[str] = "expand-short-scans"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCAN,))

    def rewrite(self, op: ir.Operation) -> None:
        """Write a scan as combinations, if it is short and read as they are best computed."""
        shape, dimension = shape_of(op.results[0]), integer(op, "dimension")
        if shape[dimension] > SMALL_REDUCTION or not is_elementwise(op.regions[0].blocks[0]):
            return
        if math.prod(shape[dimension:]) <= _MOST_TOGETHER or _is_reduced(op, dimension):
            replace_op(op, _expanded(op, dimension))


def _is_reduced(op: ir.Operation, dimension: int) -> bool:
    """Whether all that reads the results, element by element, ends in reductions along the dimension."""
    pending, seen = list(op.results), set(op.results)
    while pending:
        for user in users_of(pending.pop()):
            if user.name == _REDUCE:
                if dimension not in integers(user, "dimensions"):
                    return False
                continue
            is_known = user.name in OPERATIONS and not len(user.regions) and not is_bitcast(user)
            if not is_known or access_kind(user) != "elementwise" or len(seen) > _MOST_READERS:
                return False
            pending += set(user.results) - seen
            seen |= set(user.results)
    return True


def _expanded(op: ir.Operation, dimension: int) -> list[Value]:
    """Write the results of a scan, part by part."""
    count, (block,) = shape_of(op.results[0])[dimension], op.regions[0].blocks
    order = range(count - 1, -1, -1) if ir.BoolAttr(op.attributes["reverse"]).value else range(count)
    made: dict[int, list[Value]] = {}
    before: list[Value] = []
    for number in order:
        own = [_part(operand, dimension, number) for operand in op.operands]
        made[number] = before = combine_elements(block, [*before, *own]) if before else own
    return [
        hlo.concatenate([made[number][position] for number in range(count)], dimension)
        for position in range(len(op.results))
    ]


def _part(value: Value, dimension: int, number: int) -> Value:
    """Write the elements of an array at one index of a dimension."""
    starts, ends = [0] * len(shape_of(value)), list(shape_of(value))
    starts[dimension], ends[dimension] = number, number + 1
    part: Value = hlo.slice(value, starts, ends, [1] * len(starts))
    return part
