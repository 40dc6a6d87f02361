"""The cost to recompute a value, in bytes of memory traffic that take as long.

Kernels are bound by memory: a value is worth storing if reading it costs less than reading all its inputs. Only long
computations count beside those reads.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from xgpu import ir
from xgpu.analysis.transposes import transpose_of
from xgpu.costs.footprint import elements_read
from xgpu.costs.sectors import overfetch, passes
from xgpu.costs.time import bytes_per_instruction
from xgpu.costs.values import bytes_of, instructions, is_immediate
from xgpu.device import Device
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import identity_map, integers, shape_of
from xgpu.indexing.affine import linearize
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.numbered_block import Number, NumberedBlock
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of
from xgpu.target_machine import WARP_SIZE

_TRANSPOSE = "stablehlo.transpose"
_GATHER = "stablehlo.gather"
MOST_VISITED = 256
"""Operations after which a value is known to be expensive, and its slice is followed no further."""
MOST_MOVES = 24
"""Values after which the search for an element's origin ends."""
ELSEWHERE: Number = -1
"""Stands for values that a block does not read."""
LOAD = 8
"""Instructions that a load from a stored array costs, its index and the wait for caches included."""


@dataclass(frozen=True)
class Cost:
    """The cost to compute a value once: bytes read in all, instructions for each element with loads, and operations."""

    bytes: int
    instructions: float
    operations: int

    def instruction_bytes(self, times: float, target: Device) -> float:
        """Return the bytes that ``target`` moves while it executes these for so many elements, less a load for each.

        That is the one that reading the element would need.
        """
        return bytes_per_instruction(target) * max(self.instructions - LOAD, 0) * times


class Costs:
    """Costs of the values of a block, which are given by number; what is found of an operation is kept."""

    def __init__(self, block: NumberedBlock):
        self._block = block
        self._steps: list[_Step | None] = [None] * len(block.values)
        self._bits: list[int | None] = [None] * len(block.values)
        self._moved_from: dict[Number, Set[Number]] = {}
        self._passes: dict[tuple[ir.Value, ir.Value], float] = {}

    def byte_size(self, value: Number, count: int) -> int:
        """Return the bytes of ``count`` elements of an array."""
        bits = self._bits[value]
        if bits is None:
            bits = self._bits[value] = dtype_of(self._block.values[value]).storage_bits
        return bytes_of(count, bits)

    def moved_from(self, value: Number) -> Set[Number]:
        """Return the values of which one only has elements, if they are soon found.

        Those are what to store if they take long to compute: then the next step of a stencil reads one array, whether
        it is padded, rolled, or neither. To store the value pays only where finding its elements takes long as well.
        What lies around the block, and is not read in it, is `ELSEWHERE`.
        """
        found = self._moved_from.get(value)
        if found is None:
            origins = _moved_from(self._block.values[value])
            found = self._moved_from[value] = {self._block.numbers.get(each, ELSEWHERE) for each in origins}
        return found

    def passes_again(self, value: Number, is_stored: Callable[[Number], bool]) -> float:
        """Return the more passes through the first-level cache that a warp's load of neighbours takes if moved there.

        That is where a value only moves elements of one array; 0 for all others. As many as a warp has lanes, if each
        of them reads another line.
        """
        numbers, moved = self._block.numbers, self._block.values[value]
        array, map_ = moved, identity_map(shape_of(moved))
        while not is_stored(numbers[array]) and (read := _only_read(array)) is not None:
            array, map_ = read.value, map_.compose(read.map)
        if array == moved or not is_stored(numbers[array]):
            return 0.0
        key = moved, array
        if key not in self._passes:
            self._passes[key] = _passes_more(map_, array)
        return self._passes[key]

    def of(
        self,
        value: Number,
        stored_at: Mapping[Number, int],
        level: int,
        most: int = MOST_VISITED,
        is_known: Callable[[Number, int], bool] | None = None,
        has_tiles: bool = True,
    ) -> Cost:
        """Return the cost to compute a value in a kernel of ``level`` from stored values.

        ``stored_at`` has the level of the kernel that stores each stored value; a kernel reads those of lower levels. A
        stored array is read once for each element of its consumer, but each of its elements counts once at most. The
        slice is not followed beyond ``most`` operations, nor into values of which the kernel reads or computes so many
        elements anyway, which ``is_known`` tells. Unless the kernel ``has_tiles``, an element that it reads transposed
        costs a sector; a value that it reads in both ways counts as it is found first.
        """
        pending, read, seen = [(value, 1.0, 1.0)], dict[Number, int](), {value}
        steps, stored_level, total = self._steps, stored_at.get, 0.0
        while pending and len(seen) < most:
            each, touched, times = pending.pop()
            step = steps[each] or self._step(each)
            # Of what a sum of few numbers adds, several elements are computed for each.
            total += step.instructions * times if times > 1.0 else step.instructions
            is_apart, size = not (has_tiles and step.has_tile), step.elements
            for operand, count, apart in step.reads:
                is_stored = stored_level(operand, level) < level
                # What is asked last takes longest.
                if (not is_stored and operand in seen) or (is_known is not None and is_known(operand, count)):
                    continue
                own = apart if is_apart and apart > touched else touched
                if is_stored:
                    counted = round(own * count)
                    if operand not in read:
                        total += LOAD * times * count / size
                    if counted > read.get(operand, 0):
                        read[operand] = counted
                else:
                    seen.add(operand)
                    pending.append((operand, own, times * count / size))
        return Cost(sum([self.byte_size(each, count) for each, count in read.items()]), total, len(seen))

    def _step(self, value: Number) -> "_Step":
        maker = self._block.makers[value]
        assert maker is not None
        op, results = self._block.operations[maker], self._block.results[maker]
        most = elements_read(op, max(map(self._block.elements, results)))
        counts = zip(self._block.operands[maker], op.operands, most, _touched(op), strict=True)
        reads = tuple([(operand, count, apart) for operand, each, count, apart in counts if not is_immediate(each)])
        is_moved = op.name == _TRANSPOSE
        step = _Step(instructions(op), reads, is_moved, max(1, *map(self._block.elements, results)))
        for each in results:
            self._steps[each] = step
        return step


class _Read(NamedTuple):
    """A value that is read, and the map to its indices."""

    value: ir.Value
    map: IndexingMap


def _only_read(value: ir.Value) -> _Read | None:
    """Return the only value that one has elements of, at indices that are known; None if it is made in another way."""
    op = defining_op(value)
    if op is None or len(op.operands) != 1 or op.name not in OPERATIONS or access_kind(op) != "indexing":
        return None
    (access,) = accesses(op)
    return None if access.runtime else _Read(op.operands[0], access.map)


def _passes_more(map_: IndexingMap, array: ir.Value) -> float:
    """Return how many more passes neighbours in the middle of what is moved take than neighbours of the array."""
    shape = tuple(each.size for each in map_.dims)
    count, position = math.prod(shape), linearize(map_.results, shape_of(array))
    first = count // 2 // WARP_SIZE * WARP_SIZE
    lanes = range(first, min(first + WARP_SIZE, count))
    places = [position.evaluate([int(each) for each in np.unravel_index(lane, shape)]) for lane in lanes]
    bits = dtype_of(array).storage_bits
    moved, plain = (passes(np.array([each]), bits) for each in (places, list(lanes)))
    return max(moved - plain, 0.0)


def _moved_from(value: ir.Value) -> Set[ir.Value]:
    pending, seen, found = [value], {value}, set[ir.Value]()
    while pending and len(seen) <= MOST_MOVES:
        each = pending.pop()
        op = defining_op(each)
        if op is not None and op.name in OPERATIONS and access_kind(op) in ("indexing", "piecewise"):
            operands = set(op.operands) - seen
            seen |= operands
            pending += operands
        else:
            found.add(each)
    return found if len(seen) <= MOST_MOVES and value not in found else set()


@dataclass(frozen=True)
class _Step:
    """An operation's instructions for an element, and its operands with the most elements that it reads of each.

    Each comes with the elements' bytes that a warp touches for one that it reads; that does not count in kernels with
    tiles if ``has_tile``. ``elements`` are those of the result.
    """

    instructions: int
    reads: tuple[tuple[Number, int, float], ...]
    has_tile: bool
    elements: int


def _touched(op: ir.Operation) -> list[float]:
    """Return how many times the bytes are touched of what an operation transposes or gathers, 1 for other operands."""
    found = [1.0] * len(op.operands)
    if op.name == _TRANSPOSE and (moved := transpose_of(op)) is not None:
        found[0] = overfetch(moved.group * dtype_of(op.operands[0]).storage_bits)
    if op.name == _GATHER:
        found[0] = overfetch(
            _run(shape_of(op.operands[0]), integers(op, "slice_sizes")) * dtype_of(op.operands[0]).storage_bits
        )
    return found


def _run(shape: Sequence[int], sizes: Sequence[int]) -> int:
    """Return how many neighbours in memory a slice of such sizes has, at least."""
    run = 1
    for size, whole in zip(reversed(sizes), reversed(shape), strict=True):
        run *= max(1, size)
        if size != whole:
            break
    return run
