"""Finds the number that all elements of a value are, where it is known when the program is compiled."""

import numpy as np

from xgpu import ir
from xgpu.analysis.constants import elementwise
from xgpu.analysis.constants.arrays import Array, array_of, is_readable
from xgpu.hlo.operations import OPERATIONS
from xgpu.structure import defining_op

_MOST_STEPS = 32
"""Operations between a constant and a value, at most."""
_MOVES = frozenset(f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "transpose", "slice", "reverse"))
"""Operations whose results have elements of their first operand alone."""


class EqualElements:
    """Finds such numbers on demand; no operation may change while it is asked."""

    def __init__(self) -> None:
        self._numbers: dict[ir.Operation, Array | None] = {}

    def number(self, value: ir.Value, steps: int = _MOST_STEPS) -> Array | None:
        """Return an array without dimensions that all elements of ``value`` equal; None if there is none known.

        Large arrays take no longer than small ones. What is further from constants than ``steps`` is not followed.
        """
        op = defining_op(value)
        if op is None or not steps or not is_readable(value.type):
            return None
        if op not in self._numbers:
            self._numbers[op] = self._found(op, steps)
        return self._numbers[op]

    def _found(self, op: ir.Operation, steps: int) -> Array | None:
        if op.name == "stablehlo.constant":
            attribute = op.attributes["value"]
            is_one = isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
            array = array_of(op) if is_one else None
            return None if array is None or not array.size else np.asarray(array.flat[0])
        if op.name in _MOVES:
            return self.number(op.operands[0], steps - 1)
        is_elementwise = op.name in OPERATIONS and OPERATIONS[op.name].kind == "elementwise" and not len(op.regions)
        if not is_elementwise:
            return None
        numbers: list[Array] = []
        for operand in op.operands:
            if (number := self.number(operand, steps - 1)) is None:
                return None
            numbers.append(number)
        found = elementwise.computed(op, numbers) if numbers and elementwise.is_exact(op) else None
        return None if found is None else np.asarray(found)
