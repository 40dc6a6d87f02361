"""The transpose emitter: a block moves a tile through shared memory, so that it reads and writes whole rows.

Heroes are transposes of one canonical form. What they read is computed by the prologue, which may have results of the
operands' shape too; the epilogue computes the other results from the values in the tile.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from xgpu import ir
from xgpu.dialects.threads import AllocateSharedOp, SyncThreadsOp
from xgpu.dialects.xgpu import LoopOp, PureCallOp, YieldOp
from xgpu.emit.base import Fusion, LaunchDimensions, entry_function, thread_and_block
from xgpu.emit.builders import Values, insert, scalar_type
from xgpu.emit.epilogue import Epilogue, epilogues
from xgpu.emit.scalar.op import element_dtype
from xgpu.emit.schedule import Schedule, power_of_two
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.emit.transpose_tile import Place, TransposeTile
from xgpu.fusion.heroes import forms_of
from xgpu.fusion.transposes import Transpose, access_width, transpose_of
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.affine import AffineExpr, delinearize, dim, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.partition.subgraphs import partition

_SIDE = {1: 128, 2: 128, 4: 64, 8: 32, 16: 32}
"""Rows and columns of a tile by the bytes of an element: enough for every bank, and for 16 bytes a thread or more."""
_GROUPED_SIDE = 32
_THREADS = 512
_THREADS_OF_NARROW_ACCESSES = 1024
_NARROW_BYTES = 4


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

    @cached_property
    def side_outputs(self) -> list[int]:
        """The numbers of the results that have the operands' shape."""
        operand, own = (shape_of(each) for each in (self.heroes[0].operands[0], self.heroes[0].results[0]))
        followers = forms_of(self.fusion.body, self.heroes)
        results = enumerate(self.fusion.results)
        return [i for i, value in results if value not in followers and shape_of(value) == operand != own]


@dataclass(frozen=True)
class TransposeSchedule(Schedule):
    """How the threads of a block move a tile: ``width`` elements at a time."""

    threads: int = power_of_two("Threads of a block, which moves a tile.", most=1024)
    side: int = power_of_two("Rows and columns of a tile.", most=256)
    width: int = power_of_two("Elements that a thread reads or writes at once.", most=16)

    @classmethod
    def of(cls, facts: Transposes) -> Self:
        """The widest aligned accesses; more threads where each has less in flight."""
        size = facts.element_bytes
        width = access_width(facts.transpose, size)
        return cls(**cls.block_of(size, width, facts.transpose.group), width=width)

    @staticmethod
    def block_of(element_bytes: int, width: int, group: int) -> dict[str, int]:
        """Return how many threads a block has, and the side of its tile."""
        threads = _THREADS_OF_NARROW_ACCESSES if width * element_bytes <= _NARROW_BYTES else _THREADS
        return {"threads": threads, "side": _SIDE[element_bytes] if group == 1 else _GROUPED_SIDE}

    def tile(self, facts: Transposes) -> TransposeTile:
        """Return the tile of each hero."""
        return TransposeTile(facts.element_bytes, self.width, facts.transpose.group, self.side, self.threads)

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
        return LaunchDimensions((math.prod(self._grid()), 1, 1), (self.tile.threads, 1, 1))

    def _grid(self) -> Shape:
        """How many tiles there are along each dimension but the tile's, then down the rows and along the columns."""
        shape, side = self.transpose.shape, self.tile.side
        rows, columns = shape[self.transpose.rows], shape[self.transpose.columns]
        return (*[shape[i] for i in self._others()], -(-rows // side), -(-columns // side))

    def _others(self) -> list[int]:
        tiled = (self.transpose.rows, self.transpose.columns, len(self.transpose.shape) - 1)
        return [i for i in range(len(self.transpose.shape)) if i not in tiled]

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[steps] -> indices."""
        if output in self.side_outputs:
            return self._indices(self.tile.reading()).operand
        form = next(each.form for each in self._epilogues() if output in each.numbers)
        return self._indices(self.tile.writing()).result.compose(form.forward).simplify()

    def tile_maps(self) -> tuple[IndexingMap, IndexingMap]:
        """Return (thread, block)[steps] -> address in the tile, of what is put into it and of what is taken from it."""
        return self._indices(self.tile.reading()).address, self._indices(self.tile.writing()).address

    def _indices(self, place: Place) -> "_Maps":
        """Return where a thread is in the operand, in the result and in the tile."""
        transpose, launch = self.transpose, self.launch_dimensions()
        *others, tile_row, tile_column = delinearize(dim(1), self._grid())
        at: list[AffineExpr] = [place.element] * len(transpose.shape)
        for position, index in zip(self._others(), others, strict=True):
            at[position] = index
        at[transpose.rows] = tile_row * self.tile.side + place.row
        at[transpose.columns] = tile_column * self.tile.side + place.column
        bounds = tuple((at[i], Interval(0, transpose.shape[i] - 1)) for i in (transpose.rows, transpose.columns))
        dims = (Interval(0, self.tile.threads - 1), Interval(0, launch.grid[0] - 1))
        operand = delinearize(linearize(at, transpose.shape), self.operand_shape)
        turned = [at[i] for i in transpose.permutation]
        result = delinearize(linearize(turned, [transpose.shape[i] for i in transpose.permutation]), self.shape)
        return _Maps(
            *(
                IndexingMap(dims, place.steps, tuple(results), bounds).simplify()
                for results in (operand, result, (place.address,), (*operand, place.address), (*result, place.address))
            )
        )

    def _prologue(self) -> SubgraphFunctions:
        roots = [hero.operands[0] for hero in self.heroes] + [self.fusion.results[i] for i in self.side_outputs]
        parts = partition(self.fusion.body, roots)
        return SubgraphFunctions(f"{self.fusion.name}__prologue", parts, list(self.fusion.body.arguments))

    def _epilogues(self) -> list[Epilogue]:
        return epilogues(self.fusion, [hero.results[0] for hero in self.heroes], self.epilogue_outputs)

    def emit(self) -> None:
        """Write the entry function, then the functions of prologue and epilogue."""
        prologue, after = self._prologue(), self._epilogues()
        block = entry_function(self.fusion, self)
        arguments: Values = list(block.arguments)
        inputs, outputs = (arguments[: len(self.fusion.parameter_types)], arguments[len(self.fusion.parameter_types) :])
        with ir.InsertionPoint(block):
            position = thread_and_block(self.launch_dimensions())
            tiles = [
                AllocateSharedOp.build([self.tile.size], _tile_type(hero.operands[0].type)) for hero in self.heroes
            ]
            tiles = self._emit_reads(prologue, position, inputs, outputs, tiles)
            tiles = SyncThreadsOp.build(tiles)
            ir.func.return_(self._emit_writes(after, position, inputs, outputs, tiles))
        prologue.emit()
        for each in after:
            each.functions.emit()

    def _emit_reads(
        self, prologue: SubgraphFunctions, position: Values, inputs: Values, outputs: Values, tiles: Values
    ) -> Values:
        """Fill the tiles and write the side outputs, in ``outputs``; return the tiles."""
        carried = [*tiles, *(outputs[i] for i in self.side_outputs)]
        loop = LoopOp.build(self._indices(self.tile.reading()).operand_and_address, position, carried)
        with ir.InsertionPoint(loop.body):
            *indices, address = loop.result_arguments
            types = prologue.result_types(prologue.partition.subgraphs[0])
            scalars = PureCallOp.build(prologue.names[0], [*inputs, *indices], types)
            new = []
            for number, (scalar, tensor) in enumerate(zip(scalars, loop.carried_arguments, strict=True)):
                in_tile = number < len(tiles)
                new.append(insert(_into_tile(scalar) if in_tile else scalar, tensor, [address] if in_tile else indices))
            YieldOp.build(new)
        results: Values = list(loop.operation.results)
        for number, value in zip(self.side_outputs, results[len(tiles) :], strict=True):
            outputs[number] = value
        return results[: len(tiles)]

    def _emit_writes(
        self, after: list[Epilogue], position: Values, inputs: Values, outputs: Values, tiles: Values
    ) -> Values:
        """Compute the other results from the tiles; return all outputs."""
        numbers = self.epilogue_outputs
        map_ = self._indices(self.tile.writing()).result_and_address
        loop = LoopOp.build(map_, position, [outputs[i] for i in numbers])
        with ir.InsertionPoint(loop.body):
            *indices, address = loop.result_arguments
            scalars = [
                _from_tile(tile, address, hero.operands[0].type) for tile, hero in zip(tiles, self.heroes, strict=True)
            ]
            new = dict(zip(numbers, loop.carried_arguments, strict=True))
            for each in after:
                each.emit_stores(inputs, indices, scalars, new)
            YieldOp.build([new[i] for i in numbers])
        final = dict(enumerate(outputs)) | dict(zip(numbers, loop.operation.results, strict=True))
        return [final[i] for i in range(len(outputs))]


@dataclass(frozen=True)
class _Maps:
    """From (thread, block)[steps] to the indices of the operand and of the result, and to the address in the tile."""

    operand: IndexingMap
    result: IndexingMap
    address: IndexingMap
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


def _from_tile(tile: ir.Value, address: ir.Value, type_: ir.Type) -> ir.Value:
    """Return the element at ``address`` as a scalar of the tensor type ``type_``."""
    element = ir.RankedTensorType(tile.type).element_type
    scalar = ir.Operation.create("tensor.extract", results=[element], operands=[tile, address]).results[0]
    wanted = scalar_type(element_dtype(type_))
    if wanted == element:
        return scalar
    narrow = ir.arith.trunci(ir.IntegerType.get_signless(element_dtype(type_).bits), scalar)
    return narrow if narrow.type == wanted else ir.arith.bitcast(wanted, narrow)
