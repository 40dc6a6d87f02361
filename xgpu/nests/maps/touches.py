"""The accesses of a band of par loops as what their scores need: functions of the band's variables alone."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.nests.loops import ParOp, SeqOp
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.nests.maps.box_scores import ACCESS_BITS
from xgpu.nests.maps.scores import Touch
from xgpu.nests.structure import BufferAccess, accesses_in, ancestors, is_of_block, loop_of, memory_of

CACHED_BYTES = 1 << 15
"""The size of an array that stays in the first cache while it is read again and again: an eighth of it."""


def global_accesses(band: Sequence[ParOp]) -> list[BufferAccess]:
    """Return the accesses of a band to global memory: to arrays of the program, and to scratch."""
    return [access for access in accesses_in(band[0].operation) if memory_of(access.buffer) == "scratch"]


def shared_accesses(band: Sequence[ParOp]) -> list[BufferAccess]:
    """Return the accesses of a band to buffers of its block."""
    return [access for access in accesses_in(band[0].operation) if is_of_block(access.buffer)]


def touches_of(accesses: Sequence[BufferAccess], band: Sequence[ParOp]) -> list[Touch]:
    """Return the accesses that count for a map of the band."""
    return [touch for access in accesses if (touch := touch_of(access, band)) is not None]


def touch_of(access: BufferAccess, band: Sequence[ParOp]) -> Touch | None:
    """Return an access as what the band's variables make of it, all others at 0.

    None if a value decides where, or if it reads a small array again and again, which then comes from a cache.
    """
    numbers = {loop.variable: number for number, loop in enumerate(band)}
    values: list[AffineExpr] = []
    for variable in access.variables:
        if loop_of(variable) is None:
            return None
        values.append(dim(numbers[variable]) if variable in numbers else constant(0))
    times = 1
    for op in ancestors(access.op):
        if op == band[0].operation:
            break
        if op.name == SeqOp.OPERATION_NAME:
            times *= ir.IntegerAttr(op.attributes["extent"]).value
    elements, reads = math.prod(access.shape), times * math.prod(loop.extent for loop in band)
    is_shared = is_of_block(access.buffer)
    if (
        not is_shared
        and not access.writes
        and reads >= 2 * elements
        and elements * access.dtype.storage_bits <= 8 * CACHED_BYTES
    ):
        return None
    position, bits = access.position.substitute(values), access.dtype.storage_bits
    if is_shared:
        indices = tuple(each.substitute(values) for each in access.map.results)
        return Touch(position, bits, times, indices=indices, shape=access.shape)
    return Touch(position, bits, times, _run_along_seq(access))


def _run_along_seq(access: BufferAccess) -> int:
    """Return how many elements that a seq loop reads one after the other are one access, if it is written out."""
    for number, variable in enumerate(access.variables):
        loop = loop_of(variable)
        if loop is None or loop.name != SeqOp.OPERATION_NAME:
            continue
        others = access.position - dim(number)
        if number not in others.variables()[0]:
            extent = ir.IntegerAttr(loop.attributes["extent"]).value
            width = math.gcd(extent, max(1, ACCESS_BITS // access.dtype.storage_bits))
            return width if others.divisor() % width == 0 else 1
    return 1
