"""The pass `sort-short-rows`."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.chlo import TOP_K
from xgpu.hlo.stablehlo_builder import Value, hlo, shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.passes.prepare.sorting.elements import SortOrder
from xgpu.passes.prepare.sorting.orders import SORT, numbered, order_of_largest, order_of_sort
from xgpu.records import dataclass
from xgpu.structure import is_constant, replace_op

_LONGEST = 16
"""Elements of the longest row."""
_MOST_OPERATIONS = 1024
"""Operations on a column that exchanges may take, which are text and code."""


@dataclass(frozen=True)
class SortShortRows(OperationRewrite):
    """Writes sorts of a few elements each, and searches for the largest of these, as exchanges of neighbours.

    Each element of a row is a column. One pass over the columns from the last to the first brings the element there
    that comes first, the next one the second, and so on: as many passes as there are results. Two neighbours are
    exchanged where the second comes before the first, so elements that are alike keep their order. Kernels compute all
    that, with what the rows are made of and what reads them. A library sorts whole arrays, of which it is told nothing
    else than rows: routing 8,192 tokens to two of eight experts takes it 10.8 us on an H200, and the exchanges 1.5.
    Regions that do more than look at single elements stay, and so do sorts of so many columns or arrays that the
    exchanges would be long text. Needs: nothing. Run it before `expand-sorts`, which takes the others where no library
    may.

    ```mlir
    %r = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({ stablehlo.compare LT, ... }) : (tensor<64x2xf32>) -> ...
    ```
    becomes
    ```mlir
    %a = stablehlo.slice %x [0:64, 0:1] : (tensor<64x2xf32>) -> tensor<64x1xf32>
    %b = stablehlo.slice %x [0:64, 1:2] : (tensor<64x2xf32>) -> tensor<64x1xf32>
    %exchanged = stablehlo.compare LT, %b, %a : ... -> tensor<64x1xi1>
    %first = stablehlo.select %exchanged, %b, %a : ...
    %second = stablehlo.select %exchanged, %a, %b : ...
    %r = stablehlo.concatenate %first, %second, dim = 1 : ... -> tensor<64x2xf32>
    ```
    """

    NAME: ClassVar[str] = "sort-short-rows"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SORT, TOP_K))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a sort of short rows, but not of constants, which is folded."""
        shape = shape_of(op.operands[0])
        axis = len(shape) - 1 if op.name == TOP_K else ir.IntegerAttr(op.attributes["dimension"]).value
        if not 2 <= shape[axis] <= _LONGEST or 0 in (prod(shape_of(value)) for value in (*op.operands, *op.results)):
            return
        if all(map(is_constant, op.operands)):
            return
        passes = shape_of(op.results[0])[axis]
        exchanges = sum(shape[axis] - 1 - number for number in range(passes))
        operands = numbered(op) if op.name == TOP_K else list(op.operands)
        order = order_of_largest(op) if op.name == TOP_K else order_of_sort(op)
        if order is None or exchanges * (order.operations + 2 * len(operands)) > _MOST_OPERATIONS:
            return
        replace_op(op, _sorted(operands, axis, passes, order))


def _sorted(operands: Sequence[Value], axis: int, passes: int, order: SortOrder) -> list[Value]:
    """Return the first columns of sorted operands along a dimension, one for each of the ``passes``."""
    size = shape_of(operands[0])[axis]
    columns = [[_column(operand, axis, number) for operand in operands] for number in range(size)]
    for first in range(passes):
        for number in reversed(range(first, size - 1)):
            before, after = columns[number], columns[number + 1]
            is_exchanged = order.is_before(*([each[key] for key in order.keys] for each in (after, before)))
            pairs = list(zip(before, after, strict=True))
            columns[number] = [hlo.select(is_exchanged, b, a) for a, b in pairs]
            columns[number + 1] = [hlo.select(is_exchanged, a, b) for a, b in pairs]
    return [_joined([column[number] for column in columns[:passes]], axis) for number in range(len(operands))]


def _column(value: Value, axis: int, number: int) -> Value:
    low, high = [0] * len(shape_of(value)), list(shape_of(value))
    low[axis], high[axis] = number, number + 1
    return hlo.slice(value, low, high, [1] * len(low))


def _joined(columns: Sequence[Value], axis: int) -> Value:
    return columns[0] if len(columns) == 1 else hlo.concatenate(columns, axis)
