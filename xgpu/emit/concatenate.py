"""The concatenate emitter: threads walk the operands, one after the other, and write each where it belongs.

Heroes are concatenations of one layout. Thread after thread takes consecutive elements of an operand, as many as one
access holds, so that reads coalesce whatever the operand's size; what lies together in the result is written together.
How wide an access is depends on where the operand's pieces lie in the result; with narrower accesses a thread makes
more of them, a block's threads apart, so that a block moves the same number of bytes of every operand: 2 KiB with 128
threads, 16 bytes a thread. The grid is that of the largest operand; of smaller ones only the first blocks have a part.
The values of the operands at an element are computed by a prologue for each, the results by one epilogue. (Source of
the iteration space: XLA's concatenate emitter, which takes the largest operand's shape for all of them.)
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from xgpu import ir
from xgpu.dialects.xgpu import LoopOp, PureCallOp, YieldOp
from xgpu.emit.base import Fusion, LaunchDimensions, entry_function, thread_and_block
from xgpu.emit.builders import Values
from xgpu.emit.epilogue import Epilogue, epilogues
from xgpu.emit.loop import block_field, elements_per_byte, elements_per_thread, run_field
from xgpu.emit.schedule import Schedule
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.fusion.concatenations import DIRECT, Concatenation, concatenation_of
from xgpu.indexing.affine import delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.partition.subgraphs import partition


@dataclass(frozen=True)
class Concatenations:
    """A fusion around concatenations of one layout."""

    fusion: Fusion

    @property
    def heroes(self) -> list[ir.Operation]:
        """The concatenations."""
        return self.fusion.heroes

    @cached_property
    def concatenation(self) -> Concatenation:
        """Their layout."""
        return concatenation_of(self.heroes[0])

    @property
    def largest(self) -> int:
        """The elements of the largest operand."""
        return max(piece.elements for piece in self.concatenation.pieces)


@dataclass(frozen=True)
class ConcatenateSchedule(Schedule):
    """How threads share the operands of concatenations: each takes ``vector`` elements of every operand."""

    threads: int = block_field()
    vector: int = run_field("Elements that a thread takes of each operand, in one access or several narrower ones.")

    @classmethod
    def of(cls, facts: Concatenations) -> Self:
        """As the loop emitter has them, for an array of the largest operand's size."""
        return cls(facts.fusion.options.threads_per_block, elements_per_thread(facts.fusion, facts.largest))

    def problems(self, facts: Concatenations) -> Iterator[str]:
        """A thread writes whole bytes of the results."""
        least = elements_per_byte(facts.fusion)
        layout = facts.concatenation
        if self.vector < least or min(layout.run(piece, self.vector) for piece in layout.pieces) < least:
            yield self.wrong("vector", f"{least} or more, and operands that do not share bytes of the result")


class ConcatenateEmitter:
    """Emits a fusion around concatenations."""

    NAME = DIRECT

    def __init__(self, facts: Concatenations, schedule: ConcatenateSchedule):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.heroes, self.concatenation = facts.heroes, facts.concatenation
        self.pieces = self.concatenation.pieces
        self.largest = facts.largest

    def run(self, number: int) -> int:
        """Return how many consecutive elements of a piece a thread reads and writes at once."""
        return self.concatenation.run(self.pieces[number], self.schedule.vector)

    def launch_dimensions(self) -> LaunchDimensions:
        """As many blocks along x as cover the largest operand once."""
        threads = self.schedule.threads
        return LaunchDimensions((math.ceil(self.largest / (threads * self.schedule.vector)), 1, 1), (threads, 1, 1))

    def thread_to_operand(self, number: int) -> IndexingMap:
        """Return (thread, block)[access, element] -> indices of the operand that piece ``number`` comes from."""
        launch, run, piece = self.launch_dimensions(), self.run(number), self.pieces[number]
        threads, blocks = launch.block[0], launch.grid[0]
        accesses = self.schedule.vector // run
        position = ((dim(1) * accesses + symbol(0)) * threads + dim(0)) * run + symbol(1)
        return IndexingMap(
            (Interval(0, threads - 1), Interval(0, blocks - 1)),
            (Interval(0, accesses - 1), Interval(0, run - 1)),
            delinearize(position, piece.shape),
            ((position, Interval(0, piece.elements - 1)),),
        ).simplify()

    def thread_to_hero(self, number: int) -> IndexingMap:
        """Return (thread, block)[access, element] -> indices of the concatenation where piece ``number`` is written."""
        operand, axis = self.thread_to_operand(number), self.concatenation.axis
        results = list(operand.results)
        results[axis] = results[axis] + self.pieces[number].offset
        return replace(operand, results=tuple(results))

    def thread_to_output(self, output: int, piece: int = 0) -> IndexingMap:
        """Return (thread, block)[access, element] -> indices of an output that follow from piece ``piece``."""
        form = next(each.form for each in self._epilogues() if output in each.numbers)
        return self.thread_to_hero(piece).compose(form.forward).simplify()

    def _epilogues(self) -> list[Epilogue]:
        heroes = [hero.results[0] for hero in self.heroes]
        return epilogues(self.fusion, heroes, range(len(self.fusion.results)))

    def emit(self) -> None:
        """Write the entry function, then the functions of prologues and epilogue."""
        prologues = [operand_functions(self.fusion, self.heroes, piece.operand) for piece in self.pieces]
        after = self._epilogues()
        block = entry_function(self.fusion, self)
        arguments: Values = list(block.arguments)
        count = len(self.fusion.parameter_types)
        inputs, outputs = arguments[:count], arguments[count:]
        with ir.InsertionPoint(block):
            position = thread_and_block(self.launch_dimensions())
            for number, prologue in enumerate(prologues):
                outputs = self._emit_piece(number, prologue, after, position, inputs, outputs)
            ir.func.return_(outputs)
        for prologue in prologues:
            prologue.emit()
        for each in after:
            each.functions.emit()

    def _emit_piece(
        self,
        number: int,
        prologue: SubgraphFunctions,
        after: list[Epilogue],
        position: Values,
        inputs: Values,
        outputs: Values,
    ) -> Values:
        """Write the part of every output that comes from one piece; return the outputs."""
        operand, axis = self.thread_to_operand(number), self.concatenation.axis
        along = operand.results[axis] + self.pieces[number].offset
        loop = LoopOp.build(replace(operand, results=(*operand.results, along)), position, outputs)
        with ir.InsertionPoint(loop.body):
            *indices, index_along = loop.result_arguments
            types = prologue.result_types(prologue.partition.subgraphs[0])
            scalars = PureCallOp.build(prologue.names[0], [*inputs, *indices], types)
            indices[axis] = index_along
            new = dict(enumerate(loop.carried_arguments))
            for each in after:
                each.emit_stores(inputs, indices, scalars, new)
            YieldOp.build([new[i] for i in range(len(outputs))])
        return list(loop.operation.results)


def operand_functions(fusion: Fusion, heroes: Sequence[ir.Operation], operand: int) -> SubgraphFunctions:
    """Return the functions that compute an element of operand number ``operand`` of every hero."""
    parts = partition(fusion.body, [hero.operands[operand] for hero in heroes])
    return SubgraphFunctions(f"{fusion.name}__operand_{operand}", parts, list(fusion.body.arguments))
