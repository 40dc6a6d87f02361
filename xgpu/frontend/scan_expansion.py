"""Scans in operations of StableHLO, for XLA: windows from the first element on, or halves, recursively."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.hlo.scan_op import binary_function, combine_elements, identity_of
from xgpu.hlo.stablehlo_builder import (
    Value,
    broadcast,
    element_of,
    fill_region,
    hlo,
    inline_block,
    reshape,
    shape_of,
    splat,
    tensor,
)


def expand_scan(op: ir.Operation) -> list[Value]:
    """Return the results of an `xgpu.scan`, as operations of StableHLO at the current insertion point.

    What one function with an identity combines is one window for each element, as JAX writes it and XLA knows it.
    Others are scans of what pairs of neighbours combine to, and one more combination for every other element.
    """
    dimension = ir.IntegerAttr(op.attributes["dimension"]).value
    is_reverse = ir.BoolAttr(op.attributes["reverse"]).value
    chunk = ir.IntegerAttr(op.attributes["chunk"]).value
    values, block = list(op.operands)[: len(op.results)], op.regions[0].blocks[0]
    shape = shape_of(values[0])
    if 0 in shape:
        return values
    starts = [_of_elements(value, op, dimension, is_reverse, chunk) for value in list(op.operands)[len(values) :]]
    if is_reverse:
        values = [hlo.reverse(value, [dimension]) for value in values]
    size, chunk = shape[dimension], min(chunk, shape[dimension])
    whole = -(-size // chunk) * chunk
    # What follows the last element, in the last chunk, is not part of the result.
    values = [_lengthened(value, dimension, whole) for value in values]
    apart = [*shape[:dimension], whole // chunk, chunk, *shape[dimension + 1 :]]
    values = _scan([reshape(value, apart) for value in values], dimension + 1, block)
    lengthened = [*shape[:dimension], whole, *shape[dimension + 1 :]]
    values = [_part(reshape(value, lengthened), dimension, 0, size) for value in values]
    if is_reverse:
        values = [hlo.reverse(value, [dimension]) for value in values]
    if not starts:
        return values
    position = hlo.iota(tensor(shape, "i64"), dimension)
    edge = splat(size - chunk - 1 if is_reverse else chunk, tensor(shape, "i64"))
    is_later = hlo.compare(position, edge, hlo.ComparisonDirectionAttr.get("LE" if is_reverse else "GE"))
    combined = combine_elements(block, [*starts, *values])
    return [hlo.select(is_later, *pair) for pair in zip(combined, values, strict=True)]


def _of_elements(starts: Value, op: ir.Operation, dimension: int, is_reverse: bool, chunk: int) -> Value:
    """Return for each element the initial value of its chunk, any number for those of the first."""
    shape, count = shape_of(op.results[0]), shape_of(starts)[dimension] + 1
    rank, whole = len(shape), count * chunk
    edge = _part(starts, dimension, *((count - 2, count - 1) if is_reverse else (0, 1)))
    shifted = hlo.concatenate([starts, edge] if is_reverse else [edge, starts], dimension)
    apart = [*shape[:dimension], count, chunk, *shape[dimension + 1 :]]
    wide = broadcast(shifted, apart, [i for i in range(rank + 1) if i != dimension + 1])
    wide = reshape(wide, [*shape[:dimension], whole, *shape[dimension + 1 :]])
    first = whole - shape[dimension] if is_reverse else 0
    return _part(wide, dimension, first, first + shape[dimension])


def _lengthened(value: Value, dimension: int, size: int) -> Value:
    shape = shape_of(value)
    if shape[dimension] == size:
        return value
    shape[dimension] = size - shape[dimension]
    rest = hlo.broadcast_in_dim(tensor(shape, element_of(value)), _first(value), [])
    return hlo.concatenate([value, rest], dimension)


def _first(value: Value) -> Value:
    ones = [1] * len(shape_of(value))
    return reshape(hlo.slice(value, [0] * len(ones), ones, ones), [])


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
