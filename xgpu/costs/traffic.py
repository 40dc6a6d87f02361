"""The bytes that a kernel reads and writes: of arrays updated in place the updates, of all others what is needed.

Each element counts once, however often threads read it: the rest comes from caches. What is read of an array at places
that lie apart counts with all that memory moves for it, where a kernel is too small for that to be hidden.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from xgpu import ir
from xgpu.analysis.heroes import combined, combines_many
from xgpu.analysis.in_place import SCATTER, UPDATE_SLICE, updates_of
from xgpu.costs.footprint import elements_read
from xgpu.costs.recomputation import MOST_VISITED
from xgpu.costs.sectors import SECTOR_BYTES
from xgpu.costs.values import byte_size, elements, instructions, is_immediate
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import Access, identity_map, shape_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import defining_op, dtype_of, producer

type ReadByLoop = Callable[[ir.Operation], Sequence[ir.Value] | None]
"""Returns the arrays that an operation reads as a whole which is a kernel's loop, None for any other operation."""


def moved_bytes(block: ir.Block, aliases: Sequence[int], read_by_loop: ReadByLoop) -> int:
    """Return the bytes that the kernel of a fusion with this body reads and writes, at most.

    ``aliases`` tells for each output the number of the argument that it updates in place, or is negative.
    """
    *operations, end = (op.operation for op in block.operations)
    needed: dict[ir.Value, int] = {}
    written = 0
    for output, alias in zip(end.operands, aliases, strict=True):
        count = elements(_updates(output) if alias >= 0 else output)
        _need(needed, output, count)
        written += byte_size(output, count)
    for op in reversed(operations):
        if (read := read_by_loop(op)) is not None:
            for value in read:
                _need(needed, value, elements(value))
        elif (most := max((needed.get(result, 0) for result in op.results), default=0)) > 0:
            for operand, count in zip(op.operands, elements_read(op, most), strict=True):
                _need(needed, operand, count)
    return written + sum(byte_size(argument, needed.get(argument, 0)) for argument in block.arguments)


def _updates(output: ir.Value) -> ir.Value:
    """Return how many elements of an output are written: all, but for slices and scatters that update in place."""
    if producer(output).name not in (UPDATE_SLICE, SCATTER):
        return output
    number: int = ir.OpResult(output).result_number
    return updates_of(producer(output))[number]


def _need(needed: dict[ir.Value, int], value: ir.Value, count: int) -> None:
    """Add ``count`` to the elements needed of ``value``: those of two consumers are taken to be different."""
    needed[value] = min(elements(value), needed.get(value, 0) + count)


type _Neighbours = tuple[tuple[int, ...], tuple[int, ...]] | None
"""The indices at which two threads beside each other read an array, None if only run time tells how far apart."""

_FOLLOWED = ("elementwise", "indexing", "piecewise")
_MADE = ("stablehlo.iota",)


class Slices:
    """Slices of values, for walks that reach the same ones: how each is made is found out once.

    The operations have to stay as they are as long as this is used.
    """

    def __init__(self) -> None:
        self._known: dict[ir.Value, Made] = {}

    def made(self, value: ir.Value) -> "Made":
        """Return how a value is made."""
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = Made(value, self)
        return found


class Made:
    """The way a value is made, by an operation that is followed element by element or from elsewhere."""

    def __init__(self, value: ir.Value, slices: Slices):
        self.value, self._slices = value, slices
        self.op = defining_op(value)

    @cached_property
    def is_followed(self) -> bool:
        """Whether an operation computes each element from few others."""
        return self.op is not None and self.op.name in OPERATIONS and (self.combined > 1 or self._is_of_one)

    @property
    def _is_of_one(self) -> bool:
        return self.op is not None and access_kind(self.op) in _FOLLOWED

    @cached_property
    def combined(self) -> int:
        """The elements of each operand that an element is combined of: several where each consumer does that again."""
        return 1 if self.op is None or combines_many(self.op) else combined(self.op)

    @cached_property
    def is_counted(self) -> bool:
        """Whether the value is made of indices alone."""
        return self.op is not None and self.op.name in _MADE

    @cached_property
    def is_immediate(self) -> bool:
        """Whether the value costs nothing."""
        return is_immediate(self.value)

    @cached_property
    def elements(self) -> int:
        """The number of elements."""
        return elements(self.value)

    @cached_property
    def shape(self) -> Sequence[int]:
        """The sizes of the dimensions."""
        return shape_of(self.value)

    @cached_property
    def bits(self) -> int:
        """The bits of an element in memory."""
        return dtype_of(self.value).storage_bits

    @cached_property
    def instructions(self) -> int:
        """About how many instructions an element costs."""
        return 0 if self.op is None else instructions(self.op)

    @cached_property
    def operands(self) -> "Sequence[Made]":
        """The values that the operation reads, each once."""
        return [] if self.op is None else [self._slices.made(each) for each in dict.fromkeys(self.op.operands)]

    @cached_property
    def reads(self) -> "Sequence[_Read]":
        """The values that the operation reads, with its accesses: None for those at the indices of its own result."""
        assert self.op is not None
        all_, same, operands = accesses(self.op), identity_map(self.shape), list(self.op.operands)
        made = [self._slices.made(operands[each.operand]) for each in all_]
        at = [None if each.map == same and not each.runtime else (each, all_) for each in all_]
        return list(zip(made, at, strict=True))


type _Read = tuple[Made, tuple[Access, Sequence[Access]] | None]
"""A value that is read, with its access and all of the operation's."""


def bytes_touched(values: Sequence[ir.Value], slices: Slices | None = None) -> float:
    """Return the bytes that memory moves for an element of ``values``, of one shape, if one kernel computes them.

    Neighbours along the last dimension that lie apart in an array take a sector each, as do those whose places only run
    time tells. Of an array no more counts than all of its elements: caches hold what is touched again. ``slices`` keeps
    what is found of values for those that are asked for later.
    """
    starts = [(slices or Slices()).made(value) for value in values]
    shape, whole = starts[0].shape, starts[0].elements
    last = max((number for number, size in enumerate(shape) if size > 1), default=0)
    first, second = (0,) * len(shape), tuple(int(number == last) for number in range(len(shape)))
    pending: list[tuple[Made, _Neighbours, int]] = [(each, (first, second), 1) for each in starts]
    seen, bits = set(starts), 0.0
    while pending:
        made, places, times = pending.pop()
        if made.is_counted:
            continue
        if not made.is_followed or len(seen) > MOST_VISITED:
            bits += min(times * _bits_for_one(made.bits, made.shape, places), made.bits * made.elements / whole)
            continue
        for operand, at in made.reads:
            if operand not in seen and not operand.is_immediate:
                seen.add(operand)
                pending.append((operand, places if at is None else _places(*at, places), times * made.combined))
    return bits / 8


def _places(read: Access, reads: Sequence[Access], places: _Neighbours) -> _Neighbours:
    """Return the indices at which neighbours read an operand to compute a result at ``places``."""
    if places is None:
        return None
    starts = [[_at(reads[each.access].map, place) for each in read.runtime] for place in places]
    if starts[0] != starts[1]:
        return None
    first, second = (_at(read.map, place) for place in places)
    return first, second


@lru_cache(maxsize=1 << 14)
def _at(map_: IndexingMap, place: tuple[int, ...]) -> tuple[int, ...]:
    """Return the results of a map, whose indices of run time are 0, also where it says that nothing is read."""
    dims = [*place, *[0] * (len(map_.dims) - len(place))]
    return tuple(each.evaluate(dims, [0] * len(map_.symbols)) for each in map_.results)


def _bits_for_one(bits: int, shape: Sequence[int], places: _Neighbours) -> float:
    """Return the bits that memory moves for an element of an array of elements of so many bits."""
    sector = max(bits, 8 * SECTOR_BYTES)
    if places is None:
        return sector
    steps = [math.prod(shape[number + 1 :]) for number in range(len(shape))]
    apart = abs(sum([(b - a) * step for a, b, step in zip(*places, steps, strict=True)]))
    return min(bits * max(1, apart), sector)
