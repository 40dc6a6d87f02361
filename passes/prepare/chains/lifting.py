"""Code of a chain, written again element by element in another shape, of which a map leads to the indices it has."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

from xgpu import ir
from xgpu.analysis.attention.places import SPREADS, Place, then
from xgpu.analysis.attention.softmax import Softmax
from xgpu.emit.families.attention.tiles import FULL
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.stablehlo_builder import broadcast, convert, hlo, reshape, shape_of, tensor, transpose
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import AffineExpr, Atom, Dim, FloorDiv, Mod, dim, linearize
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.simplify import Simplifier
from xgpu.records import dataclass
from xgpu.structure import (
    attributes_of,
    backward_slice,
    copy_operation,
    defining_op,
    element_of,
    in_order,
    is_constant,
    producer,
)

_MOVES = SPREADS - {"stablehlo.convert"}


@dataclass
class Lifted:
    """Writes values of a chain in a ``shape``, of whose indices a ``map`` leads to those of attention's weights.

    ``copies`` has what the chain's arguments are here. What is ``given`` is so in the shape.
    """

    shape: Sequence[int]
    map: IndexingMap
    copies: dict[ir.Value, ir.Value]
    given: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def is_possible(self, places: Sequence[Place], given: Sequence[ir.Value] = ()) -> bool:
        """Whether what is at some places can be written, where some values will be given."""
        pending = [(value, then(self.map, map_)) for value, map_ in places]
        seen = set(pending)
        while pending:
            value, map_ = place = pending.pop()
            if value in given or _splat(value) is not None:
                continue
            if (read := self._parts(place)) is None:
                made = backward_slice([value], lambda each: each in self.copies)
                if any(each in given for op in made for each in op.operands):
                    return False
                if reading_of(map_, self.shape, shape_of(value)) is None:
                    return False
            else:
                pending += [each for each in read if each not in seen]
                seen.update(read)
        return True

    def at(self, place: Place) -> ir.Value:
        """Write what is at a place from the weights' indices."""
        value, map_ = place
        return self._at((value, then(self.map, map_)), {})

    def _at(self, place: Place, made: dict[Place, ir.Value]) -> ir.Value:
        value, _ = place
        if value in self.given:
            return self.given[value]
        if place not in made:
            made[place] = self._made(place, made)
        return made[place]

    def _made(self, place: Place, made: dict[Place, ir.Value]) -> ir.Value:
        value, map_ = place
        type_ = tensor(self.shape, element_of(value))
        if (number := _splat(value)) is not None:
            result: ir.Value = hlo.constant(ir.DenseElementsAttr.get_splat(type_, number))
            return result
        if (read := self._parts(place)) is None:
            for op in in_order(backward_slice([value], lambda each: each in self.copies)):
                copy_operation(op, self.copies)
            reading = reading_of(map_, self.shape, shape_of(value))
            assert reading is not None
            return reading.write(self.copies[value], self.shape)
        operands = [self._at(each, made) for each in read]
        op = producer(value)
        if op.name in _MOVES:
            return operands[0]
        return ir.Operation.create(op.name, [type_], operands, attributes_of(op)).results[0]

    def _parts(self, place: Place) -> list[Place] | None:
        """Return what a value is computed from element by element, or moved from; None if it is read as an array."""
        value, map_ = place
        op = None if value in self.copies else defining_op(value)
        if op is None or op.name not in OPERATIONS or len(op.regions) or is_constant(value):
            return None
        if op.name not in _MOVES and access_kind(op) != "elementwise":
            return None
        return [(op.operands[each.operand], then(map_, each.map)) for each in accesses(op)]


@dataclass
class RowCode:
    """Writes what weights of a ``softmax`` are relative to and divided by, in place of largest logits and sums."""

    softmax: Softmax
    lifted: Lifted

    @property
    def is_possible(self) -> bool:
        """Whether it can be written."""
        places = [each for each in (self.softmax.reference, self.softmax.divisor) if each is not None]
        return self.lifted.is_possible(places, [self.softmax.largest[0], self.softmax.total[0]])

    def reference(self, largest: ir.Value) -> ir.Value:
        """Write what weights are relative to."""
        return self._made(self.softmax.reference, self.softmax.largest, largest)

    def divisor(self, total: ir.Value) -> ir.Value:
        """Write what powers are divided by, whose sum is ``total``; the largest logits are known."""
        return self._made(self.softmax.divisor, self.softmax.total, total)

    def _made(self, place: Place | None, of: Place, value: ir.Value) -> ir.Value:
        self.lifted.given[of[0]] = convert(value, element_of(of[0]))
        return value if place is None else convert(self.lifted.at(place), FULL)


class Reading(NamedTuple):
    """An array reshaped into ``digits``, of which a shape consists of so many ``sizes``."""

    digits: tuple[int, ...]
    sizes: tuple[int, ...]

    def write(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """Write what the array has at the indices of the shape."""
        own = [self.sizes[number] for number in self.digits]
        order = sorted(range(len(own)), key=lambda each: self.digits[each])
        ordered = transpose(reshape(value, own), order) if order != sorted(order) else value
        if math.prod(own) == math.prod(shape):
            return reshape(ordered, shape)
        return reshape(
            broadcast(reshape(ordered, [own[each] for each in order]), self.sizes, sorted(self.digits)), shape
        )


def reading_of(map_: IndexingMap, shape: Sequence[int], own: Sequence[int]) -> Reading | None:
    """Return how an array of ``own`` shape is read where a map leads to from the indices of a shape.

    None if that is more than the digits of these indices in another order.
    """
    digits = [_digits(map_, number, size) for number, size in enumerate(shape)]
    known = [each for each in digits if each is not None]
    if len(known) < len(digits):
        return None
    sizes = tuple(size for each in known for size in each)
    starts = [sum(map(len, known[:number])) for number in range(len(known))]
    numbers = [
        linearize([dim(start + number) for number in range(len(each))], each)
        for start, each in zip(starts, known, strict=True)
    ]
    simplifier = Simplifier(ranges(sizes), ())
    found = list[int]()
    for result, size in zip(map_.results, own, strict=True):
        joined = _joined_digits(simplifier.simplify(result.substitute(numbers)), sizes, size)
        if joined is None:
            return None
        found += joined
    return Reading(tuple(found), sizes) if len(set(found)) == len(found) else None


def _splat(value: ir.Value) -> ir.Attribute | None:
    op = defining_op(value)
    return splat_of(op) if op is not None and is_constant(value) else None


def _digits(map_: IndexingMap, number: int, size: int) -> list[int] | None:
    """Return the sizes of the digits that a map reads of one of its indices; None if they are no digits."""
    bounds = {1, size}
    for result in map_.results:
        for atom, _ in result.terms:
            if number in AffineExpr(((atom, 1),), 0).variables()[0] and _unit(atom, bounds) is None:
                return None
    ordered = sorted(bounds)
    pairs = list(itertools.pairwise(ordered))
    if any(after % before for before, after in pairs):
        return None
    return [after // before for before, after in reversed(pairs)] or [1]


def _unit(atom: Atom, bounds: set[int]) -> int | None:
    """Return what one more of an atom is of the index that it is a part of, and note where its digits begin and end.

    None if it is a part of something else.
    """
    if isinstance(atom, Dim):
        return 1
    if not isinstance(atom, FloorDiv | Mod) or len(atom.expr.terms) != 1 or atom.expr.constant:
        return None
    ((inner, coefficient),) = atom.expr.terms
    unit = _unit(inner, bounds) if coefficient == 1 else None
    if unit is None:
        return None
    bounds.add(unit * atom.divisor)
    return unit if isinstance(atom, Mod) else unit * atom.divisor


def _joined_digits(index: AffineExpr, sizes: Sequence[int], size: int) -> list[int] | None:
    """Return the digits of which an index consists, the highest first, if it takes all of so many values."""
    found, unit = list[int](), 1
    for atom, coefficient in sorted(index.terms, key=lambda each: each[1]):
        if not isinstance(atom, Dim) or coefficient != unit:
            return None
        found.insert(0, atom.index)
        unit *= sizes[atom.index]
    return found if unit == size and not index.constant else None
