"""Scans in operations of StableHLO, for XLA: windows from the first element on, or halves, recursively."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.hlo.scan_op import binary_function, combine_elements, identity_of
from xgpu.hlo.stablehlo_builder import Value, fill_region, hlo, inline_block, reshape, shape_of, tensor
from xgpu.structure import element_of


def expand_scan(op: ir.Operation) -> list[Value]:
    """Return the results of an `xgpu.scan`, as operations of StableHLO at the current insertion point.

    What one function with an identity combines is one window for each element, as JAX writes it and XLA knows it.
    Others are scans of what pairs of neighbours combine to, and one more combination for every other element.
    """
    dimension = ir.IntegerAttr(op.attributes["dimension"]).value
    is_reverse = ir.BoolAttr(op.attributes["reverse"]).value
    values, block = list(op.operands), op.regions[0].blocks[0]
    if 0 in shape_of(values[0]):
        return values
    if is_reverse:
        values = [hlo.reverse(value, [dimension]) for value in values]
    values = _scan(values, dimension, block)
    return [hlo.reverse(value, [dimension]) for value in values] if is_reverse else values


def _scan(values: Sequence[Value], dimension: int, block: ir.Block) -> list[Value]:
    if (function := binary_function(block)) is not None:
        return [_windows(values[0], dimension, block, function)]
    size = shape_of(values[0])[dimension]
    if size == 1:
        return list(values)
    firsts = [_part(value, dimension, 0, size - 1, 2) for value in values]
    seconds = [_part(value, dimension, 1, size, 2) for value in values]
    # Of elements 1, 3, ...; what those before the others are combined to is among them.
    ends = _scan(combine_elements(block, [*firsts, *seconds]), dimension, block)
    starts = [_part(value, dimension, 0, 1) for value in values]
    if size > 2:
        count = (size - 1) // 2
        before = [_part(value, dimension, 0, count) for value in ends]
        middle = combine_elements(block, [*before, *(_part(value, dimension, 2, size, 2) for value in values)])
        starts = [hlo.concatenate(pair, dimension) for pair in zip(starts, middle, strict=True)]
    return [_interleaved(*pair, dimension) for pair in zip(starts, ends, strict=True)]


def _windows(value: Value, dimension: int, block: ir.Block, function: str) -> Value:
    """Return the windows of all elements up to each."""
    shape = shape_of(value)
    size = shape[dimension]
    integer = ir.IntegerType.get_signless(64)
    before = [size - 1 if i == dimension else 0 for i in range(len(shape))]
    numbers = [ir.IntegerAttr.get(integer, number) for low in before for number in (low, 0)]
    padding = ir.DenseElementsAttr.get(numbers, tensor([len(shape), 2], integer))
    lengths = [size if i == dimension else 1 for i in range(len(shape))]
    start = identity_of(function, element_of(value))
    op = hlo.ReduceWindowOp([value.type], [value], [start], lengths, padding=padding).operation
    scalar = tensor([], element_of(value))
    fill_region(op, [scalar, scalar], lambda values: inline_block(block, values))
    return op.results[0]


def _part(value: Value, dimension: int, start: int, end: int, step: int = 1) -> Value:
    """Return every ``step``-th slice along a dimension, from ``start`` until before ``end``."""
    shape = shape_of(value)
    if (start, end, step) == (0, shape[dimension], 1):
        return value
    starts, ends, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[dimension], ends[dimension], steps[dimension] = start, end, step
    return hlo.slice(value, starts, ends, steps)


def _interleaved(starts: Value, ends: Value, dimension: int) -> Value:
    """Return the slices of two arrays interleaved, the first one's first; it may have one more."""
    count, pairs = shape_of(starts)[dimension], shape_of(ends)[dimension]
    shape = shape_of(ends)
    apart = [*shape[: dimension + 1], 1, *shape[dimension + 1 :]]
    first = _part(starts, dimension, 0, pairs)
    joined = hlo.concatenate([reshape(first, apart), reshape(ends, apart)], dimension + 1)
    joined = reshape(joined, [*shape[:dimension], 2 * pairs, *shape[dimension + 1 :]])
    if count == pairs:
        return joined
    return hlo.concatenate([joined, _part(starts, dimension, pairs, count)], dimension)
