"""The parts of a loop's kernel: results that the same threads compute, each element at its own indices."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.indexing.access import shape_of

MOST_ROOTS = 16
"""Values that one kernel, or a part of one, stores at most; more would run out of registers."""


def loop_parts(results: Sequence[ir.Value]) -> list[list[ir.Value]]:
    """Return the ``results`` of a loop in their order, split where the shape is another, and after `MOST_ROOTS`.

    Each block of the kernel computes elements of one part.
    """
    parts: list[list[ir.Value]] = []
    for value in results:
        if parts and len(parts[-1]) < MOST_ROOTS and shape_of(parts[-1][0]) == shape_of(value):
            parts[-1].append(value)
        else:
            parts.append([value])
    return parts
