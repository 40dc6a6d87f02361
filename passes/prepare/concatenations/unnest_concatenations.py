"""The pass `unnest-concatenations`."""

import math
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.hlo.stablehlo_builder import hlo, reshape, shape_of
from xgpu.indexing.access import integer
from xgpu.passes.framework.base import OperationRewrite
from xgpu.passes.support.index_ops import erase_unused
from xgpu.records import dataclass
from xgpu.structure import defining_op, is_shared, replace_op

_CONCATENATE = "stablehlo.concatenate"


@dataclass(frozen=True)
class UnnestConcatenations(OperationRewrite):
    """Makes one concatenation of those along neighbouring dimensions, as programs put matrices together.

    A row of the outer one is a run of the elements that lie one after the other in the inner one: rows are the parts
    of a concatenation along both dimensions as one. A kernel then looks for an element's part once, and computes each
    part by a loop of its own. Columns that are put beside each other, each made of single elements, are rows too. Only
    concatenations that nothing else uses, so that the program does not grow. Needs: nothing; run it after passes that
    look for what is concatenated along a dimension.

    ```mlir
    %0 = stablehlo.concatenate %a, %b, dim = 2 : (tensor<8x1x2xf32>, tensor<8x1x3xf32>) -> tensor<8x1x5xf32>
    %1 = stablehlo.concatenate %0, %c, dim = 1 : (tensor<8x1x5xf32>, tensor<8x2x5xf32>) -> tensor<8x3x5xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.reshape %a : (tensor<8x1x2xf32>) -> tensor<8x2xf32>
    %1 = stablehlo.reshape %b : (tensor<8x1x3xf32>) -> tensor<8x3xf32>
    %2 = stablehlo.reshape %c : (tensor<8x2x5xf32>) -> tensor<8x10xf32>
    %3 = stablehlo.concatenate %0, %1, %2, dim = 1 : (tensor<8x2xf32>, tensor<8x3xf32>, tensor<8x10xf32>) -> ...
    %4 = stablehlo.reshape %3 : (tensor<8x15xf32>) -> tensor<8x3x5xf32>
    ```
    """

    NAME: ClassVar[str] = "unnest-concatenations"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_CONCATENATE,))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a concatenation of concatenations."""
        shape = shape_of(op.results[0])
        found = None if 0 in shape else _rows(op) or _columns(op)
        if found is None:
            return
        axis, last, parts = found
        before, after = shape[:axis], shape[last + 1 :]
        rest = math.prod((*before, *after))
        values = [reshape(part, [*before, math.prod(shape_of(part)) // rest, *after]) for part in parts]
        behind = [each for value in op.operands for each in reversed(_chain(value, op.block))]
        replace_op(op, [reshape(hlo.concatenate(values, axis), shape)])
        erase_unused(behind)


Found = tuple[int, int, list[ir.Value]]
"""The first and the last of the dimensions that become one, and what is concatenated along it."""


def _rows(op: ir.Operation) -> Found | None:
    """Return what ``op``, whose parts are rows, concatenates along its dimension and those after it together."""
    axis, shape = integer(op, "dimension"), shape_of(op.results[0])
    run = math.prod(shape[axis + 1 :])
    nested = [_inner(value, op.block) if shape_of(value)[axis] == 1 else None for value in op.operands]
    rows = [each if each is not None and each.width * each.extent == run else None for each in nested]
    width = next((each.width for each in rows if each is not None), None)
    # All dimensions that one row is cut along become one with that of the rows; rows cut along others stay whole.
    last = next((each for each in range(axis + 1, len(shape)) if math.prod(shape[each + 1 :]) == width), None)
    if last is None:
        return None
    parts = list[ir.Value]()
    for value, row in zip(op.operands, rows, strict=True):
        parts += [value] if row is None or row.width != width else row.parts
    return axis, last, parts


def _columns(op: ir.Operation) -> Found | None:
    """Return the same if the parts are columns of single elements along the next dimension before: row by row."""
    axis, shape = integer(op, "dimension"), shape_of(op.results[0])
    first = next((each for each in reversed(range(axis)) if shape[each] > 1), None)
    if first is None:
        return None
    columns = list[list[ir.Value]]()
    for value in op.operands:
        column, width = _inner(value, op.block), math.prod(shape_of(value)[first + 1 :])
        if column is None or column.width != width or not column.extent == len(column.parts) == shape[first]:
            return None
        columns.append(column.parts)
    return first, axis, [part for row in zip(*columns, strict=True) for part in row]


@dataclass(frozen=True)
class _Inner:
    """A concatenation that another one uses, of any shape: its elements lie one after the other all the same."""

    parts: list[ir.Value]
    extent: int
    """Its size along the dimension of the concatenation."""
    width: int
    """The number of elements that lie one after the other at an index along that dimension."""


def _inner(value: ir.Value, block: ir.Block) -> _Inner | None:
    """Return the concatenation of ``block`` that ``value`` is, with another shape or not; None if it is none."""
    chain = _chain(value, block)
    if not chain or chain[-1].name != _CONCATENATE:
        return None
    axis, shape = integer(chain[-1], "dimension"), shape_of(chain[-1].results[0])
    parts = list(chain[-1].operands)
    if any(shape_of(part)[axis] == 0 for part in parts):
        return None
    return _Inner(parts, shape[axis], math.prod(shape[axis + 1 :]))


def _chain(value: ir.Value, block: ir.Block) -> list[ir.Operation]:
    """Return what gives ``value`` its shape, and the concatenation behind it: all that is of ``block``, and used once.

    What a loop reads from outside is made once, and stays there.
    """
    chain = list[ir.Operation]()
    op = defining_op(value)
    while op is not None and op.block == block and not is_shared(op.results[0]):
        if op.name != _CONCATENATE and not is_bitcast(op):
            break
        chain.append(op)
        if op.name == _CONCATENATE:
            break
        op = defining_op(op.operands[0])
    return chain
