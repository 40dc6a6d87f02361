"""The tiled concatenate emitter: a block puts together whole rows in shared memory and writes them in whole vectors.

Heroes are concatenations of one layout, whose pieces are short or start at odd places. A block takes a few rows: of
every operand what these rows need, which lies together, one operand after the other; all lanes read, and no lane asks
where its element is from. Each element is put where it belongs in the tile. Then the tile is read as it lies, 16 bytes
a thread and step, and the epilogue makes the results of it. Both sides of global memory are so accessed in whole lines
whatever the sizes are. How many rows make a tile, and how far apart they are, is `xgpu.fusion.concatenations.tile_of`'s
to say.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from xgpu import ir
from xgpu.dialects.threads import AllocateSharedOp, SyncThreadsOp
from xgpu.dialects.xgpu import LoopOp, PureCallOp, YieldOp
from xgpu.emit.base import LaunchDimensions, entry_function, thread_and_block
from xgpu.emit.builders import Values, insert, scalar_type
from xgpu.emit.concatenate import Concatenations, operand_functions
from xgpu.emit.epilogue import Epilogue, epilogues
from xgpu.emit.loop import block_field, elements_per_byte
from xgpu.emit.scalar.op import element_dtype
from xgpu.emit.schedule import Schedule, power_of_two, whole_number
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.errors import InvalidInput
from xgpu.fusion.concatenations import THREADS, TILED, tile_of
from xgpu.indexing.affine import AffineExpr, delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval


@dataclass(frozen=True)
class TiledConcatenateSchedule(Schedule):
    """How a block puts together ``rows`` rows, ``pitch`` elements apart in shared memory."""

    threads: int = block_field()
    rows: int = whole_number("Rows of a tile.", most=2**20)
    pitch: int = whole_number("Elements from one row of a tile to the next.", most=2**20)
    read: int = power_of_two("Consecutive elements that a thread reads of an operand.", most=16)
    vector: int = power_of_two("Consecutive elements that a thread writes of a result.", most=16)

    @classmethod
    def of(cls, facts: Concatenations) -> Self:
        """What `tile_of` says; raises `InvalidInput` where rows are too long for a tile."""
        tile = tile_of(facts.concatenation, [hero.results[0] for hero in facts.heroes], facts.fusion.results)
        if tile is None:
            raise InvalidInput("rows of the concatenation do not fit a tile in shared memory")
        return cls(THREADS, tile.rows, tile.pitch, tile.read, tile.written)

    def problems(self, facts: Concatenations) -> Iterator[str]:
        """Rows do not lie one over the other, a tile fits a block's memory, and no two threads write to one byte."""
        if elements_per_byte(facts.fusion) > 1:
            yield "expected results whose elements do not share bytes"
        if self.pitch < facts.concatenation.row:
            yield self.wrong("pitch", f"the {facts.concatenation.row} elements of a row, or more")
        each = sum(-(-element_dtype(hero.results[0].type).storage_bits // 8) for hero in facts.heroes)
        most = facts.fusion.device.shared_bytes_optin // (self.pitch * each)
        if self.rows > most:
            yield self.wrong("rows", f"at most {most}, which fit the shared memory of a block")


class TiledConcatenateEmitter:
    """Emits a fusion around concatenations by way of shared memory."""

    NAME = TILED

    def __init__(self, facts: Concatenations, schedule: TiledConcatenateSchedule):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.heroes, self.concatenation = facts.heroes, facts.concatenation
        self.pieces = self.concatenation.pieces

    def launch_dimensions(self) -> LaunchDimensions:
        """A block for each tile."""
        blocks = math.ceil(self.concatenation.rows / self.schedule.rows)
        return LaunchDimensions((blocks, 1, 1), (self.schedule.threads, 1, 1))

    def _steps(self, width: int, run: int) -> IndexingMap:
        """Return (thread, block)[step, element] -> (place in the tile's rows, place in all rows), of ``width`` each."""
        elements, threads = self.schedule.rows * width, self.schedule.threads
        steps = math.ceil(elements / (threads * run))
        place = (symbol(0) * threads + dim(0)) * run + symbol(1)
        position = dim(1) * elements + place
        blocks = self.launch_dimensions().grid[0]
        return IndexingMap(
            (Interval(0, threads - 1), Interval(0, blocks - 1)),
            (Interval(0, steps - 1), Interval(0, run - 1)),
            (place, position),
            (
                (place, Interval(0, elements - 1)),
                (position, Interval(0, self.concatenation.rows * width - 1)),
            ),
        )

    def thread_to_operand(self, number: int) -> IndexingMap:
        """Return (thread, block)[step, element] -> indices of the operand that piece ``number`` comes from."""
        return self._reads(number, in_tile=False)

    def thread_to_tile(self, number: int) -> IndexingMap:
        """Return (thread, block)[step, element] -> address in the tile where piece ``number`` is put."""
        return self._reads(number, in_tile=True)

    def _reads(self, number: int, in_tile: bool) -> IndexingMap:
        piece = self.pieces[number]
        steps = self._steps(piece.width, self.schedule.read)
        place, position = steps.results
        address = self._address(place, piece.width) + piece.start
        results = (address,) if in_tile else delinearize(position, piece.shape)
        return replace(steps, results=results).simplify()

    def tile_to_hero(self) -> IndexingMap:
        """Return (thread, block)[step, element] -> indices of the concatenation, then address in the tile."""
        row = self.concatenation.row
        steps = self._steps(row, self.schedule.vector)
        place, position = steps.results
        results = (*delinearize(position, self.concatenation.shape), self._address(place, row))
        return replace(steps, results=results).simplify()

    def _address(self, place: AffineExpr, width: int) -> AffineExpr:
        """Return the address in the tile of what is at ``place`` when its rows are ``width`` wide."""
        pitch = self.schedule.pitch
        return place if width == pitch else (place // width) * pitch + place % width

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[step, element] -> indices of an output."""
        form = next(each.form for each in self._epilogues if output in each.numbers)
        hero = self.tile_to_hero()
        return replace(hero, results=hero.results[:-1]).compose(form.forward).simplify()

    @cached_property
    def _epilogues(self) -> list[Epilogue]:
        heroes = [hero.results[0] for hero in self.heroes]
        return epilogues(self.fusion, heroes, range(len(self.fusion.results)))

    def emit(self) -> None:
        """Write the entry function, then the functions of prologues and epilogue."""
        prologues = [operand_functions(self.fusion, self.heroes, piece.operand) for piece in self.pieces]
        block = entry_function(self.fusion, self)
        arguments: Values = list(block.arguments)
        count = len(self.fusion.parameter_types)
        inputs, outputs = arguments[:count], arguments[count:]
        with ir.InsertionPoint(block):
            position = thread_and_block(self.launch_dimensions())
            size = self.schedule.rows * self.schedule.pitch
            types = [scalar_type(element_dtype(hero.results[0].type)) for hero in self.heroes]
            tiles: Values = [AllocateSharedOp.build([size], type_) for type_ in types]
            for number, prologue in enumerate(prologues):
                tiles = self._emit_reads(number, prologue, position, inputs, tiles)
            tiles = SyncThreadsOp.build(tiles)
            ir.func.return_(self._emit_writes(position, inputs, outputs, tiles))
        for prologue in prologues:
            prologue.emit()
        for after in self._epilogues:
            after.functions.emit()

    def _emit_reads(
        self, number: int, prologue: SubgraphFunctions, position: Values, inputs: Values, tiles: Values
    ) -> Values:
        """Put one piece of every row into the tiles."""
        operand, address = self.thread_to_operand(number), self.thread_to_tile(number)
        loop = LoopOp.build(replace(operand, results=(*operand.results, *address.results)), position, tiles)
        with ir.InsertionPoint(loop.body):
            *indices, place = loop.result_arguments
            types = prologue.result_types(prologue.partition.subgraphs[0])
            scalars = PureCallOp.build(prologue.names[0], [*inputs, *indices], types)
            carried = loop.carried_arguments
            YieldOp.build([insert(scalar, tile, [place]) for scalar, tile in zip(scalars, carried, strict=True)])
        return list(loop.operation.results)

    def _emit_writes(self, position: Values, inputs: Values, outputs: Values, tiles: Values) -> Values:
        """Compute the results from the tiles; return the outputs."""
        loop = LoopOp.build(self.tile_to_hero(), position, outputs)
        with ir.InsertionPoint(loop.body):
            *indices, place = loop.result_arguments
            scalars = [_extract(tile, place) for tile in tiles]
            new = dict(enumerate(loop.carried_arguments))
            for after in self._epilogues:
                after.emit_stores(inputs, indices, scalars, new)
            YieldOp.build([new[i] for i in range(len(outputs))])
        return list(loop.operation.results)


def _extract(tile: ir.Value, address: ir.Value) -> ir.Value:
    element = ir.RankedTensorType(tile.type).element_type
    return ir.Operation.create("tensor.extract", results=[element], operands=[tile, address]).results[0]
