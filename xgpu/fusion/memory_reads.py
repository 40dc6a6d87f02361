"""The arrays in memory that values are computed from, and the elements that they read there."""

import math
from collections.abc import Iterator

from xgpu import ir
from xgpu.analysis.heroes import is_hero
from xgpu.errors import Unsupported
from xgpu.fusion.fallback import fallback_reason
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import is_argument, producer

type _Reads = tuple[tuple[int, IndexingMap | None], ...]
type Known = dict[ir.Operation, _Reads | None]
"""A cache of facts about operations, valid as long as they are not rewritten."""

_MOST_READS = 256
"""Reads that are traced back to arrays in memory; beyond that, the order of dimensions is kept."""


def arrays_read(
    value: ir.Value, fewest: int = 0, known: Known | None = None, with_heroes: bool = False
) -> Iterator[tuple[ir.Value, IndexingMap]]:
    """Yield the arrays in memory that ``value`` is computed from, and which element of each an element depends on.

    Those are arguments, and results of operations that need kernels of their own, unless it is computed
    ``with_heroes``, as threads of a loop do. Reads at positions known only at run time are left out, and so are
    those beyond the first `_MOST_READS`, and values of less than ``fewest`` elements with all that they are computed
    from. ``known`` keeps what was found out about operations.
    """
    known = {} if known is None else known
    pending = [(value, identity_map(shape_of(value)))]
    seen = set(pending)
    while pending:
        value, map_ = pending.pop()
        if is_argument(value):
            yield value, map_
            continue
        op = producer(value)
        if op not in known:
            known[op] = _reads(op, with_heroes)
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


def _reads(op: ir.Operation, with_heroes: bool) -> _Reads | None:
    """Return the operands that ``op`` reads at positions known at compile time, by number, with the maps.

    A map is None for the result's own position. The whole is None if the results of ``op`` are in memory whoever reads
    them: those of heroes, and of operations that fall back to XLA.
    """
    if (is_hero(op) and not with_heroes) or fallback_reason(op) is not None:
        return None
    try:
        reads = accesses(op)
    except Unsupported:
        return None
    same = identity_map(shape_of(op.results[0]))
    return tuple((read.operand, None if read.map == same else read.map) for read in reads if not read.runtime)
