"""Facts about constants."""

from typing import Any

from xgpu import ir
from xgpu.structure import element_of, is_argument, producer


def is_number(value: ir.Value, number: int) -> bool:
    """Whether a scalar is known to be ``number``, 0 or 1; a negative zero counts as zero."""
    if is_argument(value):
        return False
    op = producer(value)
    if op.name == "stablehlo.convert":
        return is_number(op.operands[0], number)
    if op.name == "stablehlo.complex":
        return is_number(op.operands[0], number) and is_number(op.operands[1], 0)
    if op.name != "stablehlo.constant":
        return False
    found: Any = splat_of(op)
    return found is not None and bool(found.value == number)


def splat_of(op: ir.Operation) -> ir.Attribute | None:
    """Return the number that each element of a constant is.

    None if they differ, or cannot be read: the bindings have no complex ones, and none of resources.
    """
    if isinstance(element_of(op.results[0]), ir.ComplexType):
        return None
    dense = op.attributes["value"]
    return dense.get_splat_value() if isinstance(dense, ir.DenseElementsAttr) and dense.is_splat else None
