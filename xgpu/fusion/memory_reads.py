"""The arrays in memory that values are computed from, and which of their elements."""

import math
from collections.abc import Iterator

from xgpu import ir
from xgpu.errors import Unsupported
from xgpu.fusion.heroes import hero_kind
from xgpu.fusion.left import reason_to_leave
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap

type _Reads = tuple[tuple[int, IndexingMap | None], ...]
type Known = dict[ir.Operation, _Reads | None]
"""What was found out about operations, to be kept as long as they are not rewritten."""

_MOST_READS = 256
"""Reads that are followed back to arrays in memory; what is read by more keeps its order."""


def arrays_read(value: ir.Value, fewest: int = 0, known: Known | None = None) -> Iterator[tuple[ir.Value, IndexingMap]]:
    """Yield the arrays in memory that ``value`` is computed from, and which element of each an element depends on.

    Those are arguments, and results of operations that need kernels of their own. Reads at positions that are known
    only at run time are left out, and so are those beyond the first `_MOST_READS`, and values of less than ``fewest``
    elements with all that they are computed from. ``known`` keeps what was found out about operations.
    """
    known = {} if known is None else known
    pending = [(value, identity_map(shape_of(value)))]
    seen = set(pending)
    while pending:
        value, map_ = pending.pop()
        if isinstance(value.owner, ir.Block):
            yield value, map_
            continue
        op = value.owner.operation
        if op not in known:
            known[op] = _reads(op)
        reads = known[op]
        if reads is None:
            yield value, map_
            continue
        for number, step in reads:
            operand = op.operands[number]
            if len(seen) < _MOST_READS and math.prod(shape_of(operand)) >= fewest:
                found = (operand, map_ if step is None else map_.compose(step).simplify())
                pending += [] if found in seen else [found]
                seen.add(found)


def _reads(op: ir.Operation) -> _Reads | None:
    """Return the operands that ``op`` reads at positions known before it runs, by number, and at which.

    The map is None where that is the result's own position. None if the results of ``op`` are in memory whoever reads
    them: those of heroes, and of what is left to XLA.
    """
    if hero_kind(op) is not None or reason_to_leave(op) is not None:
        return None
    try:
        reads = accesses(op)
    except Unsupported:
        return None
    same = identity_map(shape_of(op.results[0]))
    return tuple((read.operand, None if read.map == same else read.map) for read in reads if not read.runtime)
