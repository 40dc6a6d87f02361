"""Caps of logits in chains: functions whose errors count beside 1, not beside a small result."""

import math
from collections.abc import Iterator, Mapping, Sequence

from xgpu import ir
from xgpu.analysis.attention.places import keeps_numbers, number_of
from xgpu.passes.prepare.chains.parts import depending
from xgpu.structure import defining_op, dtype_of, users_of

_TANH, _CONVERT = "stablehlo.tanh", "stablehlo.convert"
_MULTIPLY, _DIVIDE = "stablehlo.multiply", "stablehlo.divide"
_NEVER_STEEPER = frozenset(
    (
        _TANH,
        "stablehlo.add",
        "stablehlo.broadcast_in_dim",
        _CONVERT,
        "stablehlo.maximum",
        "stablehlo.minimum",
        "stablehlo.negate",
        "stablehlo.reshape",
        "stablehlo.select",
        "stablehlo.subtract",
        "stablehlo.transpose",
    )
)
"""Operations whose results change by no more than one of their operands does."""
_MOST_CAP = 64.0
"""The largest cap of which errors of 2^-21 are of the order of logits' own, 2^-15, far below what weights are rounded
to."""
_LEAST_DIVISOR, _MOST_DIVISOR = 2.0**-20, 2.0**20
"""Bounds of the divisors whose inverses multiply instead: they are normal numbers, and so are most products."""


def caps(operations: Sequence[ir.Operation], logits: ir.Value) -> set[ir.Operation]:
    """Return the hyperbolic tangents by which ``logits`` are capped, and the divisions by their caps.

    They are of f32, and among some ``operations``, which are in order. Logits change by at most `_MOST_CAP` times what
    a tangent changes by. What a gradient computes from it counts beside 1, too. Divisions are those that a tangent
    alone reads, and those of a gradient by the same numbers.
    """
    slopes = _slopes(operations, logits)
    tangents = {op for op in operations if _is_cap(op, slopes)}
    before = {made: divisor for tanh in tangents for made, divisor in _divided_before(tanh)}
    divisors = set(before.values())
    after = depending(operations, [tanh.results[0] for tanh in tangents])
    of_gradient = {op for op in after if op.results[0] not in slopes and _divisor(op) in divisors}
    return {*tangents, *before, *of_gradient}


def divided(operations: Sequence[ir.Operation], values: Sequence[ir.Value]) -> set[ir.Operation]:
    """Return the divisions of f32 by a number of what is computed from some values, among ``operations``, in order.

    Of weights and gradients of weights, which products round next: a product with the inverse is as near.
    """
    return {op for op in depending(operations, values) if _divisor(op) is not None}


def _is_cap(op: ir.Operation, slopes: Mapping[ir.Value, float]) -> bool:
    if op.name != _TANH or dtype_of(op.results[0]).hlo != "f32":
        return False
    return slopes.get(op.results[0], math.inf) <= _MOST_CAP


def _slopes(operations: Sequence[ir.Operation], value: ir.Value) -> Mapping[ir.Value, float]:
    """Return how many times as much ``value`` changes, at most, as each value that it is computed from."""
    slopes = {value: 1.0}
    for op in reversed(operations):
        slope = slopes.get(op.results[0])
        if slope is None:
            continue
        for operand, factor in zip(op.operands, _factors(op), strict=True):
            slopes[operand] = slopes.get(operand, 0.0) + slope * factor
    return slopes


def _factors(op: ir.Operation) -> list[float]:
    """Return how many times as much a result changes, at most, as each operand."""
    if op.name in _NEVER_STEEPER and (op.name != _CONVERT or keeps_numbers(op)):
        return [1.0] * len(op.operands)
    if op.name == _MULTIPLY:
        numbers = [number_of(operand) for operand in op.operands]
        return [math.inf if other is None else abs(other) for other in reversed(numbers)]
    if op.name == _DIVIDE and (divisor := number_of(op.operands[1])):
        return [1 / abs(divisor), math.inf]
    return [math.inf] * len(op.operands)


def _divided_before(tanh: ir.Operation) -> Iterator[tuple[ir.Operation, float]]:
    """Yield the division that only a hyperbolic tangent reads, if there is one, with its divisor."""
    made = defining_op(tanh.operands[0])
    divisor = None if made is None else _divisor(made)
    if made is not None and divisor is not None and len(users_of(made.results[0])) == 1:
        yield made, divisor


def _divisor(op: ir.Operation) -> float | None:
    """Return the number by which an operation divides f32, None if its inverse may not multiply instead."""
    if op.name != _DIVIDE or dtype_of(op.results[0]).hlo != "f32":
        return None
    divisor = number_of(op.operands[1])
    return divisor if divisor is not None and _LEAST_DIVISOR <= abs(divisor) <= _MOST_DIVISOR else None
