"""Evaluates the operations of a block that read constants alone: finds them, and makes their arrays."""

import math
from collections.abc import Sequence

import numpy as np

from xgpu import ir
from xgpu.analysis.constants import combining, elementwise, movement, sorting
from xgpu.analysis.constants.arrays import Array, array_of, dtype_of_array, is_readable
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import shape_of
from xgpu.structure import defining_op, made

MOST_ELEMENTS = 1 << 20
"""Elements of the largest array that is evaluated."""
MOST_WORK = 1 << 26
"""Elements of all arrays that are evaluated for a block: half a second."""
_CONSTANT, _IOTA, _SORT = (f"stablehlo.{name}" for name in ("constant", "iota", "sort"))
_MOVES = ("indexing", "piecewise")


def is_known(op: ir.Operation) -> bool:
    """Whether the results of ``op`` are known to the last bit if its operands are, and are not too large."""
    values = (*op.operands, *op.results)
    if not values or not all(is_readable(value.type) for value in values):
        return False
    if min(map(_size, values)) == 0 or max(map(_size, op.results), default=0) > MOST_ELEMENTS:
        return False
    if op.name == _SORT:
        return sorting.is_exact(op)
    if op.name in combining.NAMES:
        return combining.is_exact(op)
    if op.name in (_CONSTANT, _IOTA):
        return True
    kind = OPERATIONS[op.name].kind if op.name in OPERATIONS else None
    if kind == "elementwise" and not len(op.regions):
        return elementwise.is_exact(op)
    return kind in _MOVES


def _size(value: ir.Value) -> int:
    return math.prod(shape_of(value))


class Evaluator:
    """Evaluates values on demand, up to `MOST_WORK`; ``known`` are the operations that were found to be `is_known`.

    These are looked up, so none may change before all is evaluated.
    """

    def __init__(self, known: set[ir.Operation]):
        self._known = known
        self._arrays: dict[ir.Operation, Sequence[Array | None]] = {}
        self._left = MOST_WORK

    def array(self, value: ir.Value) -> Array | None:
        """Return the elements of ``value``; None if an operation refuses, or all that would be too much work."""
        if (op := self._maker(value)) is None:
            return None
        return made(op, self._arrays, self._makers, self._results)[ir.OpResult(value).result_number]

    def _maker(self, value: ir.Value) -> ir.Operation | None:
        """Return the operation that makes ``value``, if it is known."""
        op = defining_op(value)
        return op if op in self._known else None

    def _makers(self, op: ir.Operation) -> list[ir.Operation]:
        return [maker for operand in op.operands if (maker := self._maker(operand)) is not None]

    def _results(self, op: ir.Operation, _: object) -> Sequence[Array | None]:
        operands = [array for operand in op.operands if (array := self.array(operand)) is not None]
        self._left -= self._work(op)
        if self._left < 0 or len(operands) < len(op.operands):
            return [None] * len(op.results)
        if op.name == _SORT:
            return sorting.sorted_arrays(op, operands) or [None] * len(op.results)
        return [self._result(op, operands)]

    def _work(self, op: ir.Operation) -> int:
        elements = max(map(_size, (*op.operands, *op.results)))
        if op.name == _SORT:
            return sorting.work_of(op, elements)
        return 0 if op.name in (_CONSTANT, _IOTA) else elements

    def _result(self, op: ir.Operation, operands: list[Array]) -> Array | None:
        if op.name == _CONSTANT:
            return array_of(op)
        result = op.results[0]
        if op.name == _IOTA:
            return movement.iota(op, dtype_of_array(result.type).numpy)
        if op.name in combining.NAMES:
            return combining.combined(op, operands)
        if OPERATIONS[op.name].kind in _MOVES:
            return movement.moved(op, operands)
        found = elementwise.computed(op, operands)
        return None if found is None else np.broadcast_to(found, shape_of(result))
