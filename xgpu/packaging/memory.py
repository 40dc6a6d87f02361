"""Offsets of values in one block of memory: values that are not needed at the same time share bytes."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from xgpu.records import dataclass


@dataclass(frozen=True)
class Lifetime:
    """A value of so many bytes that is needed from the step ``first`` to the step ``last``, both included."""

    bytes: int
    first: int
    last: int


def place_values(values: Sequence[Lifetime], alignment: int) -> tuple[tuple[int, ...], int]:
    """Return an offset for each value, a multiple of ``alignment``, and the bytes of all.

    Larger values are placed first, each at the lowest offset at which nothing lies that is needed at the same time.
    """
    offsets = [0] * len(values)
    end = 0
    occupied = _Occupied(max((value.last for value in values), default=0) + 1)
    for number in sorted(range(len(values)), key=lambda each: (-values[each].bytes, each)):
        value = values[number]
        start = occupied.lowest_gap(value)
        occupied.add(value, start, -(-(start + value.bytes) // alignment) * alignment)
        offsets[number] = start
        end = max(end, start + value.bytes)
    return tuple(offsets), end


class _Occupied:
    """The bytes that are occupied in each step: a segment tree over steps, whose nodes have ranges of bytes.

    Those of a value are noted in the nodes that together are its steps (`_whole`), and in all around any of its steps
    (`_part`). A node's ranges are the numbers at which they begin and end, in order; ones that touch are one, so that
    there are few however many values there are.
    """

    def __init__(self, steps: int):
        self._leaves = 1 << (steps - 1).bit_length()
        self._whole: defaultdict[int, list[int]] = defaultdict(list)
        self._part: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, value: Lifetime, start: int, end: int) -> None:
        """Note that ``value`` has the bytes from ``start`` to ``end``."""
        nodes = list(self._nodes(value))
        for node in nodes:
            _unite(self._whole[node], start, end)
        for node in {*nodes, *_above(nodes)}:
            _unite(self._part[node], start, end)

    def lowest_gap(self, value: Lifetime) -> int:
        """Return the lowest offset at which ``value`` meets nothing."""
        nodes = list(self._nodes(value))
        found = [self._part[node] for node in nodes if node in self._part]
        found += [self._whole[node] for node in _above(nodes) if node in self._whole]
        offset = 0
        for start, end in sorted(pair for bounds in found for pair in zip(bounds[::2], bounds[1::2], strict=True)):
            if offset + value.bytes <= start:
                break
            offset = max(offset, end)
        return offset

    def _nodes(self, value: Lifetime) -> Iterator[int]:
        """Yield the fewest nodes that together are the steps of ``value``."""
        first, end = value.first + self._leaves, value.last + 1 + self._leaves
        while first < end:
            if first & 1:
                yield first
                first += 1
            if end & 1:
                end -= 1
                yield end
            first, end = first >> 1, end >> 1


def _above(nodes: Sequence[int]) -> set[int]:
    """Return the nodes that ``nodes`` are parts of."""
    found = set[int]()
    for node in nodes:
        node >>= 1
        while node and node not in found:
            found.add(node)
            node >>= 1
    return found


def _unite(bounds: list[int], start: int, end: int) -> None:
    """Add a range to others, which are the numbers at which they begin and end."""
    first, last = bisect_left(bounds, start), bisect_right(bounds, end)
    bounds[first:last] = [start][first % 2 :] + [end][last % 2 :]
