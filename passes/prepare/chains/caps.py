"""Caps of logits in chains: functions whose errors count beside 1, not beside a small result."""

from collections.abc import Container, Sequence

from xgpu import ir
from xgpu.analysis.attention.attention import number_of
from xgpu.structure import defining_op, dtype_of, users_of

_TANH, _MULTIPLY, _DIVIDE = "stablehlo.tanh", "stablehlo.multiply", "stablehlo.divide"
_MOST_CAP = 64.0
"""The largest cap of which errors of 2^-21 are of the order of logits' own, 2^-15, far below what weights are rounded
to."""


def caps(operations: Sequence[ir.Operation], logits: ir.Value) -> set[ir.Operation]:
    """Return the hyperbolic tangents by which ``logits`` are capped, and the divisions that only they read.

    They are of f32, and among some ``operations``, which are in order. Whatever logits are computed from one must be a
    product with a cap. What a gradient computes from it counts beside 1, too.
    """
    found = set[ir.Operation]()
    behind = _behind(operations, logits)
    for op in behind:
        if op.name != _TANH or dtype_of(op.results[0]).hlo != "f32" or not _is_cap(op, behind):
            continue
        found.add(op)
        made = defining_op(op.operands[0])
        is_divided = made is not None and made.name == _DIVIDE and number_of(made.operands[1]) is not None
        if made is not None and is_divided and len(users_of(made.results[0])) == 1:
            found.add(made)
    return found


def _behind(operations: Sequence[ir.Operation], value: ir.Value) -> set[ir.Operation]:
    """Return those operations that a value is computed by."""
    wanted, found = {value}, set[ir.Operation]()
    for op in reversed(operations):
        if any(result in wanted for result in op.results):
            found.add(op)
            wanted.update(op.operands)
    return found


def _is_cap(tanh: ir.Operation, behind: Container[ir.Operation]) -> bool:
    """Whether caps that are known multiply the result, nothing does so again, and logits need it for nothing else."""
    products = [user for user in users_of(tanh.results[0]) if user in behind]
    pending, seen = list(products), set(products)
    while pending:
        later = [user for user in users_of(pending.pop().results[0]) if user in behind and user not in seen]
        if any(user.name in (_MULTIPLY, _DIVIDE) for user in later):
            return False
        seen.update(later)
        pending += later
    return all(map(_multiplies, products))


def _multiplies(user: ir.Operation) -> bool:
    factors = [number_of(operand) for operand in user.operands] if user.name == _MULTIPLY else []
    return any(factor is not None and abs(factor) <= _MOST_CAP for factor in factors)
