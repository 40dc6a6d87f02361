"""Warps whose threads come out differently of a condition about their numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import defining_op, producer
from xgpu.target_machine import WARP_SIZE

_MOST_BLOCKS = 64
"""Blocks whose warps are looked at."""


def is_place(value: ir.Value) -> bool:
    """Whether a value is the number of a thread or block."""
    op = defining_op(value)
    return op is not None and op.name in ("gpu.thread_id", "gpu.block_id")


def shares_of_warps(asked: IndexingMap, operands: Sequence[ir.Value]) -> tuple[float, float] | None:
    """Return the shares of warps, of some blocks, for all of whose threads a condition holds, and for none.

    The map's constraints are the condition, about ``operands``, the numbers of threads and blocks. None if it is not
    known.
    """
    dims = asked.dims
    names = [producer(each).name for each in operands]
    if "gpu.thread_id" not in names:
        return None
    thread = names.index("gpu.thread_id")
    lanes = np.arange(dims[thread].lower, dims[thread].upper + 1)[:, None]
    if len(lanes) % WARP_SIZE:
        return None
    values: list[Any] = [
        lanes if number == thread else np.linspace(each.lower, each.upper, _MOST_BLOCKS).astype(np.int64)[None]
        for number, each in enumerate(dims)
    ]
    inside = np.ones((len(lanes), _MOST_BLOCKS), dtype=bool)
    for expr, interval in asked.constraints:
        found = np.asarray(expr.evaluate(values))
        inside &= (found >= interval.lower) & (found <= interval.upper)
    warps = inside.reshape(-1, WARP_SIZE, _MOST_BLOCKS)
    return float(warps.all(axis=1).mean()), float((~warps).all(axis=1).mean())
