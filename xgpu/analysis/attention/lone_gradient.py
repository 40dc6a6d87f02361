"""Gradients of attention whose result a program does not compute beside them, as `jax.checkpoint` leaves them.

The softmax is there, and the gradient of its weights, a product of the result's gradient and the values: they tell what
the result would be.
"""

from dataclasses import replace

from xgpu import ir
from xgpu.analysis.attention.chained_sums import inverted
from xgpu.analysis.attention.gradient import factors_of, is_product, stages_of
from xgpu.analysis.attention.places import REDUCE, Place, number_of, reducing_function, then
from xgpu.analysis.attention.weight_factors import WeightFactors, unfactored
from xgpu.indexing.access import identity_map, ranges, shape_of
from xgpu.indexing.affine import AffineExpr, dim, symbol
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import defining_op, producer, users_of

_FACTORED = ("stablehlo.multiply", "stablehlo.divide", "stablehlo.select", "stablehlo.convert")
"""Operations that make weights of a softmax."""
COLUMN = symbol(0)
"""The index of what a gradient of weights is added up of."""


@dataclass(frozen=True)
class LoneGradient:
    """The ``weights``, a softmax along ``key`` times factors, whose gradient is a product of ``given`` and ``values``.

    Each index of both is a dimension of the weights, the `COLUMN`, or 0, that of a dimension of one element.
    """

    weights: ir.Value
    key: int
    given: ir.Value
    given_indices: tuple[AffineExpr, ...]
    values: ir.Value
    value_indices: tuple[AffineExpr, ...]


def lone_gradient_of(op: ir.Operation) -> LoneGradient | None:
    """Return the gradient of which ``op`` is the sum of weights times their gradients; None if it is no such sum."""
    if op.name != REDUCE or len(op.results) != 1:
        return None
    if reducing_function(op) != "add" or number_of(op.operands[1]) != 0.0:
        return None
    shape = shape_of(op.operands[0])
    found, factors, _ = factors_of(op, lambda value: _softmax_of(value) is not None)
    products = [each for each in found if is_product(each)]
    weights = [each for each in found if _softmax_of(each[0]) is not None]
    if len(products) != 1 or len(weights) != 1:
        return None
    back = inverted(weights[0][1], tuple(shape), shape_of(weights[0][0]))
    if back is None:
        return None
    to_operand = IndexingMap(ranges(shape_of(weights[0][0])), (), back)
    along = [to for to, each in zip(back, accesses(op)[0].map.results, strict=True) if each.variables()[1]]
    keys = {number for each in along for number in each.variables()[0]}
    if len(keys) != 1:
        return None
    quotients = _softmax_of(weights[0][0])
    assert quotients is not None
    factored = _factored(quotients, factors.after(to_operand))
    if factored is None:
        return None
    return _of_product(factored, min(keys), (products[0][0], then(to_operand, products[0][1])))


def _factored(quotients: ir.Value, factors: WeightFactors) -> ir.Value | None:
    """Return what a softmax is with factors, but for a number, as a program has it for another gradient."""
    start = quotients, identity_map(shape_of(quotients)).with_simple_results()
    pending, seen = [quotients], {quotients}
    while pending:
        value = pending.pop(0)
        made = dict(unfactored((value, identity_map(shape_of(value)).with_simple_results())))
        found = made.get(start)
        if found is not None and found.are_as(replace(factors, number=found.number)):
            return value
        results = (user.results[0] for user in users_of(value) if user.name in _FACTORED)
        following = [each for each in results if each not in seen and shape_of(each) == shape_of(quotients)]
        seen.update(following)
        pending += following
    return None


def _softmax_of(value: ir.Value) -> ir.Value | None:
    """Return the quotients that a value is, or is divided to, if they are of powers and of one shape."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "stablehlo.divide":
        return value if _is_power(op.operands[0]) else None
    if not _is_power(value):
        return None
    divided = [user for user in users_of(value) if user.name == "stablehlo.divide" and user.operands[0] == value]
    return divided[0].results[0] if len(divided) == 1 else None


def _is_power(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name == "stablehlo.exponential"


def _of_product(weights: ir.Value, key: int, product: Place) -> LoneGradient | None:
    """Return the gradient of weights that a product is: one operand has keys, the other one rows."""
    op = producer(product[0])
    maps = [then(product[1], access.map) for access in accesses(op)]
    has_key = [any(each == dim(key) for each in map_.results) for map_ in maps]
    if sum(has_key) != 1 or not all(_is_simple(map_) for map_ in maps):
        return None
    number = has_key.index(True)
    values = op.operands[number]
    # The result is stored as its gradient is: a product may have both in another order.
    given = [each for each in stages_of((op.operands[1 - number], maps[1 - number])) if _is_simple(each[1])]
    return LoneGradient(weights, key, given[-1][0], given[-1][1].results, values, maps[number].results)


def _is_simple(map_: IndexingMap) -> bool:
    """Whether indices are the column once, dimensions once each, and 0."""
    dims, symbols = ([each.variables()[kind] for each in map_.results] for kind in range(2))
    own = [each for each, used in zip(map_.results, dims, strict=True) if used]
    columns = [each for each, used in zip(map_.results, symbols, strict=True) if used]
    simple = all(each == dim(min(used)) for each, used in zip(map_.results, dims, strict=True) if used)
    return columns == [COLUMN] and simple and len(set(own)) == len(own)
