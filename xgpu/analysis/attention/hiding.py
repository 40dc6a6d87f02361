"""Finds the conditions that hide logits, to be compared with those that make zeros of weights after the softmax."""

import math
from typing import NamedTuple

from xgpu.analysis.attention.places import SPREADS, Place, behind, number_of, then
from xgpu.analysis.attention.weight_factors import Condition
from xgpu.indexing.hlo_maps import accesses
from xgpu.structure import defining_op

_SELECT, _AND, _OR, _NOT = "stablehlo.select", "stablehlo.and", "stablehlo.or", "stablehlo.not"


class Hiding(NamedTuple):
    """The conditions that all hold where a logit is not chosen to be -inf, or to be another number."""

    infinite: frozenset[Condition]
    finite: frozenset[Condition]


def hiding(logits: Place) -> Hiding:
    """Return the conditions by which logits are chosen to be numbers."""
    infinite, finite = frozenset[Condition](), frozenset[Condition]()
    value, map_ = behind(logits, SPREADS)
    while (op := defining_op(value)) is not None and op.name == _SELECT:
        read = [(op.operands[each.operand], then(map_, each.map)) for each in accesses(op)]
        numbers = {position: number_of(read[position][0]) for position in (1, 2)}
        low = [position for position, number in numbers.items() if number == -math.inf]
        hidden = low or [position for position, number in numbers.items() if number is not None]
        if len(hidden) != 1:
            break
        seen = 3 - hidden[0]
        own = parts_of(Condition(behind(read[0], SPREADS), seen == 1))
        infinite, finite = (infinite | own, finite) if low else (infinite, finite | own)
        value, map_ = behind(read[seen], SPREADS)
    if op is not None and op.name == "stablehlo.add":
        for each in accesses(op):
            infinite |= hiding((op.operands[each.operand], then(map_, each.map))).infinite
    return Hiding(infinite, finite)


def parts_of(condition: Condition) -> frozenset[Condition]:
    """Return the conditions that all hold where one does."""
    (value, map_), keeps = condition
    op = defining_op(value)
    if op is None or op.name not in (_AND, _OR, _NOT) or (op.name != _NOT and (op.name == _AND) is not keeps):
        return frozenset((condition,))
    read = (behind((op.operands[each.operand], then(map_, each.map)), SPREADS) for each in accesses(op))
    kept = keeps is not (op.name == _NOT)
    return frozenset[Condition]().union(*(parts_of(Condition(each, kept)) for each in read))


def is_same(first: Place, second: Place) -> bool:
    """Whether two values are one, or are both chosen by one condition to be one, or else the same number."""
    if first == second:
        return True
    read = []
    for value, map_ in (first, second):
        op = defining_op(value)
        if op is None or op.name != _SELECT:
            return False
        read.append([behind((op.operands[each.operand], then(map_, each.map)), SPREADS) for each in accesses(op)])
    pairs = [(one, other, number_of(one[0])) for one, other in zip(*read, strict=True)]
    return all(one == other or (number is not None and number == number_of(other[0])) for one, other, number in pairs)
