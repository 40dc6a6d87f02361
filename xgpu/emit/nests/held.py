"""The parts of a band's iterations of which each has its elements of a block's buffers in registers of its thread."""

import itertools
from collections.abc import Iterator, Sequence

from xgpu import ir
from xgpu.dialects.nests.loops import ParOp
from xgpu.indexing.affine import constant
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.nests.held_buffers import bands_of, row_of, slots_of
from xgpu.nests.maps.boxes import BoxSteps, steps_of
from xgpu.nests.structure import access_of, accesses_in, memory_of
from xgpu.records import dataclass


@dataclass(frozen=True)
class HeldPart:
    """The steps of a thread, and for each point of a step which of the elements, or rows, that it holds it has."""

    steps: BoxSteps
    slots: tuple[int, ...]


def held_in(band: Sequence[ParOp]) -> list[ir.Value]:
    """Return the buffers that a band accesses and its threads hold."""
    buffers = dict.fromkeys(access.buffer for access in accesses_in(band[0].operation))
    return [buffer for buffer in buffers if memory_of(buffer) == "threads" and band[0].band == "thread"]


def held_by_thread(buffer: ir.Value) -> int:
    """Return how many elements of a buffer a thread holds."""
    band, *_ = bands_of([access_of(use.owner.operation) for use in buffer.uses])
    return slots_of(band) * row_of(buffer, band)


def parts_of(map_: IndexingMap, count: int, written_out: bool) -> Iterator[HeldPart]:
    """Yield the steps of a thread, where the last ``count`` range variables are those of a box.

    They are one part, or if they are to be ``written_out`` one for each step: then its numbers say which elements are
    meant, in the order of all range variables.
    """
    steps = steps_of(map_, count)
    size = len(steps.points)
    if not written_out:
        yield HeldPart(steps, tuple(range(size)))
        return
    ranges = [range(each.lower, each.upper + 1) for each in steps.map.symbols]
    for number, place in enumerate(itertools.product(*ranges)):
        at = {symbol: constant(value) for symbol, value in enumerate(place)}
        constraints = tuple((expr.substitute(None, at), interval) for expr, interval in steps.map.constraints)
        results = tuple(result.substitute(None, at) for result in steps.map.results)
        one = IndexingMap(steps.map.dims, (), results, constraints)
        if not one.is_empty():
            yield HeldPart(BoxSteps(one, steps.points), tuple(range(number * size, (number + 1) * size)))
