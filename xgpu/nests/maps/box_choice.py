"""Lists the boxes of iterations that threads may go through together: those for which a seq loop inside reads less."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import cast

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.nests.accesses import elements_of
from xgpu.dialects.nests.loops import NewOp, ParOp, SeqOp, WhereOp
from xgpu.dtypes import dtype_of_element
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.nests.maps.scores import Space
from xgpu.nests.structure import SEQ, accesses_in, ancestors, has_par, is_short, operations_of
from xgpu.structure import walk
from xgpu.target_machine import WARP_SIZE

MOST_TOGETHER = 16
"""Iterations of an element of 32 bits each that a thread goes through together, at most."""
WARPS = 3
"""Warps that each scheduler has at least. On an H200 four were faster than twice as many with half of the iterations,
two slower."""


def boxes_of(band: Sequence[ParOp], space: Space, target: Device) -> list[tuple[int, ...]]:
    """Return the boxes to choose from, large ones first; none where iterations are gone through one by one."""
    asked = tuple(loop.together or 1 for loop in band)
    if any(loop.together is not None for loop in band):
        return [asked]
    if space.side or not _has_long_seq(band):
        return []
    # Conditions tell iterations along some loops apart, each of which is then written by itself.
    apart = told_apart(band)
    shared = _shared_by(band) - apart
    if apart and not shared:
        return []
    most = MOST_TOGETHER // max(1, _registers(band))
    sides = [_sides(loop.extent, most) if loop.variable in shared else [1] for loop in band]
    boxes = [box for box in itertools.product(*sides) if math.prod(box) <= most and _is_enough(space, box, target)]
    return sorted(boxes, key=math.prod, reverse=True)


def check_boxes(band: Sequence[ParOp]) -> None:
    """Raise InvalidInput if the program asks for boxes that there are not."""
    for loop in band:
        if loop.together is None:
            continue
        inner = operations_of(band[-1].body)
        problem = None
        if loop.extent % loop.together:
            problem = f"expected a divisor of {loop.extent}, the extent of '{loop.called}'"
        elif loop.band == "block" or has_par(*inner):
            problem = f"there is a par loop inside of '{loop.called}'"
        elif band[-1].side is not None:
            problem = f"each iteration of 'fully par {band[-1].called}' has a thread of its own"
        elif any(other.vector is not None for other in band):
            problem = "'#vector' says which iterations a thread takes"
        if problem is not None:
            raise InvalidInput(f"'#together({loop.together})': {problem}", source_of(loop.operation))


def _has_long_seq(band: Sequence[ParOp]) -> bool:
    inner = operations_of(band[-1].body)
    return not has_par(*inner) and any(not is_short(seq) for seq in walk(band[0].operation, SEQ))


def told_apart(band: Sequence[ParOp]) -> set[ir.Value]:
    """Return the variables of a band that conditions depend on."""
    variables = {loop.variable for loop in band}
    wheres = (where.opview for where in walk(band[0].operation, WhereOp.OPERATION_NAME))
    return {each for where in wheres if isinstance(where, WhereOp) for each in where.variables if each in variables}


def _shared_by(band: Sequence[ParOp]) -> set[ir.Value]:
    """Return the variables of which an element that a seq loop reads is independent, while it depends on another."""
    variables = {loop.variable for loop in band}
    found: set[ir.Value] = set()
    for access in accesses_in(band[0].operation):
        in_seq = any(each.name == SeqOp.OPERATION_NAME for each in _inside(access.op, band[0].operation))
        if in_seq and not access.writes:
            found |= variables - set(access.variables)
    return found


def _inside(op: ir.Operation, outer: ir.Operation) -> Iterator[ir.Operation]:
    return itertools.takewhile(lambda each: each != outer, ancestors(op))


def _registers(band: Sequence[ParOp]) -> int:
    """Return how many registers of 32 bits the elements of an iteration take that are its own."""
    news = [cast(NewOp, op.opview) for op in walk(band[0].operation, NewOp.OPERATION_NAME)]
    own = [new.buffer for new in news if new.memory == "register"]
    bits = [dtype_of_element(ir.MemRefType(each.type).element_type).storage_bits for each in own]
    return sum(elements_of(buffer) * max(1, -(-size // 32)) for buffer, size in zip(own, bits, strict=True))


def _sides(extent: int, most: int) -> list[int]:
    return [1 << power for power in range(most.bit_length()) if 1 << power <= most and extent % (1 << power) == 0]


def _is_enough(space: Space, box: Sequence[int], target: Device) -> bool:
    """Whether there are as many boxes as it takes to keep the GPU's schedulers busy, or a block's threads."""
    boxes = space.size // math.prod(box)
    return boxes >= (target.sm_count * target.schedulers * WARPS * WARP_SIZE if space.blocks else space.threads)
