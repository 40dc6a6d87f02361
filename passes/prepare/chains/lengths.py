"""Values that take many operations to compute: where on the way a chain had better read them from memory."""

import math
from collections.abc import Callable
from dataclasses import field

from xgpu import ir
from xgpu.emit.families.attention.writing import MOVES
from xgpu.indexing.access import shape_of
from xgpu.records import dataclass
from xgpu.structure import block_of, defining_op, dtype_of, made

_MOST = 32
"""Operations by which a value of a chain is computed that are better than reading it."""


@dataclass(frozen=True)
class Lengths:
    """Counts the operations of which values are made that a chain ``takes``, up to those that are too many.

    The bits of a random number take some hundred operations, and the condition that a dropout makes of them a byte.
    """

    takes: Callable[[ir.Operation], bool]
    _slices: dict[ir.Value, frozenset[ir.Operation] | None] = field(default_factory=dict)

    def is_long(self, value: ir.Value) -> bool:
        """Whether a value takes many operations to compute."""
        return self._is_long(value, block_of(value))

    def narrowest(self, value: ir.Value) -> ir.Value:
        """Return the value of the fewest bytes among a long one and those that alone make it so long."""
        best = value
        while (op := defining_op(value)) is not None:
            long = [operand for operand in dict.fromkeys(op.operands) if self.is_long(operand)]
            if len(long) != 1:
                return best
            (value,) = long
            best = value if _bytes(value) < _bytes(best) else best
        return best

    def _is_long(self, value: ir.Value, block: ir.Block) -> bool:
        def operands(value: ir.Value) -> list[ir.Value]:
            op = defining_op(value)
            return list(op.operands) if op is not None and op.block == block and self.takes(op) else []

        def together(value: ir.Value, parts: list[frozenset[ir.Operation] | None]) -> frozenset[ir.Operation] | None:
            op = defining_op(value)
            known = [each for each in parts if each is not None]
            if op is None or not parts or len(known) < len(parts):
                return None if len(known) < len(parts) else frozenset()
            own = frozenset[ir.Operation]() if op.name in MOVES else frozenset((op,))
            found = own.union(*known)
            return found if len(found) <= _MOST else None

        return made(value, self._slices, operands, together) is None


def _bytes(value: ir.Value) -> int:
    return math.prod(shape_of(value)) * dtype_of(value).storage_bits // 8
