"""Logits that are another value times a number, or divided by one, which can be left to the exponential."""

import math

import numpy as np

from xgpu import ir
from xgpu.analysis.attention.places import behind, number_of, then
from xgpu.analysis.attention.softmax import Softmax
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of

_MOVES = frozenset(("stablehlo.reshape", "stablehlo.transpose", "stablehlo.broadcast_in_dim"))
_PRODUCTS = {"stablehlo.multiply": ((0, 1), (1, 0)), "stablehlo.divide": ((1, 0),)}
"""Operations that multiply or divide: which operand may be the number, and which is then the value."""
_LEAST_FACTOR = 2.0**-20
_MOST_FACTOR = 2.0**20
"""Bounds of the factors that are left: their inverses and products with others are normal numbers."""
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Factored:
    """Logits that are a ``value`` times ``number``, or divided by it, where a ``condition`` holds; else ``hiding``.

    The maps lead from the weights' indices. There may be no condition, and the number may be 1.
    """

    value: ir.Value
    map: IndexingMap
    number: float = 1.0
    divides: bool = False
    condition: tuple[ir.Value, IndexingMap] | None = None
    hiding: float = -math.inf

    @property
    def factor(self) -> float:
        """The factor that values are multiplied by, a positive number."""
        return 1 / self.number if self.divides else self.number

    @property
    def hidden(self) -> float:
        """The logit of hidden keys before the multiplication: the nearest number that is finite after it, if it is so.

        Where that is another logit, no other values are beyond it but infinite ones.
        """
        if math.isinf(self.hiding):
            return self.hiding
        nearest = np.float32(max(-_LARGEST, min(self.hiding / self.factor, _LARGEST)))
        with np.errstate(over="ignore"):
            made = nearest / np.float32(self.number) if self.divides else nearest * np.float32(self.number)
        return float(nearest if np.isfinite(made) else np.nextafter(nearest, np.float32(0)))


def factored(softmax: Softmax) -> Factored:
    """Return the factor of logits that is left to the exponential: 1 if there is none that can be."""
    whole = Factored(softmax.logits, softmax.map)
    value, map_ = behind((softmax.logits, softmax.map), _MOVES)
    condition, hiding = None, -math.inf
    op = defining_op(value)
    if op is not None and op.name == "stablehlo.select":
        number = number_of(op.operands[2])
        if number is None or math.isnan(number):
            return whole
        hiding = number
        first, second, _ = (then(map_, each.map) for each in accesses(op))
        condition = op.operands[0], first
        value, map_ = behind((op.operands[1], second), _MOVES)
        op = defining_op(value)
    if op is None or op.name not in _PRODUCTS or dtype_of(value).hlo != "f32":
        return whole
    divides = op.name == "stablehlo.divide"
    for position, other in _PRODUCTS[op.name]:
        number = number_of(op.operands[position])
        if number is not None and _LEAST_FACTOR <= number <= _MOST_FACTOR:
            place = then(map_, accesses(op)[other].map)
            return Factored(op.operands[other], place, number, divides, condition, hiding)
    return whole
