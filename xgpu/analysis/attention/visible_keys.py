"""The keys that a row of attention sees under a mask of indices: causal masks, and windows."""

import functools
import math
from collections.abc import Callable
from dataclasses import replace

from xgpu import ir
from xgpu.analysis.attention.attention import Attention
from xgpu.analysis.attention.places import IOTA, Place, behind, number_of, then
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import direction_of
from xgpu.indexing.access import integer
from xgpu.indexing.affine import AffineExpr, Dim, constant, dim
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of

_MOVES = frozenset(("stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.broadcast_in_dim"))
_FEW_BITS_BELOW = -4096.0
"""Finite logits of hidden keys from which on no weights are left of them, unless all keys of a row are hidden."""
FAR_ABOVE = 128.0
"""By how much a logit is above another that has no weight beside it: e^-104 is no number of f32."""
_Differences = dict[str, Callable[[AffineExpr, AffineExpr], AffineExpr]]
_NOT_NEGATIVE: _Differences = {
    "GE": lambda left, right: left - right,
    "GT": lambda left, right: left - right - 1,
    "LE": lambda left, right: right - left,
    "LT": lambda left, right: right - left - 1,
}
"""A sum that is not negative where a comparison holds."""
_BELOW = {"LT": (0, 0), "LE": (0, 1), "GT": (1, 0), "GE": (1, 1)}
"""The operand that is below the other one where a comparison holds, and whether it may be equal."""


@dataclass(frozen=True)
class VisibleKeys:
    """A row ``r`` sees no keys but those from ``r - before`` to ``r + after``; of the others logits are ``hidden``.

    None where there is no such end.
    """

    before: int | None
    after: int | None
    hidden: float

    def seen(self, rows: int, keys: int) -> int:
        """Return how many of so many keys a row of so many sees, about: the one in the middle."""
        row = rows // 2
        first = 0 if self.before is None else max(row - self.before, 0)
        end = keys if self.after is None else min(row + self.after + 1, keys)
        return max(end - first, 0)

    def together(self, other: "VisibleKeys") -> "VisibleKeys":
        """Return the keys that both leave."""
        ends = [
            min((each for each in pair if each is not None), default=None)
            for pair in ((self.before, other.before), (self.after, other.after))
        ]
        return VisibleKeys(ends[0], ends[1], self.hidden)

    def either(self, other: "VisibleKeys") -> "VisibleKeys":
        """Return the keys that one of both leaves."""
        ends = [
            None if None in pair else max(each for each in pair if each is not None)
            for pair in ((self.before, other.before), (self.after, other.after))
        ]
        return VisibleKeys(ends[0], ends[1], self.hidden)


@dataclass(frozen=True)
class KeyEnd:
    """The first key that no row sees: a number that is read, ``value`` at the place of ``map``, less an ``offset``.

    The map and the offset are of the weights' indices, without those of rows and keys. Numbers count that are up to
    ``most``: from there on rows see all keys.
    """

    value: ir.Value
    map: IndexingMap
    offset: AffineExpr
    most: int


def key_ends(attention: Attention) -> tuple[float, list[KeyEnd]] | None:
    """Return where keys end, as lengths of sequences say so, and the logits of hidden keys; None if none does."""
    value, map_ = behind((attention.softmax.logits, attention.softmax.map), _MOVES)
    op = defining_op(value)
    hidden = number_of(op.operands[2]) if op is not None and op.name == "stablehlo.select" else None
    if op is None or hidden is None or hidden > _FEW_BITS_BELOW:
        return None
    found, pending = list[KeyEnd](), [(op.operands[0], then(map_, accesses(op)[0].map))]
    seen = set[Place]()
    while pending:
        condition, at = place = behind(pending.pop(), _MOVES)
        made = None if place in seen else defining_op(condition)
        seen.add(place)
        if made is not None and made.name == "stablehlo.compare":
            end = _end(made, at, attention)
            found += [] if end is None else [end]
        elif made is not None and (
            made.name == "stablehlo.and" or (made.name == "stablehlo.select" and _is_false(made.operands[2]))
        ):
            pending += [(made.operands[each], then(at, accesses(made)[each].map)) for each in range(2)]
    return (hidden, found) if found else None


def _end(op: ir.Operation, map_: IndexingMap, attention: Attention) -> KeyEnd | None:
    """Return where keys end for which a comparison of their numbers with what is read holds; None for others."""
    direction = direction_of(op)
    if direction not in _BELOW:
        return None
    key_side, others = _BELOW[direction]
    number, bound = _number(op.operands[key_side], map_), op.operands[1 - key_side]
    value, place = behind((bound, map_), _MOVES - {"stablehlo.convert"})
    read = {index for each in place.results for index in each.variables()[0]}
    if number is None or not dtype_of(value).is_integer or {attention.row, attention.key} & read:
        return None
    offset = number - dim(attention.key)
    if {attention.row, attention.key} & offset.variables()[0]:
        return None
    return KeyEnd(value, place, offset - others, number.interval(map_.dims).upper + 1)


def visible_keys(attention: Attention) -> VisibleKeys | None:
    """Return which keys rows see; None if a mask does not say so, or hidden ones may have weights."""
    numbers = attention.row, attention.key
    found = chosen_keys((attention.softmax.logits, attention.softmax.map), numbers)
    return found if found is not None and (found.hidden == -math.inf or found.hidden <= _FEW_BITS_BELOW) else None


def chosen_keys(place: Place, numbers: tuple[int, int]) -> VisibleKeys | None:
    """Return the keys for which a value is not just one number, as it is chosen so; None if that is not known.

    ``numbers`` are the dimensions of rows and keys.
    """
    value, map_ = behind(place, _MOVES)
    op = defining_op(value)
    if op is not None and op.name == "stablehlo.add":
        return _added(op, map_, numbers)
    if op is None or op.name != "stablehlo.select":
        return None
    condition, _, other = op.operands
    hidden = number_of(other)
    if hidden is None:
        return None
    condition_map = then(map_, accesses(op)[0].map)
    everything = VisibleKeys(None, None, hidden)
    found = _where((condition, condition_map), numbers, everything)
    return None if found == everything else found


def _added(op: ir.Operation, map_: IndexingMap, numbers: tuple[int, int]) -> VisibleKeys | None:
    """Return the keys for which a sum is not -inf, as one of both is that by choice."""
    read = zip(op.operands, accesses(op), strict=True)
    parts = [chosen_keys((each, then(map_, access.map)), numbers) for each, access in read]
    found = [each for each in parts if each is not None and each.hidden == -math.inf]
    return functools.reduce(VisibleKeys.together, found) if found else None


def _where(place: Place, numbers: tuple[int, int], everything: VisibleKeys) -> VisibleKeys:
    """Return the keys for which a condition can hold, which may be joined of more than Python recurses."""
    first = behind(place, _MOVES)
    known: dict[Place, VisibleKeys] = {}
    pending = [first]
    while pending:
        value, map_ = place = pending[-1]
        op = defining_op(value)
        parts = _joined(op, map_)
        # What others share is looked at once.
        waiting = [each for each in parts if each not in known]
        pending += waiting
        if waiting:
            continue
        pending.pop()
        if op is not None and parts:
            one, other = (known[each] for each in parts)
            known[place] = one.either(other) if op.name == "stablehlo.or" else one.together(other)
        elif op is not None and op.name == "stablehlo.compare":
            known[place] = _compared(op, map_, numbers, everything)
        else:
            known[place] = everything
    return known[first]


def _joined(op: ir.Operation | None, map_: IndexingMap) -> list[Place]:
    """Return the two conditions of which ``op`` asks both, or either; none if it is another condition."""
    if op is None or op.name not in ("stablehlo.and", "stablehlo.or", "stablehlo.select"):
        return []
    if op.name == "stablehlo.select" and not _is_false(op.operands[2]):
        return []
    return [behind((op.operands[each], then(map_, accesses(op)[each].map)), _MOVES) for each in range(2)]


def _compared(op: ir.Operation, map_: IndexingMap, numbers: tuple[int, int], everything: VisibleKeys) -> VisibleKeys:
    direction = direction_of(op)
    left, right = (_number(operand, map_) for operand in op.operands)
    if left is None or right is None or direction not in _NOT_NEGATIVE:
        return everything
    difference = _NOT_NEGATIVE[direction](left, right)
    terms = dict(difference.terms)
    row, key = (terms.pop(Dim(number), 0) for number in numbers)
    if terms or (row, key) not in ((1, -1), (-1, 1)):
        return everything
    if key < 0:
        return replace(everything, after=difference.constant)
    return replace(everything, before=difference.constant)


def _number(value: ir.Value, map_: IndexingMap) -> AffineExpr | None:
    """Return an integer, as an expression of the weights' indices; None if it is not known to be one."""
    # What converts numbers may round them, or wrap.
    value, map_ = behind((value, map_), _MOVES - {"stablehlo.convert"})
    op = defining_op(value)
    if op is None or not dtype_of(value).is_integer:
        return None
    if op.name == IOTA:
        return _if_held(map_.results[integer(op, "iota_dimension")], map_, value)
    if op.name == "stablehlo.constant":
        number = splat_of(op)
        return constant(int(number.value)) if isinstance(number, ir.IntegerAttr) else None
    if op.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = (_number(operand, map_) for operand in op.operands)
    if left is None or right is None:
        return None
    return _if_held(left + right if op.name == "stablehlo.add" else left - right, map_, value)


def _if_held(number: AffineExpr, map_: IndexingMap, value: ir.Value) -> AffineExpr | None:
    """Return a number if the type of ``value`` holds it wherever it is asked for: one that wraps is another number."""
    dtype = dtype_of(value)
    bits = dtype.bits - (1 if dtype.is_signed else 0)
    least = -(1 << bits) if dtype.is_signed else 0
    return number if Interval(least, (1 << bits) - 1).contains_interval(number.interval(map_.dims)) else None


def _is_false(value: ir.Value) -> bool:
    number = _constant(value)
    return isinstance(number, ir.IntegerAttr | ir.BoolAttr) and not number.value


def _constant(value: ir.Value) -> ir.Attribute | None:
    op = defining_op(value)
    while op is not None and op.name in _MOVES:
        op = defining_op(op.operands[0])
    return splat_of(op) if op is not None and op.name == "stablehlo.constant" else None
