"""The bytes that a kernel reads and writes: of arrays updated in place the updates, of all others what is needed.

Each element counts once, however often threads read it: the rest comes from caches.
"""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.captures import maker
from xgpu.analysis.combiners import combiners
from xgpu.analysis.in_place import SCATTER, UPDATE_SLICE, updates_of
from xgpu.dialects.attributes import RECURRENCE
from xgpu.fusion.costs.cost_model import byte_size, elements
from xgpu.fusion.fallback import CONTRACTIONS
from xgpu.fusion.loops.recurrences import Recurrence
from xgpu.fusion.loops.steps import arrays_read

_REDUCING = CONTRACTIONS | {"stablehlo.reduce", "stablehlo.reduce_window"}
"""Operations whose results each depend on many elements of an operand."""


def moved_bytes(block: ir.Block, aliases: Sequence[int]) -> int:
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
        if RECURRENCE in op.attributes and (recurrence := Recurrence.of(op)) is not None:
            starts = (op.operands[number] for number in recurrence.states)
            for value in (*arrays_read(recurrence), *starts):
                _need(needed, value, elements(value))
        elif (most := max((needed.get(result, 0) for result in op.results), default=0)) > 0:
            for operand, count in zip(op.operands, _reads(op, most), strict=True):
                _need(needed, operand, count)
    return written + sum(byte_size(argument, needed.get(argument, 0)) for argument in block.arguments)


def _updates(output: ir.Value) -> ir.Value:
    """Return how many elements of an output are written: all, but for slices and scatters that update in place."""
    if maker(output).name not in (UPDATE_SLICE, SCATTER):
        return output
    number: int = ir.OpResult(output).result_number
    return updates_of(maker(output))[number]


def _need(needed: dict[ir.Value, int], value: ir.Value, count: int) -> None:
    """Add ``count`` to the elements needed of ``value``: those of two consumers are taken to be different."""
    needed[value] = min(elements(value), needed.get(value, 0) + count)


def _reads(op: ir.Operation, count: int) -> list[int]:
    """Return the most elements of each operand that ``count`` elements of the results of ``op`` depend on."""
    sizes = [elements(operand) for operand in op.operands]
    if op.name in _REDUCING:
        size = elements(op.results[0])
        return [math.ceil(each * count / size) for each in sizes]
    if op.name == UPDATE_SLICE:
        return [max(0, count - sizes[1]), *sizes[1:]]
    if op.name == SCATTER:
        read = [0 if each.function == "overwrite" else count for each in combiners(op)]
        return [*read, *sizes[len(read) :]]
    return [min(each, count) for each in sizes]
