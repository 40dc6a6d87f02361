"""The pass `map-threads`."""

import math
from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName, device
from xgpu.dialects import attributes
from xgpu.dialects.discardable import MAX_GRID
from xgpu.dialects.nests.loops import LaunchOp, ParOp, SeqOp
from xgpu.errors import InvalidInput, Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.indexing.affine import delinearize, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.maps.box_choice import boxes_of, check_boxes
from xgpu.nests.maps.groups import GRID_THREADS, MOST_THREADS, grouped, in_groups
from xgpu.nests.maps.mapping import best_boxes, best_map
from xgpu.nests.maps.scores import Space
from xgpu.nests.maps.touches import global_accesses, shared_accesses, touches_of
from xgpu.nests.structure import LAUNCH, PAR, BufferAccess, band_at, is_short, launches_of
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk
from xgpu.target_machine import WARP_SIZE


@dataclass(frozen=True)
class MapThreads(Pass):
    """Maps blocks and threads to the iterations of the par loops.

    The number of a block's threads is what the program asks for (``#threads(n)``), else as many as its largest band of
    par loops has iterations, up to 256; 128 where the threads of all blocks share one band. Then a map is chosen for
    each band from a family of them, the one by which warps touch the fewest sectors of memory: see
    `xgpu.nests.maps.mapping`. A loop may have its runs asked for (``#vector(n)``). Where a long seq loop inside reads
    the same for several iterations, a thread goes through a box of them together (``#together(n)``). Iterations that
    run at once are mapped one to one to threads side by side, aligned as the loop says.
    Needs assign-bands and place-buffers.

    ```mlir
    "xgpu.par"() ({ "xgpu.par"() ({ ... }) {band = "grid", called = "j", extent = 256 : i64} })
        {band = "grid", called = "i", extent = 64 : i64}
    // becomes
    "xgpu.par"() ({ "xgpu.par"() ({ ... }) {band = "grid", called = "j", extent = 256 : i64} })
        {band = "grid", called = "i", extent = 64 : i64,
         map = #xgpu.map<(d0, d1)[s0, s1] -> (d1 floordiv 2, (d1 mod 2) * 128 + d0), ...>}
    ```
    """

    NAME: ClassVar[str] = "map-threads"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((LAUNCH,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU, whose threads and accesses there are."""

    def apply(self, module: ir.Module) -> None:
        """Write the launch of every kernel of ``module``, and the map of each of its bands."""
        launches = launches_of(module)
        bands = sum(len(_bands(launch)) for launch in launches)
        for launch in launches:
            _map_launch(launch, device(self.target), bands)


def _map_launch(launch: LaunchOp, target: Device, count: int) -> None:
    bands = _bands(launch)
    threads = launch.block or _threads(bands)
    launch.operation.attributes["block"] = attributes.int_attribute(threads)
    grid = 1
    for band in bands:
        first = band[0]
        extents = tuple(loop.extent for loop in band)
        check_boxes(band)
        if first.band == "block":
            grid = math.prod(extents)
            map_ = IndexingMap((Interval(0, grid - 1),), (), delinearize(dim(0), extents), ()).simplify()
            chosen = first.map or map_
        else:
            in_blocks = first.band == "grid"
            if grouped(band):
                chosen = first.map or _in_groups(band, threads, target, count)
            else:
                space = Space(extents, threads, in_blocks, band[-1].side or 0)
                chosen = first.map or _chosen(band, space, target, count)
            if in_blocks:
                grid = chosen.dims[1].size
        first.operation.attributes["map"] = attributes.map_attribute(chosen)
    if grid > MAX_GRID[0]:
        raise Unsupported(f"a launch has at most {MAX_GRID[0]} blocks, got {grid}", source_of(launch.operation))
    launch.operation.attributes["grid"] = attributes.int_attribute(launch.grid or grid)


def _bands(launch: LaunchOp) -> list[list[ParOp]]:
    """Return the bands of a kernel, outer ones first."""
    found: list[list[ParOp]] = []
    seen: set[ParOp] = set()
    for op in walk(launch.operation, PAR, post_order=False):
        loop = op.opview
        assert isinstance(loop, ParOp)
        if loop not in seen:
            found.append(band_at(op))
            seen.update(found[-1])
    return found


def _threads(bands: Sequence[Sequence[ParOp]]) -> int:
    """Return the threads of a block, in whole warps unless the program asks for another number."""
    asked = {loop.threads: loop for band in bands for loop in band if loop.threads is not None}
    if len(asked) > 1:
        (_, other) = list(asked.values())[:2]
        raise InvalidInput(
            "a kernel has one number of threads; '#threads' says another one here", source_of(other.operation)
        )
    side = max((loop.group or loop.side or 1 for band in bands for loop in band), default=1)
    if asked:
        return _whole_groups(next(iter(asked.values())), side)
    if any(band[0].band == "grid" for band in bands):
        return max(GRID_THREADS, side)
    of_threads = [band for band in bands if band[0].band == "thread"]
    largest = max((_places(band) for band in of_threads), default=1)
    return max(side, min(MOST_THREADS, -(-largest // WARP_SIZE) * WARP_SIZE))


def _places(band: Sequence[ParOp]) -> int:
    """Return how many threads a band has something to do for."""
    if outer := grouped(band):
        return math.prod(loop.extent for loop in outer) * (outer[0].group or 1)
    return math.prod(loop.side or loop.extent for loop in band)


def _whole_groups(loop: ParOp, side: int) -> int:
    """Return the threads that a loop asks for; raises InvalidInput if they are not whole groups of ``side``."""
    threads = loop.threads or 0
    if threads % side:
        raise InvalidInput(
            f"'#threads({threads})': expected a multiple of {side}, as many as a 'fully par' takes side by side",
            source_of(loop.operation),
        )
    return threads


def _in_groups(band: Sequence[ParOp], threads: int, target: Device, count: int) -> IndexingMap:
    """Return the map of a band of whose first loops groups of threads have the iterations."""
    outer = grouped(band)
    group, inner = outer[0].group or 1, band[len(outer) :]
    side = inner[-1].side or 0
    space = Space(tuple(loop.extent for loop in inner), group, blocks=False, side=side)
    own = _chosen(inner, space, target, count)
    return in_groups([loop.extent for loop in outer], threads, group, band[0].band == "grid", own, max(1, side))


def _chosen(band: Sequence[ParOp], space: Space, target: Device, count: int) -> IndexingMap:
    """Return the map of a band, and write on its loops how many iterations a thread goes through together."""
    accesses = global_accesses(band)
    runs = _runs(band, space, accesses, target)
    touches = touches_of(accesses, band)
    boxes = boxes_of(band, space, target) if runs == (1,) else ()
    if boxes:
        touches += touches_of(shared_accesses(band), band)
    given = space, tuple(touches)
    choice = best_boxes(*given, tuple(boxes), count) if boxes else best_map(*given, runs, count)
    for loop, size in zip(band, choice.box, strict=True):
        if size > 1:
            loop.operation.attributes["together"] = attributes.int_attribute(size)
    return choice.map


def _runs(band: Sequence[ParOp], space: Space, accesses: Sequence[BufferAccess], target: Device) -> tuple[int, ...]:
    """Return the lengths of runs to choose from: of elements for one access, where iterations are straight."""
    asked = next((loop.vector for loop in band if loop.vector is not None), None)
    if asked is not None:
        problem = _vector_problem(asked, band, space, accesses, target)
        if problem:
            raise InvalidInput(f"'#vector({asked})': {problem}", source_of(band[0].operation))
        return (asked,)
    simple = all(is_short(seq) for seq in walk(band[0].operation, SeqOp.OPERATION_NAME))
    enough = space.size >= target.resident_threads if space.blocks else space.size > space.threads
    if not simple or not enough or not accesses:
        return (1,)
    widest = max(access.dtype.storage_bits for access in accesses)
    most = target.max_vector_bytes * 8 // widest
    if not space.blocks:
        most = min(most, space.size // space.threads)
    return tuple(1 << power for power in range(max(0, most).bit_length()) if 1 << power <= 8) or (1,)


def _vector_problem(
    asked: int, band: Sequence[ParOp], space: Space, accesses: Sequence[BufferAccess], target: Device
) -> str | None:
    """Return why a thread cannot take as many consecutive iterations as a pragma asks for; None if it can.

    ``accesses`` are those of global memory.
    """
    loop = band[-1]
    if space.side:
        return f"each iteration of 'fully par {loop.called}' has a thread of its own"
    if asked < 1 or asked & (asked - 1):
        return "expected a power of two"
    if loop.extent % asked:
        return f"expected a divisor of {loop.extent}, the extent of '{loop.called}'"
    types = [access.dtype for access in accesses]
    narrowest = min(types, key=lambda dtype: dtype.storage_bits, default=None)
    most = target.max_vector_bytes * 8 // narrowest.storage_bits if narrowest else asked
    return f"{target.name} accesses at most {most} {narrowest} at once" if asked > most else None
