"""Operands of matrix products that XLA makes of narrow elements as it multiplies, such as weights of 8 bits.

XLA's kernels read tiles of the narrow elements, and convert and scale these. So nothing stores the operand, if what
makes it is left to XLA.
"""

from collections.abc import Callable

from xgpu import ir
from xgpu.analysis.bitcasts import behind_bitcasts
from xgpu.costs.values import elements, is_immediate
from xgpu.fusion.fallback import PRODUCT, VIEWS, fallback_reason, is_cast_for
from xgpu.structure import behind, is_argument, is_shared, producer

_SCALING = frozenset(
    ("stablehlo.add", "stablehlo.multiply", "stablehlo.negate", "stablehlo.subtract", "stablehlo.transpose")
)
"""Operations that XLA computes in tiles. It stores what is reshaped, or converted twice, before the product."""
_MOST_ARRAYS = 3
"""Arrays of which an operand is made at most: XLA takes up to four."""
_MOST_VISITED = 32
"""Operations of which an operand is made at most."""
_LEAST_SPREAD = 8
"""Elements that share a scale at least."""


def is_in_memory(value: ir.Value) -> bool:
    """Whether XLA has an array in memory, whoever reads it: it is given, made by XLA, or a view of such an array."""
    source = behind(value, *VIEWS)
    return is_argument(source) or is_of_xla(producer(source))


def is_of_xla(op: ir.Operation) -> bool:
    """Whether XLA computes ``op``, and does not as part of what reads the result."""
    return op.name not in VIEWS and fallback_reason(op) is not None


def widening(value: ir.Value, is_stored: Callable[[ir.Value], bool] = is_in_memory) -> frozenset[ir.Operation]:
    """Return the operations that make ``value``, the operand of a product alone, of one narrow array.

    Beside that array, which ``is_stored``, they read only constants and scales that many elements share. The result is
    empty for any other operand.
    """
    found: set[ir.Operation] = set()
    pending, narrow, arrays = [value], 0, 0
    while pending:
        if narrow > 1 or arrays >= _MOST_ARRAYS or len(found) > _MOST_VISITED:
            return frozenset()
        each = pending.pop()
        if is_immediate(each):
            continue
        if is_argument(each) or is_shared(each):
            return frozenset()
        op = producer(each)
        if op.name == "stablehlo.broadcast_in_dim" and _LEAST_SPREAD * elements(op.operands[0]) <= elements(each):
            arrays += 1
        elif is_cast_for(op, PRODUCT) and is_stored(behind_bitcasts(op.operands[0])):
            narrow += 1
            found.add(op)
        elif op.name in _SCALING:
            found.add(op)
            pending += op.operands
        else:
            return frozenset()
    return frozenset(found) if narrow == 1 and arrays < _MOST_ARRAYS else frozenset()
