"""The elements of few integers that are known, such as those that say where a slice begins."""

import math

from xgpu import ir
from xgpu.analysis.constants.arrays import is_readable
from xgpu.indexing.access import shape_of
from xgpu.structure import is_argument, producer

_JOINING = ("stablehlo.concatenate", "stablehlo.reshape", "stablehlo.broadcast_in_dim")


def known_integers(value: ir.Value) -> list[int] | None:
    """Return the elements of an array of integers, a vector or a scalar, that is known; else None."""
    if is_argument(value):
        return None
    op = producer(value)
    if op.name == "stablehlo.constant":
        if not is_readable(value.type):
            return None
        elements = ir.DenseIntElementsAttr(op.attributes["value"])
        return [int(elements[index]) for index in range(len(elements))]
    if op.name not in _JOINING:
        return None
    parts = [known_integers(operand) for operand in op.operands]
    numbers = [number for part in parts for number in part or ()]
    if None in parts:
        return None
    if op.name == "stablehlo.concatenate":
        return numbers if len(shape_of(value)) == 1 else None
    count = math.prod(shape_of(value))
    if len(numbers) == 1:
        return numbers * count
    return numbers if len(numbers) == count else None
