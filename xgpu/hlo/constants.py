"""Facts about constants."""

from typing import Any

from xgpu import ir
from xgpu.structure import is_argument, producer


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
    found = ir.DenseElementsAttr(op.attributes["value"])
    if not found.is_splat:
        return False
    splat_value: Any = found.get_splat_value()
    return bool(splat_value.value == number)
