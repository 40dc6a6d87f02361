"""The tiled concatenate emitter: a block puts together whole rows in shared memory and writes them in whole vectors.

Heroes are concatenations of one layout, whose pieces are short or start at odd places. A block takes a few rows: of
every operand what these rows need, which lies together, one operand after the other; all lanes read, and no lane asks
where its element is from. Each element is put where it belongs in the tile. Then the tile is read as it lies, 16 bytes
a thread and step, and the epilogue makes the results of it. Both sides of global memory are so accessed in whole lines
whatever the sizes are. How many rows make a tile, and how far apart they are, is to say for
`xgpu.analysis.concatenations.tile_of`.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Self

from xgpu.analysis.concatenations import THREADS, Walk, tile_of
from xgpu.costs.occupancy import blocks_that_fill
from xgpu.emit import requirements
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.builders import scalar_type
from xgpu.emit.epilogue import Epilogues
from xgpu.emit.families.concatenate import HEROES, Concatenations, walked
from xgpu.emit.families.loop import block_field, elements_per_byte
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import entry_function, loop, put, shared_tiles, sync_threads
from xgpu.emit.schedule import Schedule, power_of_two, whole_number
from xgpu.errors import InvalidInput
from xgpu.indexing.affine import AffineExpr, delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.structure import dtype_of


@dataclass(frozen=True)
class TiledConcatenateSchedule(Schedule):
    """The tile in which a block puts ``rows`` rows together, ``pitch`` elements apart in shared memory."""

    threads: int = block_field()
    rows: int = whole_number("Rows of a tile.", most=2**20)
    pitch: int = whole_number("Elements from one row of a tile to the next.", most=2**20)
    read: int = power_of_two("Consecutive elements that a thread reads of an operand.", most=16)
    vector: int = power_of_two("Consecutive elements that a thread writes of a result.", most=16)

    @classmethod
    def of(cls, facts: Concatenations) -> Self:
        """The tile of `tile_of`; raises `InvalidInput` where rows are too long for a tile."""
        heroes, blocks = [hero.results[0] for hero in facts.heroes], blocks_that_fill(facts.fusion.device)
        tile = tile_of(facts.concatenation, heroes, facts.fusion.results, blocks)
        if tile is None:
            raise InvalidInput("rows of the concatenation do not fit a tile in shared memory")
        return cls(THREADS, tile.rows, tile.pitch, tile.read, tile.written)

    def problems(self, facts: Concatenations) -> Iterator[str]:
        """Rows do not lie one over the other, a tile fits a block's memory, and no two threads write to one byte."""
        if elements_per_byte(facts.fusion) > 1:
            yield "expected results whose elements do not share bytes"
        if self.pitch < facts.concatenation.row:
            yield self.wrong("pitch", f"the {facts.concatenation.row} elements of a row, or more")
        each = sum(-(-dtype_of(hero.results[0]).storage_bits // 8) for hero in facts.heroes)
        most = facts.fusion.device.shared_bytes_optin // (self.pitch * each)
        if self.rows > most:
            yield self.wrong("rows", f"at most {most}, which fit the shared memory of a block")


class TiledConcatenateEmitter:
    """Emits a fusion around concatenations by way of shared memory."""

    NAME = "concatenate_tiled"

    def __init__(self, facts: Concatenations, schedule: TiledConcatenateSchedule):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.facts, self.heroes, self.concatenation = facts, facts.heroes, facts.concatenation
        self.pieces = self.concatenation.pieces

    def launch_dimensions(self) -> LaunchDimensions:
        """A block for each tile."""
        return LaunchDimensions.along_x(-(-self.concatenation.rows // self.schedule.rows), self.schedule.threads)

    def _steps(self, width: int, run: int) -> IndexingMap:
        """Return (thread, block)[step, element] -> (place in the tile's rows, place in all rows), of ``width`` each."""
        elements, threads = self.schedule.rows * width, self.schedule.threads
        steps = math.ceil(elements / (threads * run))
        place = (symbol(0) * threads + dim(0)) * run + symbol(1)
        position = dim(1) * elements + place
        return IndexingMap(
            self.launch_dimensions().ranges,
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
        hero = self.tile_to_hero()
        return self._epilogues.output_map(output, replace(hero, results=hero.results[:-1]))

    @cached_property
    def _epilogues(self) -> Epilogues:
        return Epilogues(self.fusion, [hero.results[0] for hero in self.heroes])

    def emit(self) -> None:
        """Write the entry function, then the functions of prologues and epilogue."""
        walks = self.facts.walks([self.schedule.read] * len(self.pieces))
        prologues = [self.facts.prologue(walk) for walk in walks]
        types = [scalar_type(dtype_of(hero.results[0])) for hero in self.heroes]
        with entry_function(self.fusion, self, [*prologues, self._epilogues]) as kernel:
            position = kernel.position
            tiles = shared_tiles(self.schedule.rows * self.schedule.pitch, types)
            for numbers, prologue in zip(walks, prologues, strict=True):
                operand = self.thread_to_operand(numbers[0])
                addresses = [self.thread_to_tile(number).results[0] for number in numbers]
                both = replace(operand, results=(*operand.results, *addresses))
                with loop(both, position, tiles) as each:
                    rank = len(operand.results)
                    indices, places = each.result_arguments[:rank], each.result_arguments[rank:]
                    scalars = iter(prologue.emit_call([*kernel.inputs, *indices]))
                    for place in places:
                        put(list(islice(scalars, len(tiles))), tiles, [place])
            sync_threads(tiles)
            with loop(self.tile_to_hero(), position, kernel.outputs) as each:
                *indices, place = each.result_arguments
                self._epilogues.emit_stores(kernel, indices, [tile.extract([place]) for tile in tiles])


TILED_CONCATENATIONS = Family(
    heroes=HEROES,
    match=lambda candidate: walked(candidate, Walk.TILED),
    emitter=TiledConcatenateEmitter,
    facts=Concatenations,
    schedule=TiledConcatenateSchedule,
    results=requirements.results_follow,
)
