"""The numbers of windows, one or a pair for each dimension: those of ``stablehlo.reduce_window`` and of its like."""

from collections.abc import Sequence

import numpy as np

from xgpu import ir
from xgpu.indexing.access import integers

_PADDING = "padding"


def window_numbers(op: ir.Operation, name: str, count: int) -> list[int]:
    """Return an attribute of one number for each of ``count`` dimensions, 1 where it is left out."""
    return integers(op, name) if name in op.attributes else [1] * count


def window_padding(op: ir.Operation, count: int) -> list[tuple[int, int]]:
    """Return how many positions there are before and after the elements of each of ``count`` dimensions."""
    if _PADDING not in op.attributes:
        return [(0, 0)] * count
    given = ir.DenseIntElementsAttr(op.attributes[_PADDING])
    return [(int(given[2 * number]), int(given[2 * number + 1])) for number in range(count)]


def take_window_dimensions(op: ir.Operation, dimensions: Sequence[int]) -> None:
    """Leave a ``stablehlo.reduce_window`` these dimensions of the window alone, in this order."""
    padding = window_padding(op, len(integers(op, "window_dimensions")))
    for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations"):
        if name in op.attributes:
            numbers = integers(op, name)
            op.attributes[name] = ir.DenseI64ArrayAttr.get([numbers[each] for each in dimensions])
    if _PADDING in op.attributes:
        pairs = np.array([padding[each] for each in dimensions], np.int64)
        op.attributes[_PADDING] = ir.DenseElementsAttr.get(pairs)
