"""The transpose emitter: a block moves a tile through shared memory, so that it reads and writes whole rows.

Heroes are transposes of one canonical form. What they read is computed by the prologue, which may have results of the
operands' shape too; the epilogue computes the other results from the values in the tile.
"""

import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Self

from xgpu import ir
from xgpu.analysis.heroes import forms_of
from xgpu.analysis.transposes import Transpose, access_width, transpose_of
from xgpu.emit import requirements
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.builders import scalar_type
from xgpu.emit.epilogue import Epilogues
from xgpu.emit.families.transpose_tile import WARP, WAVE_BYTES, TilePosition, TransposeTile
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import entry_function, filling, loop, put, shared_tiles
from xgpu.emit.scalar.op import element_dtype
from xgpu.emit.schedule import Schedule, power_of_two
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.fusion.grouping.families import Candidate, Heroes, Match
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import AffineExpr, delinearize, dim, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.records import dataclass

_SIDE = {1: 128, 2: 128, 4: 64, 8: 32, 16: 32}
"""Rows and columns of a tile by the bytes of an element: enough for every bank, and for 16 bytes a thread or more."""
_GROUPED_SIDE = 32
_THREADS = 512
_THREADS_OF_NARROW_ACCESSES = 1024
_NARROW_BYTES = 4
_MOST_TILES = 4
"""Transposes that one kernel may tile; their shared memory bounds how many blocks are resident."""

_TILE = Reason("reading or writing would not coalesce in a loop: a transpose goes through shared memory")


@dataclass(frozen=True)
class Transposes:
    """A fusion around transposes of one canonical form."""

    fusion: Fusion

    @property
    def heroes(self) -> list[ir.Operation]:
        """The transposes."""
        return self.fusion.heroes

    @cached_property
    def transpose(self) -> Transpose:
        """Their canonical form; each moves elements."""
        found = transpose_of(self.heroes[0])
        assert found is not None
        return found

    @property
    def element_bytes(self) -> int:
        """The bytes of the widest element in a tile."""
        return max(_tile_bytes(hero.operands[0].type) for hero in self.heroes)

    @property
    def stored_bytes(self) -> int:
        """The bytes of the widest element of a result, of which a thread stores an access; 1 if some share a byte."""
        types = self.fusion.result_types
        is_packed = any(element_dtype(type_).storage_bits < 8 for type_ in types)
        return 1 if is_packed else max(map(_tile_bytes, types))

    @cached_property
    def side_outputs(self) -> list[int]:
        """The numbers of the results that have the operands' shape."""
        operand, own = (shape_of(each) for each in (self.heroes[0].operands[0], self.heroes[0].results[0]))
        followers = forms_of(self.fusion.body, self.heroes)
        results = enumerate(self.fusion.results)
        return [i for i, value in results if value not in followers and shape_of(value) == operand != own]


@dataclass(frozen=True)
class TransposeSchedule(Schedule):
    """The division of a tile among the threads of a block: they move ``width`` elements at a time."""

    threads: int = power_of_two("Threads of a block, which moves a tile.", most=1024)
    side: int = power_of_two("Rows and columns of a tile.", most=256)
    width: int = power_of_two("Elements that a thread reads or writes at once.", most=16)

    @classmethod
    def of(cls, facts: Transposes) -> Self:
        """The widest aligned accesses; more threads where each has less in flight, smaller tiles for few blocks.

        And where more than half of what tiles cover is outside of the array.
        """
        size, transpose = facts.element_bytes, facts.transpose
        width = access_width(transpose, max(size, facts.stored_bytes))
        found = cls(**cls.block_of(size, width, transpose.group), width=width)
        fitting = min(found._quarters(size, transpose.group), key=lambda each: each._covered(facts), default=found)
        if 2 * fitting._covered(facts) < found._covered(facts):
            found = fitting
        while math.prod(transpose.grid(found.side)) < facts.fusion.device.sm_count:
            smaller = found.halved(size, transpose.group)
            if smaller is None or transpose.grid(smaller.side) == transpose.grid(found.side):
                break
            found = smaller
        return found

    def _quarters(self, element_bytes: int, group: int) -> Iterator[Self]:
        """Yield this schedule, and those of tiles of half the rows and columns, of which a thread has as much to do."""
        found = self
        while found.side >= WARP and not any(found._tile(element_bytes, group).problems()):
            yield found
            found = replace(found, side=found.side // 2, threads=found.threads // 4)

    def _covered(self, facts: Transposes) -> float:
        """Return the elements that all tiles have, those outside of the array too.

        Where rows of a tile fill less than all banks, reading down columns takes as many times as long; writing, the
        other half, does not.
        """
        conflicts = max(1.0, WAVE_BYTES / (self.side * facts.element_bytes))
        return math.prod(facts.transpose.grid(self.side)) * self.side**2 * (1 + conflicts) / 2

    def _tile(self, element_bytes: int, group: int) -> TransposeTile:
        return TransposeTile(element_bytes, self.width, group, self.side, self.threads)

    def halved(self, element_bytes: int, group: int) -> Self | None:
        """Return the schedule of tiles of half the rows and columns; None if rows of one would not fill the banks.

        A thread has an access at least.
        """
        side = self.side // 2
        if side < WARP or side * element_bytes < WAVE_BYTES:
            return None
        found = replace(self, side=side, threads=min(self.threads, side * side // self.width))
        return None if any(found._tile(element_bytes, group).problems()) else found

    @staticmethod
    def block_of(element_bytes: int, width: int, group: int) -> dict[str, int]:
        """Return how many threads a block has, and the side of its tile."""
        threads = _THREADS_OF_NARROW_ACCESSES if width * element_bytes <= _NARROW_BYTES else _THREADS
        return {"threads": threads, "side": _SIDE[element_bytes] if group == 1 else _GROUPED_SIDE}

    def tile(self, facts: Transposes) -> TransposeTile:
        """Return the tile of each hero."""
        return self._tile(facts.element_bytes, facts.transpose.group)

    def problems(self, facts: Transposes) -> Iterator[str]:
        """Each thread has the same to do, a tile fits a block's memory, and no two threads write to one byte."""
        tile = self.tile(facts)
        for name, expected in tile.problems():
            yield self.wrong(name, expected)
        each = sum(_tile_bytes(hero.operands[0].type) for hero in facts.heroes)
        most = facts.fusion.device.shared_bytes_optin
        if tile.size * each > most:
            yield self.wrong("side", f"tiles of at most {most} bytes, the shared memory of a block")
        rows = (facts.transpose.shape[i] for i in (facts.transpose.rows, facts.transpose.columns))
        bits = min(element_dtype(type_).storage_bits for type_ in facts.fusion.result_types)
        if bits < 8 and math.gcd(self.width, *rows) * bits % 8:
            yield self.wrong("width", "whole bytes of the results, on both sides")


class TransposeEmitter:
    """Emits a fusion around transposes."""

    NAME = "transpose"

    def __init__(self, facts: Transposes, schedule: TransposeSchedule):
        self.fusion = facts.fusion
        self.heroes = facts.heroes
        self.transpose = facts.transpose
        self.operand_shape = shape_of(self.heroes[0].operands[0])
        self.shape = shape_of(self.heroes[0].results[0])
        self.tile = schedule.tile(facts)
        self.side_outputs = facts.side_outputs
        self.epilogue_outputs = [i for i in range(len(self.fusion.results)) if i not in self.side_outputs]

    def launch_dimensions(self) -> LaunchDimensions:
        """A block for each tile, the tiles along the operand's rows one after the other."""
        return LaunchDimensions.along_x(math.prod(self.transpose.grid(self.tile.side)), self.tile.threads)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[steps] -> indices."""
        if output in self.side_outputs:
            return self._indices(self.tile.reading()).operand
        return self._epilogues.output_map(output, self._indices(self.tile.writing()).result)

    def _indices(self, place: TilePosition) -> "_Maps":
        """Return where a thread is in the operand, in the result and in the tile."""
        transpose, dims = self.transpose, self.launch_dimensions().ranges
        *others, tile_row, tile_column = delinearize(dim(1), self.transpose.grid(self.tile.side))
        at: list[AffineExpr] = [place.element] * len(transpose.shape)
        for position, index in zip(self.transpose.others, others, strict=True):
            at[position] = index
        at[transpose.rows] = tile_row * self.tile.side + place.row
        at[transpose.columns] = tile_column * self.tile.side + place.column
        bounds = tuple((at[i], Interval(0, transpose.shape[i] - 1)) for i in (transpose.rows, transpose.columns))
        operand = delinearize(linearize(at, transpose.shape), self.operand_shape)
        turned = [at[i] for i in transpose.permutation]
        result = delinearize(linearize(turned, [transpose.shape[i] for i in transpose.permutation]), self.shape)
        return _Maps(
            *(
                IndexingMap(dims, place.steps, tuple(results), bounds).simplify()
                for results in (operand, result, (*operand, place.address), (*result, place.address))
            )
        )

    @cached_property
    def _epilogues(self) -> Epilogues:
        return Epilogues(self.fusion, [hero.results[0] for hero in self.heroes], self.epilogue_outputs)

    def emit(self) -> None:
        """Write the entry function, then the functions of prologue and epilogue."""
        operands = [hero.operands[0] for hero in self.heroes]
        roots = operands + [self.fusion.results[i] for i in self.side_outputs]
        prologue = SubgraphFunctions.of(self.fusion, "prologue", roots)
        with entry_function(self.fusion, self, [prologue, self._epilogues]) as kernel:
            position = kernel.position
            sides, others = (
                [kernel.outputs[i] for i in numbers] for numbers in (self.side_outputs, self.epilogue_outputs)
            )
            tiles = shared_tiles(self.tile.size, [_tile_type(operand.type) for operand in operands])
            with filling(self._indices(self.tile.reading()).operand_and_address, position, tiles, sides) as each:
                *indices, address = each.result_arguments
                scalars = prologue.emit_call([*kernel.inputs, *indices])
                for scalar, tile in zip(scalars, tiles, strict=False):
                    tile.insert(_into_tile(scalar), [address])
                put(scalars[len(tiles) :], sides, indices)
            with loop(self._indices(self.tile.writing()).result_and_address, position, others) as each:
                *indices, address = each.result_arguments
                scalars = [
                    _from_tile(tile.extract([address]), operand.type)
                    for tile, operand in zip(tiles, operands, strict=True)
                ]
                self._epilogues.emit_stores(kernel, indices, scalars)


@dataclass(frozen=True)
class _Maps:
    """From (thread, block)[steps] to the indices of operand and result, also with the address in the tile."""

    operand: IndexingMap
    result: IndexingMap
    operand_and_address: IndexingMap
    result_and_address: IndexingMap


def _tile_bytes(type_: ir.Type) -> int:
    return max(1, element_dtype(type_).storage_bits // 8)


def _tile_type(type_: ir.Type) -> ir.Type:
    """Return the type of an element in the tile: at least a byte, so that two threads never write the same one."""
    dtype = element_dtype(type_)
    return ir.IntegerType.get_signless(8) if dtype.is_packed else scalar_type(dtype)


def _into_tile(scalar: ir.Value) -> ir.Value:
    """Return a scalar as an element of a tile."""
    width = getattr(scalar.type, "width", 8)
    if width not in (2, 4):
        return scalar
    if isinstance(scalar.type, ir.FloatType):
        scalar = ir.arith.bitcast(ir.IntegerType.get_signless(width), scalar)
    return ir.arith.extui(ir.IntegerType.get_signless(8), scalar)


def _from_tile(scalar: ir.Value, type_: ir.Type) -> ir.Value:
    """Return an element of a tile as a scalar of the tensor type ``type_``."""
    wanted = scalar_type(element_dtype(type_))
    if wanted == scalar.type:
        return scalar
    narrow = ir.arith.trunci(ir.IntegerType.get_signless(element_dtype(type_).bits), scalar)
    return narrow if narrow.type == wanted else ir.arith.bitcast(wanted, narrow)


def _key(op: ir.Operation) -> Hashable | None:
    """Return what transposes of one kernel have in common: their canonical form, and the operand's shape."""
    transpose = transpose_of(op) if op.name == "stablehlo.transpose" else None
    if transpose is None or transpose.rows == transpose.columns or not math.prod(transpose.shape):
        return None
    return transpose, shape_of(op.operands[0]), shape_of(op.results[0])


def _match(candidate: Candidate) -> Match | None:
    """Take the transposes that a loop would not coalesce at, if one tile serves them all."""
    if len(candidate.moves.transposes) != 1:
        return None
    (heroes,) = candidate.moves.transposes.values()
    return Match(tuple(heroes[:_MOST_TILES]), _TILE)


TRANSPOSES = Family(
    heroes=Heroes("transposes of one canonical form, between rows and columns", _key),
    match=_match,
    emitter=TransposeEmitter,
    facts=Transposes,
    schedule=TransposeSchedule,
    results=requirements.results_follow_or_operands,
)
