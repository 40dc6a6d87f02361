"""Logits that are another value times a number, which can be left to the exponential."""

import math
from dataclasses import dataclass

from xgpu import ir
from xgpu.analysis.attention.attention import Softmax, behind, number_of, then
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import defining_op, dtype_of

_MOVES = frozenset(("stablehlo.reshape", "stablehlo.transpose", "stablehlo.broadcast_in_dim"))
_LEAST = -1e30
"""Logits of hidden keys from which on they are like any other number that is far below all others."""
_LEAST_FACTOR = 2.0**-20
"""Of the factors that are left; the largest is 1, with which no product is infinite of a value that is not."""
HIDDEN = -(2.0**100)
"""What stands for these: a power of two, whose product with any number is exact."""


@dataclass(frozen=True)
class Factored:
    """Logits that are ``factor``, a positive number, times a ``value``, where a ``condition`` holds; else ``number``.

    The maps lead from the weights' indices. There may be no condition. ``hidden`` is what stands for the number before
    the multiplication.
    """

    value: ir.Value
    map: IndexingMap
    factor: float
    condition: tuple[ir.Value, IndexingMap] | None
    hidden: float
    number: float


def factored(softmax: Softmax) -> Factored | None:
    """Return the factor of logits of f32; None if they have none that can be left to the exponential."""
    value, map_ = behind((softmax.logits, softmax.map), _MOVES)
    condition, hidden, hiding = None, -math.inf, -math.inf
    op = defining_op(value)
    if op is not None and op.name == "stablehlo.select":
        number = number_of(op.operands[2])
        if number is None or number > _LEAST:
            return None
        hidden, hiding = number if math.isinf(number) else HIDDEN, number
        first, second, _ = (then(map_, each.map) for each in accesses(op))
        condition = op.operands[0], first
        value, map_ = behind((op.operands[1], second), _MOVES)
        op = defining_op(value)
    if op is None or op.name != "stablehlo.multiply" or dtype_of(value).hlo != "f32":
        return None
    for number_, other in ((0, 1), (1, 0)):
        factor = number_of(op.operands[number_])
        if factor is not None and _LEAST_FACTOR <= factor <= 1:
            place = then(map_, accesses(op)[other].map)
            return Factored(op.operands[other], place, factor, condition, hidden, hiding)
    return None
