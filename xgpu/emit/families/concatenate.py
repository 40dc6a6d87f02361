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
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Self

from xgpu import ir
from xgpu.analysis.concatenations import Concatenation, Walk, concatenation_of
from xgpu.emit import requirements
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.epilogue import Epilogues
from xgpu.emit.families.loop import block_field, elements_per_byte, elements_per_thread, run_field
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import entry_function, loop
from xgpu.emit.schedule import Schedule
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.fusion.grouping.families import Candidate, Heroes, Match
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import backward_slice, is_argument, is_constant

_JOINED = Reason("a walk over the operands of a concatenation, each in its own order")


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

    def walks(self, runs: Sequence[int]) -> list[list[int]]:
        """Return the numbers of pieces in sets: a thread computes elements of each at once, what they share but once.

        Of each piece it reads and writes as many elements together as ``runs`` say.
        """
        numbers = {piece: number for number, piece in enumerate(self.concatenation.pieces)}
        found: list[list[int]] = []
        for pieces in self.concatenation.alike(runs):
            sets: list[tuple[list[int], set[ir.Value]]] = []
            for piece in pieces:
                read = _read_for([hero.operands[piece.operand] for hero in self.heroes])
                same = [each for each in sets if not read.isdisjoint(each[1])]
                sets = [each for each in sets if each not in same]
                members = [number for each, _ in same for number in each]
                sets.append(([*members, numbers[piece]], read.union(*(values for _, values in same))))
            found += [sorted(members) for members, _ in sets]
        return sorted(found)

    def prologue(self, walk: Sequence[int]) -> SubgraphFunctions:
        """Return the functions that compute an element of pieces that are walked together, of every hero."""
        return operand_functions(self.fusion, self.heroes, [self._operand(number) for number in walk])

    def _operand(self, number: int) -> int:
        return self.concatenation.pieces[number].operand

    @property
    def largest(self) -> int:
        """The elements of the largest operand."""
        return max(piece.elements for piece in self.concatenation.pieces)


@dataclass(frozen=True)
class ConcatenateSchedule(Schedule):
    """The division of a concatenation among threads: each takes ``vector`` elements of every operand."""

    threads: int = block_field()
    vector: int = run_field("Elements that a thread takes of each operand, in one access or several narrower ones.")

    @classmethod
    def of(cls, facts: Concatenations) -> Self:
        """Choose as the loop emitter does, for an array of the largest operand's size."""
        return cls(facts.fusion.options.threads_per_block, elements_per_thread(facts.fusion, facts.largest))

    def problems(self, facts: Concatenations) -> Iterator[str]:
        """A thread writes whole bytes of the results."""
        least = elements_per_byte(facts.fusion)
        layout = facts.concatenation
        if self.vector < least or min(layout.run(piece, self.vector) for piece in layout.pieces) < least:
            yield self.wrong("vector", f"{least} or more, and operands that do not share bytes of the result")


class ConcatenateEmitter:
    """Emits a fusion around concatenations."""

    NAME = "concatenate"

    def __init__(self, facts: Concatenations, schedule: ConcatenateSchedule):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.facts, self.heroes, self.concatenation = facts, facts.heroes, facts.concatenation
        self.pieces = self.concatenation.pieces
        self.largest = facts.largest

    def run(self, number: int) -> int:
        """Return how many consecutive elements of a piece a thread reads and writes at once."""
        return self.concatenation.run(self.pieces[number], self.schedule.vector)

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks along x that cover the largest operand once."""
        return LaunchDimensions.covering(self.largest, self.schedule.threads, self.schedule.vector)

    def thread_to_operand(self, number: int) -> IndexingMap:
        """Return (thread, block)[access, element] -> indices of the operand that piece ``number`` comes from."""
        launch, run, piece = self.launch_dimensions(), self.run(number), self.pieces[number]
        accesses = self.schedule.vector // run
        position = ((dim(1) * accesses + symbol(0)) * launch.block[0] + dim(0)) * run + symbol(1)
        return IndexingMap(
            launch.ranges,
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
        return self._epilogues.output_map(output, self.thread_to_hero(piece))

    @cached_property
    def _epilogues(self) -> Epilogues:
        return Epilogues(self.fusion, [hero.results[0] for hero in self.heroes])

    def emit(self) -> None:
        """Write the entry function, then the functions of prologues and epilogue."""
        walks = self.facts.walks([self.run(number) for number in range(len(self.pieces))])
        prologues = [self.facts.prologue(walk) for walk in walks]
        axis = self.concatenation.axis
        with entry_function(self.fusion, self, [*prologues, self._epilogues]) as kernel:
            for numbers, prologue in zip(walks, prologues, strict=True):
                operand = self.thread_to_operand(numbers[0])
                along = [self.thread_to_hero(number).results[axis] for number in numbers]
                both = replace(operand, results=(*operand.results, *along))
                with loop(both, kernel.position, kernel.outputs) as each:
                    rank = len(operand.results)
                    indices, places = each.result_arguments[:rank], each.result_arguments[rank:]
                    scalars = iter(prologue.emit_call([*kernel.inputs, *indices]))
                    for place in places:
                        indices[axis] = place
                        self._epilogues.emit_stores(kernel, indices, list(islice(scalars, len(self.heroes))))


def operand_functions(fusion: Fusion, heroes: Sequence[ir.Operation], operands: Sequence[int]) -> SubgraphFunctions:
    """Return the functions that compute an element of these operands, all of one shape, of every hero."""
    name = "_".join(["operand", *map(str, operands)])
    return SubgraphFunctions.of(fusion, name, [hero.operands[i] for i in operands for hero in heroes])


def _read_for(values: Sequence[ir.Value]) -> set[ir.Value]:
    """Return the values from which ``values`` are computed, but for constants; they themselves are among them."""
    read = set(values)
    for op in backward_slice(values, is_argument):
        read.update(op.operands)
    return {value for value in read if not is_constant(value)}


def _key(op: ir.Operation) -> Hashable | None:
    """Return the layout of a concatenation."""
    is_one = op.name == "stablehlo.concatenate" and math.prod(shape_of(op.results[0])) > 0
    return concatenation_of(op) if is_one else None


HEROES = Heroes("concatenations of one layout", _key)


def walked(candidate: Candidate, walk: Walk) -> Match | None:
    """Take the concatenations of a candidate if ``walk`` is their fastest."""
    joined = candidate.moves.joined
    return Match(joined[0], _JOINED) if joined is not None and joined[1] is walk else None


CONCATENATIONS = Family(
    heroes=HEROES,
    match=lambda candidate: walked(candidate, Walk.DIRECT),
    emitter=ConcatenateEmitter,
    facts=Concatenations,
    schedule=ConcatenateSchedule,
    results=requirements.results_follow,
)
