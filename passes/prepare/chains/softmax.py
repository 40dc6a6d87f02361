"""Gradients of a softmax, with its quotients in place of powers that are divided later."""

import math
from collections.abc import Mapping

from xgpu import ir
from xgpu.analysis.attention.attention import Attention
from xgpu.analysis.attention.places import then
from xgpu.hlo.stablehlo_builder import hlo, reshape
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.hlo_maps import accesses
from xgpu.structure import copy_operation, defining_op, dtype_of, is_result_of, producer, users_of

_SPREADS = frozenset(("stablehlo.reshape", "stablehlo.transpose", "stablehlo.broadcast_in_dim"))
_MULTIPLY, _ADD, _DIVIDE = "stablehlo.multiply", "stablehlo.add", "stablehlo.divide"


def with_quotients(attention: Attention) -> Mapping[ir.Value, ir.Value]:
    """Write ``(g / z + r) e`` as ``(g + r z) (e / z)`` where the softmax is ``e / z``; return new values by the old.

    There are ``z`` and ``r`` of each row. Instead of powers and what divides them, quotients are what is at hand of
    each element, and there are fewer multiplications.
    """
    powers, quotients = attention.softmax.powers[0], attention.softmax.quotients[0]
    found: dict[ir.Value, ir.Value] = {}
    if producer(quotients).operands[0] != powers or dtype_of(powers).hlo != "f32":
        return found
    for user in users_of(powers):
        if user.name == _MULTIPLY and user.operands[0] != user.operands[1]:
            with ir.InsertionPoint(user), user.location:
                made = _rewritten(user, attention)
            if made is not None:
                found[user.results[0]] = made
    for old, new in found.items():
        old.replace_all_uses_with(new)
    return found


def _rewritten(product: ir.Operation, attention: Attention) -> ir.Value | None:
    powers, quotients = attention.softmax.powers[0], attention.softmax.quotients[0]
    other = product.operands[1 if product.operands[0] == powers else 0]
    total = producer(quotients).operands[1]
    for number in range(2) if is_result_of(other, _ADD) else ():
        divided, row = producer(other).operands[number], producer(other).operands[1 - number]
        if not is_result_of(divided, _DIVIDE) or producer(divided).operands[1] != total:
            continue
        (base, indices), (divisor, by) = _base(row), _base(total)
        if indices != by or math.prod(shape_of(base)) == math.prod(shape_of(row)):
            continue
        scaled = hlo.multiply(base, reshape(divisor, shape_of(base)))
        spread = _spread_again(row, base, scaled)
        result: ir.Value = hlo.multiply(hlo.add(producer(divided).operands[0], spread), quotients)
        return result
    return None


def _base(value: ir.Value) -> tuple[ir.Value, list[AffineExpr]]:
    """Return what a value is spread of, and the indices there, given its own, without those that are all 0."""
    map_ = identity_map(shape_of(value)).with_simple_results()
    while (op := defining_op(value)) is not None and op.name in _SPREADS:
        value, map_ = op.operands[0], then(map_, accesses(op)[0].map)
    return value, [each for each in map_.results if each.variables()[0]]


def _spread_again(value: ir.Value, base: ir.Value, new: ir.Value) -> ir.Value:
    """Return what ``value`` is of ``base``, of a new value."""
    if value == base:
        return new
    op = producer(value)
    copies = {op.operands[0]: _spread_again(op.operands[0], base, new)}
    return copy_operation(op, copies).results[0]
