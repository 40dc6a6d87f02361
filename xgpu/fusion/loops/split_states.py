"""Loops over states of few numbers a row, as quaternions and covariances are, with a state for each of the numbers.

In a Kalman filter each number of the next covariance depends on all of the present one, so that no thread can compute
its element alone. Of a filter's 20 numbers for each of many tracks a thread can hold all, though: short dimensions are
split, and what is left depends on its own track only. Sums over short dimensions, such as products of small matrices,
are written out.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import reduce

from xgpu import ir
from xgpu.analysis.constants.counters import counters_of, trip_count, unchanging
from xgpu.fusion.fallback import BARRIER
from xgpu.fusion.loops.elements import SCATTER, Elements, Index, NotSplit
from xgpu.fusion.loops.masks import Mask
from xgpu.fusion.loops.recurrences import Stacked, stacked_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.stablehlo_builder import hlo, inline_block, reduced, reshape, splat, tensor
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.records import dataclass
from xgpu.structure import body_of, dtype_of, element_of, is_used, producer, terminator_of

LONGEST = (16, 8, 4)
"""Longest dimensions that are split, tried one after the other: a batch may be short as well."""
_MOST_STATES = 96
"""States that a loop is given at most, stacked results included."""
_MOST_MADE = 2048
"""Operations that are made at most, but for those that only move elements."""


@dataclass(frozen=True)
class SplitLoop:
    """A loop with a state for each number, and what the results of the loop before are made of its results."""

    loop: ir.Operation
    results: tuple[ir.Value, ...]
    _made: tuple[ir.Operation, ...]
    """All operations that were made, in their order."""

    def erase(self) -> None:
        """Erase it and what was made around it."""
        for op in reversed(self._made):
            op.erase()


def with_split_states(loop: ir.Operation, longest: int) -> SplitLoop | None:
    """Return ``loop``, written again before it, with dimensions of up to ``longest`` elements of its states split.

    None if neither its trip count is known nor a mask says how often each row runs, if it has nothing to split, or too
    much, or if an element needs one of another row.
    """
    slots = _slots_of(loop, longest)
    if slots is None or sum(_operations(view.operation, longest) for view in body_of(loop, 1).operations) > _MOST_MADE:
        return None
    with loop.location, ir.InsertionPoint(loop):
        before = producer(splat(0, tensor([], "i32")))
        new, results = _Writer(loop, slots, longest), list[ir.Value]()
        try:
            new.write()
            results = list(new.joined())
        except NotSplit:
            pass
    split = SplitLoop(new.loop, tuple(results), between(before, loop))
    before.erase()
    if results:
        return split
    split.erase()
    return None


def _operations(op: ir.Operation, longest: int) -> float:
    """Return how many operations compute all elements of an operation's results; infinite if that cannot be."""
    if op.name == SCATTER:
        return math.prod(
            size for value in (op.operands[0], op.operands[2]) for size in shape_of(value) if size <= longest
        )
    if op.name not in OPERATIONS:
        return 0 if op.name in (BARRIER, "stablehlo.return") else math.inf
    kind = OPERATIONS[op.name].kind
    sums = [interval.size for interval in accesses(op)[0].map.symbols] if kind in ("reduce", "contract") else []
    if max(sums, default=0) > longest:
        return math.inf
    short = (size for size in shape_of(op.results[0]) if size <= longest)
    return math.prod(short) * math.prod(sums) * (kind not in ("indexing", "piecewise"))


@dataclass(frozen=True)
class _Slot:
    """A state of the new loop: some of the elements of state ``number``, or all that it stacks up of them."""

    number: int
    index: Index
    type: ir.RankedTensorType
    stacked: Stacked | None


def _slots_of(loop: ir.Operation, longest: int) -> list[_Slot] | None:
    """Return the states of the new loop; None if there are none to split, or too many."""
    counters = counters_of(loop)
    trips = trip_count(loop, counters)
    if trips is None and Mask.of(loop) is None:
        return None
    slots: list[_Slot] = []
    body = body_of(loop, 1)
    for number, argument in enumerate(body.arguments):
        if unchanging(argument, loop) != argument:
            continue
        stacked = None if number in counters or trips is None else stacked_of(loop, number, counters, trips)
        shape = shape_of(argument)
        whole = () if stacked is None else (stacked.dimension,)
        short = [size for i, size in enumerate(shape) if size <= longest and i not in whole]
        if 0 in shape or dtype_of(argument).is_packed or len(slots) + math.prod(short) > _MOST_STATES:
            return None
        for index in indices_of(shape, longest, whole):
            left = [size for size, at in zip(shape, index, strict=True) if at is None]
            slots.append(_Slot(number, index, tensor(left, element_of(argument)), stacked))
    changing = {slot.number for slot in slots}
    return slots if len(slots) > len(changing) or _has_short_rows(body, longest) else None


def _has_short_rows(body: ir.Block, longest: int) -> bool:
    """Whether something is computed in a loop's body that has both short dimensions and others."""
    shapes = [shape_of(result) for view in body.operations for result in view.operation.results]
    return any(min(shape, default=0) <= longest < max(shape, default=0) for shape in shapes)


def indices_of(shape: Shape, longest: int, whole: Sequence[int] = ()) -> Iterator[Index]:
    """Yield the indices of what an array is split into; dimensions in ``whole`` are not split."""
    choices = [range(size) if size <= longest and i not in whole else (None,) for i, size in enumerate(shape)]
    yield from itertools.product(*choices)


def between(first: ir.Operation, last: ir.Operation) -> tuple[ir.Operation, ...]:
    """Return the operations between two of a block."""
    operations = iter([view.operation for view in first.block.operations])
    after = itertools.islice(itertools.dropwhile(lambda op: op != first, operations), 1, None)
    return tuple(itertools.takewhile(lambda op: op != last, after))


class _Writer:
    """Writes a loop again with other states."""

    def __init__(self, loop: ir.Operation, slots: Sequence[_Slot], longest: int):
        self._old, self._slots, self._longest = loop, slots, longest
        self.loop: ir.Operation = loop

    def write(self) -> None:
        """Write the loop at the current insertion point; raises `NotSplit` if it cannot be."""
        outside = Elements(self._old, self._longest, {})
        starts = [outside.of(self._old.operands[slot.number], slot.index) for slot in self._slots]
        types = [slot.type for slot in self._slots]
        self.loop = ir.Operation.create("stablehlo.while", results=types, operands=starts, regions=2)
        blocks = [region.blocks.append(*types) for region in self.loop.regions]
        with ir.InsertionPoint(blocks[0]):
            hlo.return_(self._condition(blocks[0]))
        with ir.InsertionPoint(blocks[1]):
            hlo.return_(self._next(blocks[1]))

    def _condition(self, block: ir.Block) -> list[ir.Value]:
        old = body_of(self._old, 0)
        if (mask := Mask.of(self._old)) is not None:
            return [self._masked(mask, self._elements(old, block))]
        numbers = {slot.number: i for i, slot in enumerate(self._slots) if not slot.type.rank}
        used = [number for number, argument in enumerate(old.arguments) if list(argument.uses)]
        values: list[ir.Value] = list(old.arguments)
        for number in used:
            around = unchanging(body_of(self._old, 1).arguments[number], self._old)
            if around.owner != body_of(self._old, 1):
                values[number] = around
            elif number in numbers and not shape_of(old.arguments[number]):
                values[number] = block.arguments[numbers[number]]
            else:
                raise NotSplit
        return inline_block(old, values)

    def _masked(self, mask: Mask, elements: Elements) -> ir.Value:
        """Return whether any element of a mask is true, and all numbers are; rows have an element each."""
        rank = len(shape_of(mask.elements))
        if min(shape_of(mask.elements)) <= self._longest:
            raise NotSplit
        rows = elements.of(mask.elements, (None,) * rank)
        numbers = [elements.of(number, ()) for number in mask.numbers]
        start = splat(0, tensor([], element_of(rows)))
        return reduce(hlo.and_, numbers, reduced(rows, start, range(rank), hlo.or_))

    def _elements(self, old: ir.Block, block: ir.Block) -> Elements:
        """Return what makes elements of the values of a block of the old loop, in that of the new one."""
        pairs = list(zip(self._slots, block.arguments, strict=True))
        known = {(old.arguments[slot.number], slot.index): new for slot, new in pairs if slot.stacked is None}
        return Elements(self._old, self._longest, known)

    def _next(self, block: ir.Block) -> list[ir.Value]:
        old = body_of(self._old, 1)
        elements, end = self._elements(old, block), terminator_of(old)
        return [
            elements.of(end.operands[slot.number], slot.index)
            if slot.stacked is None
            else self._stacked(slot, new, elements)
            for slot, new in zip(self._slots, block.arguments, strict=True)
        ]

    def _stacked(self, slot: _Slot, array: ir.Value, elements: Elements) -> ir.Value:
        """Return an array with a slice written to it."""
        assert slot.stacked is not None
        cut = slot.stacked.dimension
        end = terminator_of(body_of(self._old, 1))
        update = producer(end.operands[slot.number])
        index = tuple(0 if i == cut else at for i, at in enumerate(slot.index))
        sizes = [1 if i == cut else size for i, size in enumerate(shape_of(update.results[0])) if slot.index[i] is None]
        part = reshape(elements.of(update.operands[1], index), sizes)
        start = elements.of(update.operands[2 + cut], ())
        zero = splat(0, ir.RankedTensorType(start.type))
        left = [i for i, at in enumerate(slot.index) if at is None]
        return hlo.dynamic_update_slice(array, part, [start if i == cut else zero for i in left])

    def joined(self) -> Iterator[ir.Value]:
        """Yield the results of the old loop, made of those of the new one at the current insertion point."""
        parts: dict[int, list[tuple[Index, ir.Value]]] = {}
        for slot, result in zip(self._slots, self.loop.results, strict=True):
            parts.setdefault(slot.number, []).append((slot.index, result))
        for number, result in enumerate(self._old.results):
            if number not in parts or not is_used(result):
                yield self._old.operands[number]
            else:
                yield _joined(shape_of(result), [index for index, _ in parts[number]], [v for _, v in parts[number]])


def _joined(shape: Shape, indices: Sequence[Index], parts: Sequence[ir.Value]) -> ir.Value:
    """Return an array of its parts, which are in row-major order."""
    if len(parts) == 1:
        return reshape(parts[0], shape)
    long = [i for i, at in enumerate(indices[0]) if at is None]
    short = [i for i, at in enumerate(indices[0]) if at is not None]
    left = [shape[i] for i in long]
    rows = hlo.concatenate([reshape(part, [*left, 1]) for part in parts], len(long))
    array = reshape(rows, [*left, *(shape[i] for i in short)])
    order = [*long, *short]
    return array if order == sorted(order) else hlo.transpose(array, [order.index(i) for i in range(len(shape))])
