"""The coalescing of a kernel's accesses: the sectors that warps touch beside those that they need."""

import math

from xgpu import ir
from xgpu.costs.sectors import Touched, sectors
from xgpu.device import Device
from xgpu.emit.family_table import emitter_of
from xgpu.fusion.memory_reads import arrays_read
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.affine import linearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.options import Options
from xgpu.structure import dtype_of

_LOOP = "loop"
_MOST_POINTS = 1 << 18
"""Elements of a block's accesses that are enumerated for an array at most."""


def sectors_of_loop(fusion: ir.Operation, device: Device) -> Touched | None:
    """Return what the first block of a loop's kernel touches, and the least that its accesses need.

    Other kernels move elements by way of registers and shared memory: for them it is None. Reads at positions that are
    known at run time only are left out.
    """
    emitter = emitter_of(fusion, device, Options())
    if emitter.NAME != _LOOP:
        return None
    *_, end = (op.operation for op in fusion.regions[0].blocks[0].operations)
    accessed = {(root, identity_map(shape_of(root))) for root in end.operands}
    for root in end.operands:
        accessed.update(arrays_read(root, with_heroes=True))
    written = emitter.thread_to_output(0)
    found = [_touched(written, value, read) for value, read in accessed]
    return Touched(sum(each.sectors for each in found), sum(each.least for each in found))


def _touched(written: IndexingMap, value: ir.Value, read: IndexingMap) -> Touched:
    """Return what a block touches that reads ``value`` at ``read`` of the elements that it writes."""
    map_ = written.compose(read)
    # A thread's elements are one access, of rows that it takes together, too, whatever it combines for each of them.
    count, own = len(map_.symbols), len(written.symbols)
    order = [*range(own, count), *range(own)]
    places = {old: symbol(order.index(old)) for old in range(count)}
    position = linearize([each.substitute(None, places) for each in map_.results], shape_of(value))
    constraints = tuple((each.substitute(None, places), interval) for each, interval in map_.constraints)
    symbols = tuple(map_.symbols[old] for old in order)
    if map_.dims[0].size * math.prod(each.size for each in symbols) > _MOST_POINTS:
        return Touched(0, 0)
    bits = dtype_of(value).storage_bits
    return sectors(IndexingMap(map_.dims, symbols, (position,), constraints), bits, together=own)
