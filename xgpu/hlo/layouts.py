"""The order that HLO's layouts give the dimensions of an array in memory."""

from collections.abc import Sequence

from xgpu import ir


def layout_of(attribute: ir.Attribute) -> list[int]:
    """Return the dimensions from minor to major that a layout attribute (``dense<[1, 0]>``) lists."""
    elements = ir.DenseIntElementsAttr(attribute)
    return [int(elements[index]) for index in range(len(elements))]


def is_row_major(minor_to_major: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether an HLO layout lays an array of this shape out in memory as row-major order does.

    Dimensions of size 1 have no order, and an array with no elements has no layout.
    """
    ordered = [dimension for dimension in reversed(minor_to_major) if shape[dimension] != 1]
    return 0 in shape or ordered == sorted(ordered)
