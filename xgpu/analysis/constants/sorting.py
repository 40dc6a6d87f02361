"""Sorts of NumPy arrays by a comparison that is a region."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from xgpu import ir
from xgpu.analysis.constants import elementwise
from xgpu.analysis.constants.arrays import Array, array_of, dtype_of_array, is_readable
from xgpu.hlo.operations import direction_of
from xgpu.indexing.access import integer
from xgpu.structure import is_argument, producer

_CONSTANT = "stablehlo.constant"
Before = Callable[[Array, Array], Array]
"""Whether the elements of rows at some positions come before those at others."""


def is_exact(op: ir.Operation) -> bool:
    """Whether `sorted_arrays` knows a ``stablehlo.sort``, of arrays of readable types."""
    *body, _ = (each.operation for each in op.regions[0].blocks[0].operations)
    inside = {each.block for each in body} | {op.regions[0].blocks[0]}
    for each in body:
        if not all(is_readable(value.type) for value in (*each.operands, *each.results)):
            return False
        if not all(is_argument(value) or producer(value).block in inside for value in each.operands):
            return False
        if each.name != _CONSTANT and (len(each.regions) or not elementwise.is_exact(each)):
            return False
    return True


def work_of(op: ir.Operation, elements: int) -> int:
    """Return how many elements are looked at."""
    return elements * max(1, math.ceil(math.log2(max(2, elements))) ** 2 // 2)


def sorted_arrays(op: ir.Operation, operands: Sequence[Array]) -> list[Array] | None:
    """Return the results of a sort, stable in any case; None if its comparison is not known for these elements."""
    along = integer(op, "dimension")
    shape = operands[0].shape
    rows = [np.moveaxis(array, along, -1).reshape(-1, shape[along]) for array in operands]
    if (key := _key(op)) is not None:
        order = np.argsort(rows[key], axis=-1, kind="stable")
    else:
        found = _merge_sorted(op, rows)
        if found is None:
            return None
        order = found
    moved = np.moveaxis(operands[0], along, -1).shape
    return [np.moveaxis(np.take_along_axis(row, order, -1).reshape(moved), -1, along) for row in rows]


def _key(op: ir.Operation) -> int | None:
    """Return the array of integers whose order alone decides; None for another comparison."""
    block = op.regions[0].blocks[0]
    *body, end = (each.operation for each in block.operations)
    if len(body) != 1 or body[0].name != "stablehlo.compare" or end.operands[0] != body[0].results[0]:
        return None
    direction = direction_of(body[0])
    arguments = list(block.arguments)
    for key in range(len(arguments) // 2):
        if list(body[0].operands) == arguments[2 * key : 2 * key + 2] and direction == "LT":
            return key if dtype_of_array(op.operands[key].type).kind != "float" else None
    return None


def _merge_sorted(op: ir.Operation, rows: Sequence[Array]) -> Array | None:
    """Return the order of each row: neighbouring runs are merged, each element by a search in the other run."""
    block, length = op.regions[0].blocks[0], rows[0].shape[-1]
    order = np.broadcast_to(np.arange(length), rows[0].shape)
    width = 1
    while width < length:
        current = [np.take_along_axis(row, order, -1) for row in rows]

        def before(left: Array, right: Array, current: Sequence[Array] = current) -> Array | None:
            pairs = [np.take_along_axis(row, at, -1) for row in current for at in (left, right)]
            return _region(block, pairs)

        places = _merged_places(rows[0].shape, width, before)
        if places is None:
            return None
        merged = np.empty_like(places)
        np.put_along_axis(merged, places, order, -1)
        order, width = merged, 2 * width
    return order


def _merged_places(shape: tuple[int, ...], width: int, before: Callable[[Array, Array], Array | None]) -> Array | None:
    """Return where each element goes when runs of ``width`` are merged in pairs."""
    length = shape[-1]
    own = np.broadcast_to(np.arange(length), shape)
    start = own // width * width
    is_left = own // width % 2 == 0
    other = np.where(is_left, start + width, start - width)
    low, high = np.minimum(other, length), np.minimum(other + width, length)
    first = low
    while (low < high).any():
        middle = (low + high) // 2
        at = np.minimum(middle, length - 1)
        ahead, behind = before(at, own), before(own, at)
        if ahead is None or behind is None:
            return None
        # Of equal elements those of the left run come first.
        precedes = np.where(is_left, ahead, ~behind) & (low < high)
        low, high = np.where(precedes, middle + 1, low), np.where(precedes | (low >= high), high, middle)
    return np.where(is_left, start, first) + (own - start) + (low - first)


def _region(block: ir.Block, arguments: Sequence[Array]) -> Array | None:
    """Return what a region of elementwise operations makes of arrays in place of its scalars."""
    values: dict[ir.Value, Array] = dict(zip(block.arguments, arguments, strict=True))
    *body, end = (each.operation for each in block.operations)
    for op in body:
        if op.name == _CONSTANT:
            found = array_of(op)
        else:
            found = elementwise.computed(op, [values[operand] for operand in op.operands])
        if found is None:
            return None
        values[op.results[0]] = found
    return np.broadcast_to(values[end.operands[0]], arguments[0].shape)
