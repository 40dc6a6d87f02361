"""The pass `unstack-reductions`."""

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.hlo.scan_op import ELEMENTWISE, combine_elements, is_elementwise, uniform
from xgpu.hlo.stablehlo_builder import broadcast, hlo, reshape, shape_of, tensor
from xgpu.indexing.access import integer, integers
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import attributes_of, element_of, is_argument, producer, replace_op

_CONCATENATE, _SLICE = "stablehlo.concatenate", "stablehlo.slice"
_MOST_BETWEEN = 32
"""Values that are looked at between a reduction and arrays that are stacked."""
_MOST_MADE = 1024
"""Operations that are made for all arrays: those between are made for each, and so is the reduction's function."""


@dataclass(frozen=True)
class UnstackReductions(BlockRewrite):
    """Rewrites a reduction over a dimension along which arrays were stacked as an elementwise function of the arrays.

    Programs write the largest of several shifted arrays so, or the mean of several models. A kernel of the reduction
    would have to find the array of each element, and could not be fused; XLA takes such reductions apart too. So it is
    where some of the arrays are taken of those that were stacked: the middle ones of a sorted row, whose mean is made.
    Elementwise operations on the stacked array are applied to each array, once for all reductions that need them;
    reductions that would become too many operations stay. Needs: nothing.

    ```mlir
    %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
    %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum across dimensions = [1] ...
    ```
    becomes
    ```mlir
    %0 = stablehlo.reshape %x : (tensor<8x1xf32>) -> tensor<8xf32>
    %1 = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<8xf32>
    %3 = stablehlo.reshape %y : (tensor<8x1xf32>) -> tensor<8xf32>
    %4 = stablehlo.maximum %2, %3 : tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "unstack-reductions"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((REDUCE,))

    def rewrite_block(self, block: ir.Block) -> None:
        """Replace the reductions of a block of which one of the dimensions is one along which arrays were stacked."""
        parts = dict[int, _Parts]()
        for op in operations_of(block, self.OPERATIONS):
            with ir.InsertionPoint(op), op.location:
                _rewrite(op, parts)


def _rewrite(op: ir.Operation, parts: "dict[int, _Parts]") -> None:
    """Replace a reduction, if arrays were stacked; ``parts`` has those that reductions before it needed, by axis."""
    count, dimensions = len(op.results), integers(op, "dimensions")
    inputs = list(op.operands)[:count]
    function = op.regions[0].blocks[0]
    if 0 in shape_of(inputs[0]) or not is_elementwise(function):
        return
    for axis in dimensions:
        most = _MOST_MADE // shape_of(inputs[0])[axis] - len(function.operations)
        if between := _between(inputs, axis, most):
            known = parts.setdefault(axis, _Parts(axis))
            known.stacked |= between
            replace_op(op, _unstacked(op, known))
            return


def _between(values: Iterable[ir.Value], axis: int, most: int) -> set[ir.Value]:
    """Return the stacked arrays that ``values`` are computed from element by element, and all values on the way.

    None, if they are more than ``most``.
    """
    pending, found = list(values), set[ir.Value]()
    while pending:
        each = pending.pop()
        if each not in found and _is_stacked(each, axis):
            found.add(each)
            if len(found) > most:
                return set()
            if not _stacks(op := producer(each), axis):
                pending += op.operands
    return found


def _is_stacked(value: ir.Value, axis: int) -> bool:
    """Whether ``value`` is computed element by element from arrays that are stacked along a dimension."""
    pending, seen = [value], {value}
    while pending and len(seen) <= _MOST_BETWEEN:
        each = pending.pop()
        if is_argument(each):
            continue
        op = producer(each)
        if _stacks(op, axis):
            return True
        if _works_on_elements(op):
            pending += [operand for operand in op.operands if operand not in seen]
            seen.update(op.operands)
    return False


def _stacks(op: ir.Operation, axis: int) -> Sequence[ir.Value]:
    """Return the arrays that ``op`` stacks along a dimension, or of which it takes some; none for other operations."""
    if op.name == _SLICE and not is_argument(op.operands[0]):
        starts, limits, strides = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
        shape = shape_of(op.operands[0])
        is_whole = all(shape_of(op.results[0])[i] == size for i, size in enumerate(shape) if i != axis)
        stacked = _stacks(producer(op.operands[0]), axis) if is_whole else ()
        return stacked[starts[axis] : limits[axis] : strides[axis]]
    if op.name != _CONCATENATE or integer(op, "dimension") != axis:
        return ()
    return list(op.operands) if all(shape_of(operand)[axis] == 1 for operand in op.operands) else ()


def _works_on_elements(op: ir.Operation) -> bool:
    shapes = [shape_of(value) for value in (*op.operands, *op.results)]
    return op.name in ELEMENTWISE and all(shape == shapes[0] for shape in shapes)


def _unstacked(op: ir.Operation, parts: "_Parts") -> list[ir.Value]:
    axis, count, block = parts.axis, len(op.results), op.regions[0].blocks[0]
    inputs, starts = list(op.operands)[:count], list(op.operands)[count:]
    shape = shape_of(inputs[0])
    left = [size for dimension, size in enumerate(shape) if dimension != axis]
    dimensions = [each - (each > axis) for each in integers(op, "dimensions") if each != axis]
    total = [] if dimensions else [broadcast(start, left) for start in starts]
    for number in range(shape[axis]):
        elements = [reshape(parts.of(value, number), left) for value in inputs]
        total = combine_elements(block, [*total, *elements]) if total else elements
    if not dimensions:
        return total
    new = op.clone()
    for position, value in enumerate(total):
        new.operands[position] = value
    new.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(dimensions)
    return list(new.results)


@dataclass
class _Parts:
    """The arrays at each index of the dimension ``axis``, whose size is left as 1; some are ``stacked`` there."""

    axis: int
    stacked: set[ir.Value] = field(default_factory=set)
    """Those, and what is computed from them element by element."""
    _made: dict[tuple[ir.Value, int], ir.Value] = field(default_factory=dict)

    def of(self, value: ir.Value, number: int) -> ir.Value:
        """Return the part of ``value`` at an index."""
        if (value, number) not in self._made:
            self._made[value, number] = self._make(value, number)
        return self._made[value, number]

    def _make(self, value: ir.Value, number: int) -> ir.Value:
        low, high = [0] * len(shape_of(value)), shape_of(value)
        low[self.axis], high[self.axis] = number, number + 1
        shape = [end - begin for begin, end in zip(low, high, strict=True)]
        if value in self.stacked:
            op = producer(value)
            if stacked := _stacks(op, self.axis):
                return stacked[number]
            operands = [self.of(operand, number) for operand in op.operands]
            types = [tensor(shape, element_of(value))]
            return ir.Operation.create(op.name, types, operands, attributes_of(op), loc=op.location).results[0]
        if not is_argument(value) and (element := uniform(producer(value))) is not None:
            return hlo.constant(ir.DenseElementsAttr.get_splat(tensor(shape, element_of(value)), element))
        return hlo.slice(value, low, high, [1] * len(shape))
