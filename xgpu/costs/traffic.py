"""The bytes that a kernel reads and writes: of arrays updated in place the updates, of all others what is needed.

Each element counts once, however often threads read it: the rest comes from caches.
"""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.analysis.in_place import SCATTER, UPDATE_SLICE, updates_of
from xgpu.costs.footprint import elements_read
from xgpu.costs.values import byte_size, elements
from xgpu.structure import producer

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
