"""The pass `hold-buffers`."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.nests.loops import LaunchOp, NewOp, ParOp, SeqOp
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.held_buffers import MAX_ITERATIONS, MAX_REGISTERS, bands_of, registers_of, row_of, slots_of
from xgpu.nests.maps.box_scores import conflicts_of
from xgpu.nests.maps.boxes import Box, boxed
from xgpu.nests.maps.mapping import runs_at_once
from xgpu.nests.maps.scores import Space, score_of
from xgpu.nests.maps.touches import global_accesses, shared_accesses, touches_of
from xgpu.nests.structure import SEQ, BufferAccess, accesses_in, ancestors, launches_of, memory_of
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk

_MEMORY, _THREADS, _SHARED = "memory", "threads", "shared"


@dataclass(frozen=True)
class HoldBuffers(Pass):
    """Holds the elements of a block's buffers in registers, each in those of the one thread that accesses it.

    A buffer can be held if the iterations of all loops that access it have an element each, or a row of elements, and
    these loops have one map. That is the map of one of them, by which no other one touches more sectors of memory, or
    has more bank conflicts, than by its own, or loses a box of iterations, unless the program asks for registers.
    Iterations that run at once stay on threads side by side. Else the buffer is in shared memory.
    Needs map-threads and place-buffers.

    ```mlir
    %sum = "xgpu.new"() {called = "sum"} : () -> memref<64x64xf32>
    "xgpu.par"() ({ ... "xgpu.write"(%x, %sum, %i, %j) ... }) {map = #xgpu.map<(d0)[s0] -> ...>, ...}
    "xgpu.par"() ({ ... "xgpu.accumulate"(%y, %sum, %i, %j) ... }) {map = #xgpu.map<(d0)[s0, s1] -> ...>, ...}
    // becomes
    %sum = "xgpu.new"() {called = "sum", memory = "threads"} : () -> memref<64x64xf32>
    "xgpu.par"() ({ ... "xgpu.write"(%x, %sum, %i, %j) ... }) {map = #xgpu.map<(d0)[s0, s1] -> ...>, ...}
    "xgpu.par"() ({ ... "xgpu.accumulate"(%y, %sum, %i, %j) ... }) {map = #xgpu.map<(d0)[s0, s1] -> ...>, ...}
    // or
    %sum = "xgpu.new"() {called = "sum", memory = "shared"} : () -> memref<64x64xf32>
    ```
    """

    NAME: ClassVar[str] = "hold-buffers"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((NewOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Write the maps of all bands of ``module`` that access a buffer which is held, and where the others lie."""
        for launch in launches_of(module):
            holding = _Holding(launch)
            for op in walk(launch.operation, NewOp.OPERATION_NAME):
                new = cast(NewOp, op.opview)
                if new.memory in (None, _THREADS):
                    holding.place(new)


class _Holding:
    """State of the threads of a kernel: bands with maps that are fixed, and how many registers are left."""

    def __init__(self, launch: LaunchOp):
        self._threads = launch.block or 0
        self._accesses: dict[ir.Value, list[BufferAccess]] = {}
        for access in accesses_in(launch.operation):
            self._accesses.setdefault(access.buffer, []).append(access)
        self._fixed: set[ParOp] = set()
        self._left = MAX_REGISTERS

    def place(self, new: NewOp) -> None:
        """Have threads hold a buffer, if its loops can have one map, else place it in shared memory."""
        bands = bands_of(self._accesses[new.buffer])
        leading = self._leading(new, bands)
        if leading is None and new.memory == _THREADS:
            raise InvalidInput(
                f"'{new.called}' cannot be in registers: a thread would have more than {MAX_REGISTERS} elements, or its"
                " loops other maps for other buffers",
                source_of(new.operation),
            )
        new.operation.attributes[_MEMORY] = ir.StringAttr.get(_SHARED if leading is None else _THREADS)
        if leading is None:
            return
        self._left -= _registers(new, leading)
        for band in bands:
            self._fixed.add(band[0])
            _give_map(leading, band)

    def _leading(self, new: NewOp, bands: Sequence[Sequence[ParOp]]) -> Sequence[ParOp] | None:
        """Return the band whose map all can have, the one of most work if there are several.

        Where a program asks for registers it need not be as good for the others.
        """
        fixed = [band for band in bands if band[0] in self._fixed]
        maps = {band[0].map for band in fixed}
        can_lead = [
            band
            for band in sorted(fixed[:1] or bands, key=lambda band: -_work(band))
            if len(maps) <= 1
            and _registers(new, band) <= self._left
            and all(_is_written_out(band, other) and _keeps_threads(band, other) for other in bands)
        ]
        good = (band for band in can_lead if all(self._is_as_good(band, other) for other in bands))
        return next(good, can_lead[0] if can_lead and new.memory == _THREADS else None)

    def _is_as_good(self, leading: Sequence[ParOp], band: Sequence[ParOp]) -> bool:
        """Whether a band touches no more sectors by the map of another one, and has no more bank conflicts."""
        if band[0].map == leading[0].map:
            return True
        if boxed(band):
            # What a box's iterations read together counts for more than what is held.
            return False
        own, other = (_with_steps(cast(IndexingMap, each[0].map)) for each in (band, leading))
        space = Space(tuple(loop.extent for loop in band), self._threads, blocks=False)
        touches = touches_of(global_accesses(band), band)
        if score_of(other, space, touches).key[0] > score_of(own, space, touches).key[0]:
            return False
        one = Box((1,) * len(band))
        shared = [access for access in shared_accesses(band) if memory_of(access.buffer) == _SHARED]
        return all(conflicts_of(other, t, one) <= conflicts_of(own, t, one) for t in touches_of(shared, band))


def _registers(new: NewOp, band: Sequence[ParOp]) -> int:
    """Return how many registers a thread needs for what it has of a buffer."""
    return slots_of(band) * row_of(new.buffer, band) * registers_of(new)


def _keeps_threads(leading: Sequence[ParOp], band: Sequence[ParOp]) -> bool:
    """Whether a band has its iterations on threads side by side, as it must, by the map of another one too."""
    if band[0].map == leading[0].map:
        return True
    if band[0].group != leading[0].group:
        return False
    side = band[-1].side
    return side is None or runs_at_once(cast(IndexingMap, leading[0].map), band[-1].extent, side)


def _with_steps(map_: IndexingMap) -> IndexingMap:
    """Return a map that has a range variable, as scores want it."""
    return map_ if map_.symbols else replace(map_, symbols=(Interval(0, 0),))


def _work(band: Sequence[ParOp]) -> int:
    """Return how many times an iteration of a band accesses memory."""
    total = 0
    for access in accesses_in(band[0].operation):
        around = itertools.takewhile(lambda op: op != band[0].operation, ancestors(access.op))
        total += math.prod(cast(SeqOp, op.opview).extent for op in around if op.name == SEQ)
    return total


def _is_written_out(leading: Sequence[ParOp], band: Sequence[ParOp]) -> bool:
    """Whether a band's statements are few enough to be written for each element that a thread has."""
    slots = slots_of(leading)
    return slots == 1 or slots * len(walk(band[-1].operation)) <= MAX_ITERATIONS


def _give_map(leading: Sequence[ParOp], band: Sequence[ParOp]) -> None:
    """Give a band the map, and the boxes, of another one."""
    band[0].operation.attributes["map"] = attributes.map_attribute(cast(IndexingMap, leading[0].map))
    for loop, model in zip(band, leading, strict=True):
        if model.together is not None:
            loop.operation.attributes["together"] = attributes.int_attribute(model.together)
        elif loop.together is not None:
            del loop.operation.attributes["together"]
