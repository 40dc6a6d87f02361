"""Tiles that the threads of a warp group hold, as scalars: what is computed from products on the way to other products.

A thread holds two rows of a product of a warp group, and of each of these a quarter of the columns. Tiles that differ
between rows alone, or columns alone, are computed once for these.
"""

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

from xgpu import ir
from xgpu.dialects.attributes import WEIGHT
from xgpu.dialects.block.tiles import IndexTileOp, TileOp
from xgpu.dialects.threads import ShuffleOp
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.emit.scalar.constants import emit_constant
from xgpu.emit.scalar.op import ScalarOp, constant
from xgpu.emit.scalar.table import build_scalar
from xgpu.hlo.constants import splat_of
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import Symbol, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.support.arith_builder import integer_type
from xgpu.passes.support.scf_ops import create_if, create_index
from xgpu.passes.tiles.chains.choices import chosen_together, condition_of, is_rare_choice, is_rarely_needed
from xgpu.passes.tiles.chains.multiples import fused, quotient
from xgpu.passes.tiles.chains.powers import Exponent, Powers, is_of_two, number_of, power_of_two
from xgpu.passes.tiles.chains.reading import are_paired, read_element, read_pair
from xgpu.passes.tiles.chains.uniform import compared, holds_everywhere
from xgpu.passes.tiles.vectors import elements, from_elements
from xgpu.records import dataclass
from xgpu.structure import body_of, dtype_of, element_of, is_constant, producer, users_of

ROW_LANES = 4
"""Lanes that hold a row together."""
_POWER = "stablehlo.power"
_EXPONENTS = ("stablehlo.subtract", "stablehlo.multiply")
_NARROW = ("bf16", "f16")
_WIDE: dict[str, Callable[..., ir.Value]] = {
    "stablehlo.add": ir.arith.addf,
    "stablehlo.subtract": ir.arith.subf,
    "stablehlo.multiply": ir.arith.mulf,
}
"""Operations on floats of 16 bits that are written in f32."""
_LEAST_DIVISOR, _MOST_DIVISOR = 2.0**-20, 2.0**20
"""Bounds of the divisors whose inverses multiply instead: they are normal numbers."""
_EIGHTH = 8
_HALVES = 2
_PAIR = 2
_Key = tuple[int, int]
"""The number of a thread's row, and of its element of the row; 0 where elements do not differ by it."""


@dataclass(frozen=True)
class Spread:
    """A thread's part of a tile: its element of each key. It differs ``by_row``, ``by_column``, by both or none."""

    by_row: bool
    by_column: bool
    scalars: Mapping[_Key, ir.Value]

    def at(self, row: int, column: int) -> ir.Value:
        """Return the element of one of the thread's rows and of its columns."""
        return self.scalars[row if self.by_row else 0, column if self.by_column else 0]


def keys_of(by_row: bool, by_column: bool, columns: int) -> list[_Key]:
    """Return the keys of a tile with so many columns: neighbours of a row come one after the other."""
    own = columns // ROW_LANES if by_column else 1
    return list(itertools.product(range(_HALVES if by_row else 1), range(own)))


def column_of(number: int) -> int:
    """Return the column of a thread's element of a row, of lane 0."""
    return number // _PAIR * _EIGHTH + number % _PAIR


def accumulators(spread: Spread, columns: int) -> ir.Value:
    """Return a tile as the vector that a product of the warp group adds to."""
    places = itertools.product(range(columns // _EIGHTH), range(_HALVES), range(_PAIR))
    return from_elements([spread.at(half, eighth * _PAIR + neighbour) for eighth, half, neighbour in places])


def of_accumulators(vector: ir.Value) -> Spread:
    """Return the tile that a product of the warp group has left."""
    scalars = elements(vector)
    count = len(scalars) // (_HALVES * _PAIR)
    places = itertools.product(range(count), range(_HALVES), range(_PAIR))
    found = {
        (half, eighth * _PAIR + neighbour): scalar
        for (eighth, half, neighbour), scalar in zip(places, scalars, strict=True)
    }
    return Spread(True, True, found)


class _Deferred(Mapping[_Key, ir.Value]):
    """The elements of a tile, each written at the insertion point where it is first asked for."""

    def __init__(self, keys: Sequence[_Key], element: Callable[[_Key], ir.Value]):
        self._keys, self._element = keys, element
        location = ir.Location.current
        assert location is not None
        self._location = location
        self._made: dict[_Key, ir.Value] = {}

    def __getitem__(self, key: _Key) -> ir.Value:
        if key not in self._made:
            with self._location:
                self._made[key] = self._element(key)
        return self._made[key]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


@dataclass(frozen=True)
class Position:
    """The position of a thread's elements: the row of each half, and the first column; the lane, for shuffles."""

    rows: tuple[ir.Value, ir.Value]
    column: ir.Value
    lane: ir.Value


@dataclass(frozen=True)
class ScalarForm:
    """The form in which the scalars of tiles are written.

    If it is ``branched``, masks are asked only where they hide something. If it is ``deep``, all that an element is
    made of is written before the next element: fewer registers are in use. Of reductions in ``parts`` each lane has its
    own part; ``powers`` says which weights are not one instruction.
    """

    branched: bool = False
    deep: bool = False
    parts: Collection[ir.Operation] = ()
    powers: Powers = field(default_factory=Powers)


class SpreadCode:
    """The scalars of tiles, written at the insertion point, operation by operation; ``known`` are those of some tiles.

    ``at`` are the numbers of block and step.
    """

    def __init__(self, at: Sequence[ir.Value], position: Position, known: Mapping[ir.Value, Spread], form: ScalarForm):
        self._at, self._position, self._form = list(at), position, form
        self._values = dict(known)
        self._pending: dict[ir.Value, Callable[[], Spread]] = {}

    @property
    def lane(self) -> ir.Value:
        """The number of the thread's lane."""
        return self._position.lane

    def __getitem__(self, tile: ir.Value) -> Spread:
        if tile in self._pending:
            self._values[tile] = self._pending.pop(tile)()
        if tile not in self._values:
            self.write(producer(tile))
        return self._values[tile]

    def know(self, tile: ir.Value, spread: Spread) -> None:
        """Take ``spread`` for a tile."""
        self._values[tile] = spread

    def know_when_needed(self, tile: ir.Value, spread: Callable[[], Spread]) -> None:
        """Have ``spread`` write a tile as soon as something needs it."""
        self._pending[tile] = spread

    def write(self, op: ir.Operation) -> None:
        """Write an operation on single elements, a broadcast, or a reduction of rows, and what it needs."""
        if op.results[0] in self._values:
            return
        with op.location:
            self._values[op.results[0]] = self._written(op)

    @staticmethod
    def is_lazy(op: ir.Operation) -> bool:
        """Whether an operation is left to those that need it: those of which masks, and exponents of weights, are made.

        These are integers and conditions, what a weight needs that computes it otherwise, and what is chosen rarely.
        """
        users = users_of(op.results[0])
        while len(users) == 1 and users[0].name in _EXPONENTS:
            users = users_of(users[0].results[0])
        is_exponent = op.name in _EXPONENTS and len(users) == 1 and WEIGHT in users[0].attributes
        return is_exponent or is_rarely_needed(op) or isinstance(element_of(op.results[0]), ir.IntegerType)

    def _written(self, op: ir.Operation) -> Spread:
        view = op.opview
        if isinstance(view, TileOp):
            return self._read(view)
        if isinstance(view, IndexTileOp):
            shape = shape_of(view.tile)
            return self._by_map(view.map, shape, lambda key: _number(view, self._place(key, len(shape))))
        if op.name == "stablehlo.constant":
            return Spread(False, False, {(0, 0): emit_constant(op, ())})
        if op.name == "stablehlo.broadcast_in_dim":
            return self[op.operands[0]]
        if op.name == _POWER and WEIGHT in op.attributes and is_of_two(op):
            return self._weights(op)
        if is_rare_choice(op) and not self._form.deep:
            return self._chosen_rarely(op)
        if op.name == "stablehlo.divide" and is_constant(op.operands[1]) and is_rarely_needed(op):
            return self._quotients(op)
        if op.name == "stablehlo.divide" and is_constant(op.operands[1]) and WEIGHT in op.attributes:
            return self._parts_of(op)
        if op.name == "stablehlo.select" and (chosen := self._masked(op)) is not None:
            return chosen
        if op.name == "stablehlo.compare" and self._form.deep and (asked := self._compared(op)) is not None:
            return asked
        if op.name == "stablehlo.reduce":
            return self._reduced(op)
        return self._elementwise(op)

    def _compared(self, op: ir.Operation) -> Spread | None:
        """Write a comparison of numbers as one of a number of each row with a constant of each column.

        It is then so cheap that nobody keeps it. None for what depends on the column in another way.
        """
        map_ = compared(op)
        if map_ is None or len(map_.symbols) != 2:
            return None
        (number,) = map_.results
        step = dict(number.terms).get(Symbol(1), 0)
        if 1 in (number - symbol(1) * step).variables()[1]:
            return None
        keys = keys_of(True, step != 0, shape_of(op.results[0])[1])
        firsts: dict[int, ir.Value] = {}

        def asked(key: _Key) -> ir.Value:
            half, column = key
            if half not in firsts:
                where = [*self._at, self._position.rows[half], self._position.column]
                (firsts[half],) = ApplyIndexingOp.build(map_.with_simple_results(), where)
            limit = create_index(-step * column_of(column))
            return ir.arith.cmpi(ir.arith.CmpIPredicate.sge, firsts[half], limit)

        return self._made(True, step != 0, keys, asked)

    def _elementwise(self, op: ir.Operation) -> Spread:
        together = fused(op)
        operands = [self[each] for each in (op.operands if together is None else together.operands)]
        by_row, by_column = any(each.by_row for each in operands), any(each.by_column for each in operands)
        keys = keys_of(by_row, by_column, shape_of(op.results[0])[-1])
        if together is not None:
            write = together.element
            return self._made(by_row, by_column, keys, lambda key: write(*(each.at(*key) for each in operands)))
        if _narrows(op) and by_column:
            return Spread(by_row, by_column, _narrowed(op, operands[0], keys))
        if by_column and (wide := _wide(op)) is not None:
            return Spread(by_row, by_column, _narrowed(op, _widened(wide, operands, keys), keys))
        return self._made(
            by_row, by_column, keys, lambda key: build_scalar(ScalarOp(op, tuple(each.at(*key) for each in operands)))
        )

    def _made(self, by_row: bool, by_column: bool, keys: Sequence[_Key], element: Callable[[_Key], ir.Value]) -> Spread:
        """Return a tile whose elements are written now, or one by one as they are needed."""
        if self._form.deep:
            return Spread(by_row, by_column, _Deferred(keys, element))
        return Spread(by_row, by_column, {key: element(key) for key in keys})

    def _weights(self, op: ir.Operation) -> Spread:
        """Write powers of two: of elements of a tile the exponent is one instruction, rounded once."""
        exponents = self._exponents(op) or self[op.operands[1]]
        found = {}
        for key, exponent in exponents.scalars.items():
            if exponents.by_column and self._form.powers.has(key[1]):
                found[key] = power_of_two(exponent, self._form.powers.bits)
                continue
            found[key] = ir.math.exp2(exponent)
            producer(found[key]).attributes[WEIGHT] = ir.UnitAttr.get()
        return replace(exponents, scalars=found)

    def _exponents(self, op: ir.Operation) -> Spread | None:
        """Write the exponents of a tile that are a value times a number, without another of each row, if they are."""
        if (exponent := Exponent.of(op)) is None:
            return None
        values, rows = self[exponent.value], self[exponent.rows]
        factor = constant(element_of(op.results[0]), exponent.factor)
        below = {key: ir.arith.negf(scalar) for key, scalar in rows.scalars.items()}
        subtracted = replace(rows, scalars=below)
        keys = keys_of(values.by_row or rows.by_row, values.by_column, shape_of(op.results[0])[-1])
        found = {key: ir.math.fma(values.at(*key), factor, subtracted.at(*key)) for key in keys}
        return Spread(values.by_row or rows.by_row, values.by_column, found)

    def _chosen_rarely(self, op: ir.Operation) -> Spread:
        """Write choices by one condition of rows: what is chosen rarely is computed in a branch, of all of them."""
        choices = [each.results[0] for each in chosen_together(op)]
        asked, usual = self[condition_of(op)], [self[producer(each).operands[2]] for each in choices]
        are_tiles = [len(shape_of(each)) == 2 for each in choices]
        keys = [keys_of(True, is_tile, shape_of(each)[-1]) for each, is_tile in zip(choices, are_tiles, strict=True)]

        def flat(spreads: Sequence[Spread]) -> list[ir.Value]:
            return [spread.at(*key) for spread, own in zip(spreads, keys, strict=True) for key in own]

        first, *others = [asked.at(half, 0) for half in range(_HALVES)]
        taken = functools.reduce(ir.arith.ori, others, first)
        branch, rare, common = create_if(taken, [each.type for each in flat(usual)])
        known = dict(self._values)
        with ir.InsertionPoint(rare):
            ir.scf.yield_(flat([self._elementwise(producer(each)) for each in choices]))
        with ir.InsertionPoint(common):
            ir.scf.yield_(flat(usual))
        # What was written for the branch is known there alone.
        self._values = known
        results = iter(branch.results)
        for each, is_tile, own in zip(choices, are_tiles, keys, strict=True):
            self._values[each] = Spread(True, is_tile, {key: next(results) for key in own})
        return self._values[op.results[0]]

    def _quotients(self, op: ir.Operation) -> Spread:
        """Write quotients of f32 by a number, in the branch that alone needs them."""
        divisor = number_of(op.operands[1])
        if divisor is None:
            return self._elementwise(op)
        values = self[op.operands[0]]
        return replace(values, scalars={key: quotient(scalar, divisor) for key, scalar in values.scalars.items()})

    def _parts_of(self, op: ir.Operation) -> Spread:
        """Write quotients by a number as products with its inverse, where roundings do not count."""
        divisor = number_of(op.operands[1])
        if not divisor:
            return self._elementwise(op)
        values, inverse = self[op.operands[0]], constant(element_of(op.results[0]), 1 / divisor)
        keys = list(values.scalars)
        return self._made(
            values.by_row, values.by_column, keys, lambda key: ir.arith.mulf(values.scalars[key], inverse)
        )

    def _masked(self, op: ir.Operation) -> Spread | None:
        """Write a choice that most steps need not make, as all elements of the condition are true; None for others."""
        condition, chosen, _ = op.operands
        if not self._form.branched or len(shape_of(op.results[0])) != 2:
            return None
        if (holds := holds_everywhere(condition, self._at)) is None:
            return None
        given = self[chosen]
        keys = keys_of(True, True, shape_of(op.results[0])[1])
        branch, everywhere, masked = create_if(holds, [given.at(0, 0).type] * len(keys))
        with ir.InsertionPoint(everywhere):
            ir.scf.yield_([given.at(*key) for key in keys])
        known = dict(self._values)
        with ir.InsertionPoint(masked):
            scalars = self._elementwise(op)
            ir.scf.yield_([scalars.at(*key) for key in keys])
        # What was written for the mask is known in the branch alone.
        self._values = known
        return Spread(True, True, dict(zip(keys, branch.results, strict=True)))

    def _read(self, tile: TileOp) -> Spread:
        """Read a tile: neighbours of a row together where memory has them so."""
        shape = shape_of(tile.tile)
        if not are_paired(tile):
            branches = not self._form.deep
            return self._by_map(tile.map, shape, lambda key: read_element(tile, self._place(key, len(shape)), branches))
        pairs: dict[_Key, list[ir.Value]] = {}

        def element(key: _Key) -> ir.Value:
            half, number = key
            first = half, number - number % _PAIR
            if first not in pairs:
                pairs[first] = read_pair(tile, self._place(first))
            return pairs[first][number % _PAIR]

        return self._by_map(tile.map, shape, element)

    def _place(self, key: _Key, rank: int = 2) -> list[ir.Value]:
        """Return the numbers of block and step, and the indices of an element in a tile of this rank."""
        half, number = key
        if rank == 1:
            return [*self._at, self._position.rows[half]]
        column = ir.arith.addi(self._position.column, create_index(column_of(number)))
        return [*self._at, self._position.rows[half], column]

    def _by_map(self, map_: IndexingMap, shape: Sequence[int], element: Callable[[_Key], ir.Value]) -> Spread:
        """Return a tile of these elements, which differ as far as what a map leads to does."""
        used = {
            number
            for each in (*map_.results, *(each for each, _ in map_.constraints))
            for number in each.variables()[1]
        }
        by_row, by_column = 0 in used, 1 in used
        return self._made(by_row, by_column, keys_of(by_row, by_column, shape[-1]), element)

    def _reduced(self, op: ir.Operation) -> Spread:
        """Combine the elements of each row: those of the thread, in pairs, then those of the lanes that share it."""
        spread, columns, found = self[op.operands[0]], shape_of(op.operands[0])[-1], {}
        combine = _combination(op)
        if not spread.by_column and _is_maximum(op):
            return spread
        for half in range(_HALVES):
            parts = [spread.at(half, number) for number in range(columns // ROW_LANES)]
            while len(parts) > 1:
                parts = [combine(*parts[at : at + 2]) for at in range(0, len(parts) - 1, 2)] + parts[len(parts) & ~1 :]
            found[half, 0] = parts[0]
        whole = Spread(True, False, found)
        if op in self._form.parts:
            return whole
        whole, start = self.over_lanes(op, whole), self[op.operands[1]].at(0, 0)
        return replace(whole, scalars={key: combine(start, each) for key, each in whole.scalars.items()})

    def over_lanes(self, op: ir.Operation, parts: Spread) -> Spread:
        """Combine the parts that the lanes of each row have of a reduction."""
        combine = _combination(op)
        return replace(parts, scalars={key: self._over_lanes(each, combine) for key, each in parts.scalars.items()})

    def _over_lanes(self, value: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
        distance = ROW_LANES // 2
        while distance:
            lane = ir.arith.xori(self._position.lane, create_index(distance))
            (other,) = ShuffleOp.build(lane, [value])
            value = combine(value, other)
            distance //= 2
        return value


def _is_maximum(op: ir.Operation) -> bool:
    """Whether a reduction is the largest of all elements: of equal ones each is."""
    first = next(iter(body_of(op).operations)).operation
    return first.name == "stablehlo.maximum" and number_of(op.operands[1]) == -math.inf


def _combination(op: ir.Operation) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """Return what combines two elements of a reduction."""
    first = next(iter(body_of(op).operations)).operation
    return lambda left, right: build_scalar(ScalarOp(first, (left, right)))


def _number(tile: IndexTileOp, where: Sequence[ir.Value]) -> ir.Value:
    (number,) = ApplyIndexingOp.build(tile.map, where)
    element = element_of(tile.tile)
    if isinstance(element, ir.FloatType):
        whole = ir.arith.index_cast(integer_type(32), number)
        return ir.arith.sitofp(element, whole)
    return ir.arith.index_cast(integer_type(ir.IntegerType(element).width), number)


def _narrows(op: ir.Operation) -> bool:
    """Whether an operation rounds f32 to 16 bits, which an instruction does for two."""
    if op.name != "stablehlo.convert":
        return False
    return dtype_of(op.operands[0]).hlo == "f32" and dtype_of(op.results[0]).hlo in _NARROW


def _wide(op: ir.Operation) -> Callable[..., ir.Value] | None:
    """Return what writes an operation on 16 bits in f32, before it is rounded: twice is as once with so many more bits.

    ptxas does products one by one if what it has of them is the operand of arithmetic on 16 bits (C7514). Quotients of
    bf16 by a number are products with its inverse: none is so near to the middle between two that it is not the same.
    """
    if dtype_of(op.results[0]).hlo not in _NARROW:
        return None
    if op.name != "stablehlo.divide" or dtype_of(op.results[0]).hlo != "bf16" or not is_constant(op.operands[1]):
        return _WIDE.get(op.name)
    number = splat_of(producer(op.operands[1]))
    if not isinstance(number, ir.FloatAttr) or not _LEAST_DIVISOR <= abs(number.value) <= _MOST_DIVISOR:
        return None
    inverse = 1 / number.value
    return lambda left, _: ir.arith.mulf(left, constant(left.type, inverse))


def _widened(build: Callable[..., ir.Value], operands: Sequence[Spread], keys: Sequence[_Key]) -> Spread:
    """Write an operation on 16 bits in f32."""
    f32 = ir.F32Type.get()
    wide = [
        replace(each, scalars={key: ir.arith.extf(f32, scalar) for key, scalar in each.scalars.items()})
        for each in operands
    ]
    by_row, by_column = any(each.by_row for each in operands), any(each.by_column for each in operands)
    return Spread(by_row, by_column, {key: build(*(each.at(*key) for each in wide)) for key in keys})


def _narrowed(op: ir.Operation, spread: Spread, keys: Sequence[_Key]) -> dict[_Key, ir.Value]:
    element = element_of(op.results[0])
    found = {}
    for first, second in zip(keys[::_PAIR], keys[1::_PAIR], strict=True):
        pair = from_elements([spread.at(*first), spread.at(*second)])
        rounded = ir.arith.truncf(ir.VectorType.get([_PAIR], element), pair)
        found[first], found[second] = elements(rounded)
    return found
