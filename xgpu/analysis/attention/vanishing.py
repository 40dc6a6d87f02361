"""Weights of a chain that vanish under a mask: steps with no other weights can be skipped."""

import math

from xgpu.analysis.attention.chained_sums import ChainedSums
from xgpu.analysis.attention.places import Place, behind, number_of, then
from xgpu.analysis.attention.visible_keys import VisibleKeys, chosen_keys
from xgpu.indexing.access import ranges
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import defining_op

_MOVES = frozenset(("stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.negate"))
_FACTORS = {"stablehlo.multiply": (0, 1), "stablehlo.divide": (0,)}
"""Operations whose result is zero where one of these operands is."""


def steps_seen(chain: ChainedSums) -> VisibleKeys | None:
    """Return from where to where the rows of a chain see those that they are added up of, None if that is not known.

    Of others all weights are zero, as long as none is not a number, and so are elements that are results.
    """
    space, found = chain.space, None
    values = [(each.sums.weights, each.indices) for each in chain.sums]
    for value, indices in [*values, *((each.result, each.indices) for each in chain.elements)]:
        map_ = IndexingMap(ranges(space.shape), (), indices)
        kept = _kept((value, map_), (space.resident, space.stepped))
        if kept is None:
            return None
        found = kept if found is None else found.either(kept)
    return None if found is None or (found.before is None and found.after is None) else found


def _kept(place: Place, numbers: tuple[int, int]) -> VisibleKeys | None:
    """Return the keys beyond which a value is zero."""
    value, map_ = behind(place, _MOVES)
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "stablehlo.select":
        chosen = chosen_keys((value, map_), numbers)
        found = chosen if chosen is not None and chosen.hidden == 0.0 else None
        if number_of(op.operands[2]) != 0:
            return found
        # Where zero is chosen by another condition, as a dropout does, what is left may vanish by itself.
        kept = _kept((op.operands[1], then(map_, accesses(op)[1].map)), numbers)
        return found if kept is None else kept if found is None else found.together(kept)
    if op.name == "stablehlo.exponential":
        return _kept_power((op.operands[0], then(map_, accesses(op)[0].map)), numbers)
    found = None
    for number in _FACTORS.get(op.name, ()):
        kept = _kept((op.operands[number], then(map_, accesses(op)[number].map)), numbers)
        if kept is not None:
            found = kept if found is None else found.together(kept)
    return found


def _kept_power(exponent: Place, numbers: tuple[int, int]) -> VisibleKeys | None:
    """Return the keys beyond which the power of a difference is zero: what it begins with is -inf there."""
    value, map_ = behind(exponent, _MOVES - {"stablehlo.negate"})
    op = defining_op(value)
    if op is None or op.name != "stablehlo.subtract":
        return None
    chosen = chosen_keys((op.operands[0], then(map_, accesses(op)[0].map)), numbers)
    return chosen if chosen is not None and chosen.hidden == -math.inf else None
