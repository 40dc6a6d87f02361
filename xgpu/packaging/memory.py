"""Offsets of values in one block of memory: values that are not needed at the same time share bytes."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A value of so many bytes that is needed from the step ``first`` to the step ``last``, both included."""

    bytes: int
    first: int
    last: int

    def meets(self, other: "Interval") -> bool:
        """Whether both are needed in some step."""
        return self.first <= other.last and other.first <= self.last


def place_values(values: Sequence[Interval], alignment: int) -> tuple[tuple[int, ...], int]:
    """Return an offset for each value, a multiple of ``alignment``, and the bytes of all.

    Larger values are placed first, each at the lowest offset at which nothing lies that is needed at the same time.
    """
    offsets: dict[int, int] = {}
    end = 0
    for number in sorted(range(len(values)), key=lambda each: (-values[each].bytes, each)):
        value = values[number]
        taken = sorted((offsets[other], values[other].bytes) for other in offsets if value.meets(values[other]))
        start = 0
        for offset, size in taken:
            if start + value.bytes <= offset:
                break
            start = max(start, -(-(offset + size) // alignment) * alignment)
        offsets[number] = start
        end = max(end, start + value.bytes)
    return tuple(offsets[number] for number in range(len(values))), end
