"""Loops that are one kernel: each element of the next state depends on the same element of the present one.

``lax.scan`` and ``fori_loop`` are ``stablehlo.while`` operations whose state is of five kinds: counters, arrays that do
not change, stacked inputs among them, of which an iteration reads a slice; stacked results, of which it writes one;
and what the loop is about, here called its states. If how often it runs is known, a thread can go through all
iterations with its elements of the states in registers: nothing but stacked arrays is read and written.

Elements may also depend on those of their row, by reductions of rows that some lanes of a warp have together.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from xgpu import ir
from xgpu.analysis.constants.counters import Counter, counters_of, numbers_of, trip_count, unchanging
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.in_place import UPDATE_SLICE
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.fusion.loops.masks import Mask
from xgpu.indexing.access import Shape, dims, integers, ranges, shape_of
from xgpu.indexing.affine import AffineExpr, delinearize, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import body_of, is_result_of, producer, terminator_of

_MOST_TRIPS = (1 << 31) - 64
"""Iterations that an index of 32 bits counts, even if rounded up."""
MOST_LANES = 32
"""Longest row whose elements lanes of one warp hold."""


@dataclass(frozen=True)
class Stacked:
    """A result of which each iteration writes one slice, and all iterations together every slice.

    ``dimension`` is the one that is sliced; slice ``first`` is written first, then ``step`` further on, 1 or -1.
    ``update`` is the value that is written.
    """

    dimension: int
    first: int
    step: int
    update: ir.Value

    @property
    def shape(self) -> Shape:
        """The shape of a slice, without the dimension that is sliced."""
        shape = shape_of(self.update)
        return shape[: self.dimension] + shape[self.dimension + 1 :]

    def place(self, time: AffineExpr, indices: Sequence[AffineExpr]) -> tuple[AffineExpr, ...]:
        """Return where iteration ``time`` stores the element of a slice at ``indices``."""
        place = list(indices)
        place.insert(self.dimension, time * self.step + self.first)
        return tuple(place)


@dataclass(frozen=True)
class Recurrence:
    """A loop of ``trips`` iterations; its counters, states and stacked results by their number in its state.

    Elements of ``shape`` are computed each for itself, but for the ``heroes``: reductions over rows of ``lanes``
    neighbouring elements. Other arrays have as many elements, or one for so many neighbours. If it has a ``mask``, each
    element goes through as many iterations as that says, and there are no counters and stacked results.
    """

    loop: ir.Operation
    trips: int
    counters: Mapping[int, Counter]
    states: tuple[int, ...]
    stacked: Mapping[int, Stacked]
    heroes: tuple[ir.Operation, ...]
    shape: Shape
    lanes: int
    mask: Mask | None = None

    @classmethod
    def of(cls, loop: ir.Operation) -> "Recurrence | None":
        """Return what kinds of state a loop has; None if it is not known how often it runs, or shapes do not fit.

        That the elements of its states depend on each other is another question, which `Step` answers.
        """
        counters = counters_of(loop)
        trips = trip_count(loop, counters)
        if trips is None:
            return cls._masked(loop)
        if not 0 < trips <= _MOST_TRIPS:
            return None
        (body,) = loop.regions[1].blocks
        changing = [
            number
            for number, argument in enumerate(body.arguments)
            if number not in counters and unchanging(argument, loop) == argument
        ]
        found = {number: stacked_of(loop, number, counters, trips) for number in changing}
        stacked = {number: each for number, each in found.items() if each is not None}
        states = tuple(number for number in changing if number not in stacked)
        arrays = [*(body.arguments[number] for number in states), *(each.update for each in stacked.values())]
        shapes = [*(shape_of(body.arguments[i]) for i in states), *(each.shape for each in stacked.values())]
        if not arrays or any(map(is_packed, arrays)) or not all(map(math.prod, shapes)):
            return None
        for heroes in (_row_reductions(body), ()):
            shape = shape_of(heroes[0].operands[0]) if heroes else max(shapes, key=math.prod)
            if not any(math.prod(shape) % math.prod(each) for each in shapes):
                return cls(
                    loop, trips, counters, states, stacked, heroes, shape, max(map(_row_length, heroes), default=1)
                )
        return None

    @classmethod
    def _masked(cls, loop: ir.Operation) -> "Recurrence | None":
        """Return what kinds of state a loop has of which each element runs as often as a mask says."""
        mask = Mask.of(loop)
        if mask is None or not mask.keeps_states(loop):
            return None
        body = body_of(loop, 1)
        states = tuple(i for i, argument in enumerate(body.arguments) if unchanging(argument, loop) == argument)
        arrays = [*(body.arguments[number] for number in states), mask.elements]
        shape = max(map(shape_of, arrays), key=math.prod)
        sizes = [math.prod(shape_of(array)) for array in arrays]
        if (
            not states
            or any(map(is_packed, arrays))
            or not all(sizes)
            or any(math.prod(shape) % size for size in sizes)
        ):
            return None
        return cls(loop, 0, {}, states, {}, (), shape, 1, mask)

    @property
    def conditions(self) -> list[ir.Value]:
        """The values that must all be true for an element to go on, if it has a mask."""
        return [] if self.mask is None else [self.mask.elements, *self.mask.numbers]

    @property
    def next_states(self) -> list[ir.Value]:
        """The values of the states after an iteration."""
        (body,) = self.loop.regions[1].blocks
        end = terminator_of(body)
        return [end.operands[number] for number in self.states]

    @property
    def results(self) -> list[ir.Value]:
        """The results of an iteration: the next states, then the stacked slices."""
        return [*self.next_states, *(each.update for each in self.stacked.values())]

    def sharing(self, own: Shape) -> int:
        """Return how many neighbours of ``shape`` share an element of another array."""
        return math.prod(self.shape) // math.prod(own)

    def map_to(self, own: Shape) -> IndexingMap:
        """Return the map from the indices of ``shape`` to those of another array."""
        indices = tuple(dims(len(self.shape)))
        position = linearize(indices, self.shape)
        results = delinearize(position // self.sharing(own), own)
        return IndexingMap(ranges(self.shape), (), indices if own == self.shape else tuple(results)).simplify()


def _row_reductions(body: ir.Block) -> tuple[ir.Operation, ...]:
    """Return the row reductions of a loop's body over its largest arrays that lanes of a warp can share."""
    found = [op.operation for op in body.operations if op.operation.name == "stablehlo.reduce"]
    found = [op for op in found if _row_length(op) > 1 and is_commutative(op)]
    if not found:
        return ()
    first = max(found, key=lambda op: math.prod(shape_of(op.operands[0])))
    alike = [op for op in found if _layout(op) == _layout(first)]
    return (first, *(op for op in alike if op != first))


def _layout(op: ir.Operation) -> tuple[int, int]:
    """Return how many elements a reduction has, and how many for each result."""
    return math.prod(shape_of(op.operands[0])), _row_length(op)


def _row_length(op: ir.Operation) -> int:
    """Return how many neighbours a reduction combines; 0 if lanes of a warp cannot share them."""
    shape, reduced = shape_of(op.operands[0]), sorted(integers(op, "dimensions"))
    length = math.prod(shape[i] for i in reduced)
    is_inner = reduced == list(range(len(shape) - len(reduced), len(shape)))
    return length if is_inner and length <= MOST_LANES and length & (length - 1) == 0 else 0


def stacked_of(loop: ir.Operation, number: int, counters: Mapping[int, Counter], trips: int) -> Stacked | None:
    """Return how the array ``number`` of a loop's state is stacked up; None if it is not, or not as a whole."""
    (body,) = loop.regions[1].blocks
    end = terminator_of(body)
    argument, result = body.arguments[number], end.operands[number]
    if not is_result_of(result, UPDATE_SLICE):
        return None
    op = producer(result)
    if op.operands[0] != argument or any(len(list(value.uses)) != 1 for value in (argument, result)):
        return None
    whole, part = shape_of(argument), shape_of(op.operands[1])
    cut = [i for i, (size, own) in enumerate(zip(whole, part, strict=True)) if size != own]
    if len(cut) != 1 or part[cut[0]] != 1 or whole[cut[0]] != trips:
        return None
    numbers = numbers_of(op.operands[2 + cut[0]], counters, loop, trips)
    if numbers is None:
        return None
    for step in (1, -1):
        if np.array_equal(numbers, np.arange(trips)[::step]):
            return Stacked(cut[0], int(numbers[0]), step, op.operands[1])
    return None
