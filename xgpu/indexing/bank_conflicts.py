"""Bank conflicts of shared-memory accesses, computed from the map of a warp's addresses.

Shared memory has 32 banks of 4 bytes. In one wavefront, a warp accesses one word of each bank; threads that read the
same word share it. Accesses of 8 and 16 bytes are split into wavefronts of half or a quarter of the warp. (Source: the
CUDA programming guide, compute capability 5 and later.)
"""

from typing import Any

import numpy as np

from xgpu.indexing.indexing_map import IndexingMap
from xgpu.target_machine import WARP_SIZE

BANKS = 32
BANK_BYTES = 4
WARP = WARP_SIZE


def bank_conflicts(addresses: IndexingMap, element_bytes: int, width: int = 1) -> int:
    """Return how many extra wavefronts the worst access of any warp takes; 0 means no conflicts.

    ``addresses`` maps (thread, ...)[symbols] to one element's address in the tile, counted in elements of
    ``element_bytes``. A thread accesses ``width`` elements at once: those along the last symbol, which the map must
    keep contiguous. All dimensions but the thread's are taken at their lowest value, and threads outside the domain
    count too.
    """
    (thread, *others), symbols = addresses.dims, addresses.symbols
    steps = symbols[:-1] if width > 1 else symbols
    threads = np.arange(thread.lower, thread.lower + -(-thread.size // WARP) * WARP)
    worst = 0
    for point in np.ndindex(*(interval.size for interval in steps)):
        at: list[Any] = [value + interval.lower for value, interval in zip(point, steps, strict=True)]
        if width > 1:
            at.append(symbols[-1].lower)
        dims: list[Any] = [threads, *(interval.lower for interval in others)]
        start = addresses.results[0].evaluate(dims, at)
        first = np.broadcast_to(np.asarray(start), threads.shape) * element_bytes
        worst = max(worst, extra_wavefronts(first, element_bytes * width))
    return worst


def extra_wavefronts(first: Any, size: int) -> int:
    """Return the extra wavefronts for accesses of ``size`` bytes at these addresses in bytes, one for each thread.

    Threads are those of whole warps, or of one part of a warp that accesses memory at once.
    """
    together = min(len(first), WARP, BANKS * BANK_BYTES // max(size, BANK_BYTES))
    words = np.arange(max(1, size // BANK_BYTES))
    worst = 0
    for group in first.reshape(-1, together):
        touched = np.unique(group[:, None] // BANK_BYTES + words)
        worst = max(worst, int(np.bincount(touched % BANKS).max()) - 1)
    return worst
