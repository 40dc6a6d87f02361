"""Arrays that have no negative zero, so that a zero that is added to them changes nothing."""

import math
from collections.abc import Set
from typing import Any

from xgpu import ir
from xgpu.analysis.combiners import combiners
from xgpu.analysis.in_place import SCATTER
from xgpu.hlo.constants import splat_of
from xgpu.structure import dtype_of, is_argument, producer, terminator_of

_MOST = 256
"""Values that are looked at for one answer."""
_VIEWS = (
    "stablehlo.broadcast_in_dim",
    "stablehlo.dynamic_slice",
    "stablehlo.reshape",
    "stablehlo.reverse",
    "stablehlo.slice",
    "stablehlo.transpose",
)
_OF_ALL = ("stablehlo.complex", "stablehlo.concatenate", "stablehlo.pad")
_NEVER = ("stablehlo.abs", "stablehlo.exponential")
_WHILE = "stablehlo.while"


def has_no_negative_zero(value: ir.Value, known: Set[ir.Value] = frozenset()) -> bool:
    """Whether ``value`` is known to have no negative zero: no element, and no part of a complex one.

    A sum is one only of two of them, so what is only added up from zeros, in a loop too, has none. Of what is ``known``
    this was found before.
    """
    return _Search(known).holds(value)


def _is_added_to(op: ir.Operation) -> bool:
    """Whether ``op`` is a scatter that adds to its operand."""
    return op.name == SCATTER and len(op.results) == 1 and combiners(op)[0].function == "add"


class _Search:
    """The values that were looked at; states of loops are taken to have none while that is being shown of them."""

    def __init__(self, known: Set[ir.Value]) -> None:
        self._left = _MOST
        self._known = known
        self._assumed: set[ir.Value] = set()

    def holds(self, value: ir.Value) -> bool:
        """Whether ``value`` has no negative zero."""
        while self._left > 0:
            self._left -= 1
            if value in self._known or value in self._assumed or dtype_of(value).is_integer:
                return True
            if is_argument(value):
                return self._of_state(value)
            op = producer(value)
            if op.name not in _VIEWS and not _is_added_to(op):
                return self._of_result(op, value)
            value = op.operands[0]
        return False

    def _of_result(self, op: ir.Operation, value: ir.Value) -> bool:
        operands = list(op.operands)
        if op.name == "stablehlo.constant":
            splat: Any = splat_of(op)
            return splat is not None and (splat.value != 0 or math.copysign(1, splat.value) > 0)
        if op.name in _OF_ALL:
            return all(map(self.holds, operands))
        if op.name == "stablehlo.select":
            return all(map(self.holds, operands[1:]))
        if op.name == "stablehlo.add":
            return any(map(self.holds, operands))
        if op.name == "stablehlo.convert":
            return dtype_of(operands[0]).is_integer
        if op.name == _WHILE:
            return self._of_loop(op, next(i for i, each in enumerate(op.results) if each == value))
        return op.name in _NEVER and dtype_of(value).kind != "complex"

    def _of_state(self, value: ir.Value) -> bool:
        argument: Any = value
        loop = argument.owner.owner
        return loop is not None and loop.name == _WHILE and self._of_loop(loop.operation, argument.arg_number)

    def _of_loop(self, loop: ir.Operation, number: int) -> bool:
        states = [region.blocks[0].arguments[number] for region in loop.regions]
        self._assumed.update(states)
        body = loop.regions[1].blocks[0]
        found = self.holds(loop.operands[number]) and self.holds(terminator_of(body).operands[number])
        self._assumed.difference_update(states)
        return found
