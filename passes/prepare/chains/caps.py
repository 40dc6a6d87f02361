"""Caps of logits in chains: functions whose errors count beside 1, not beside a small result."""

from collections.abc import Iterable

from xgpu import ir
from xgpu.analysis.attention.attention import number_of
from xgpu.structure import defining_op, dtype_of, users_of

_TANH, _MULTIPLY, _DIVIDE = "stablehlo.tanh", "stablehlo.multiply", "stablehlo.divide"
_MOST_CAP = 64.0
"""The largest cap of which errors of 2^-21 are of the order of logits' own, 2^-15, far below what weights are rounded
to."""


def caps(operations: Iterable[ir.Operation]) -> set[ir.Operation]:
    """Return the hyperbolic tangents by which logits of f32 are capped, and the divisions that only they read."""
    found = set[ir.Operation]()
    for op in operations:
        if op.name != _TANH or dtype_of(op.results[0]).hlo != "f32" or not _is_cap(op):
            continue
        found.add(op)
        made = defining_op(op.operands[0])
        is_divided = made is not None and made.name == _DIVIDE and number_of(made.operands[1]) is not None
        if made is not None and is_divided and len(users_of(made.results[0])) == 1:
            found.add(made)
    return found


def _is_cap(tanh: ir.Operation) -> bool:
    """Whether a cap that is known multiplies the result."""
    factors = [
        number_of(operand) for user in users_of(tanh.results[0]) if user.name == _MULTIPLY for operand in user.operands
    ]
    return any(factor is not None and abs(factor) <= _MOST_CAP for factor in factors)
