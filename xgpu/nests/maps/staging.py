"""The reads of a kernel's loops that are staged in shared memory, and their tiles.

A `seq` loop may read elements that several iterations of the par loops around it need: in a product by rows, an element
of either matrix. Blocks that have tiles of these iterations copy what they read into shared memory, some steps at a
time, and read it there, whatever its order in memory.
"""

import itertools
import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import cast

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.nests.accesses import elements_of
from xgpu.dialects.nests.loops import NewOp, ParOp, SeqOp
from xgpu.indexing.affine import dim, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.held_buffers import registers_of
from xgpu.nests.maps.box_choice import MOST_TOGETHER, WARPS, boxes_of, told_apart
from xgpu.nests.maps.groups import GRID_THREADS, MOST_THREADS
from xgpu.nests.maps.mapping import best_boxes
from xgpu.nests.maps.scores import Space, Touch, is_injective
from xgpu.nests.maps.touches import global_accesses, touches_of
from xgpu.nests.structure import (
    SEQ,
    BufferAccess,
    accesses_in,
    ancestors,
    has_par,
    loop_of,
    memory_of,
    operations_of,
)
from xgpu.records import dataclass
from xgpu.structure import walk
from xgpu.target_machine import WARP_SIZE

ITERATIONS = (4096, 1024)
"""Iterations of the par loops that a block has, the more the better if there are blocks for the whole device."""
_STEP_BYTES = 128
"""Bytes that a step copies of each row: a line of the cache."""
_LEAST_STEP = 8
"""Iterations of a seq loop that a step has at least: threads wait for each other twice in each."""
_TILE_BYTES = 1 << 15
"""Bytes of a block's tiles, at most: a multiprocessor has room for several blocks."""
_REGISTERS = 4
"""Registers that an iteration's own buffers take, at most: a thread has 16 iterations."""
_GAIN = 1.0
"""The passes of reads without tiles for each one with them, at least. Barriers are not counted, nor that reads of shared
memory are waited for less: the two were measured to make up for each other."""


@dataclass(frozen=True)
class StagedRead:
    """A read whose elements are staged: its tile has a dimension for each of the variables, seq loops first.

    ``map`` is from these, each in its loop's whole range, to the element of the array.
    """

    access: BufferAccess
    seq: SeqOp
    variables: tuple[ir.Value, ...]
    map: IndexingMap


@dataclass(frozen=True)
class ReadTiles:
    """Tiles of a kernel: a block has ``sides`` iterations of each par loop, and copies ``step`` of a seq at once."""

    sides: tuple[int, ...]
    step: int
    reads: tuple[StagedRead, ...]
    gain: float

    def extent_of(self, variable: ir.Value, loops: Sequence[ParOp], seq: SeqOp) -> int:
        """Return how many values of a variable a tile has elements for."""
        if variable == seq.variable:
            return min(self.step, seq.extent)
        for loop, side in zip(loops, self.sides, strict=True):
            if variable == loop.variable:
                return side
        return _extent(variable)


def staging_of(loops: Sequence[ParOp], target: Device) -> ReadTiles | str:
    """Return how reads inside of a kernel's outermost par loops are staged, or why none is."""
    if problem := _obstacle(loops):
        return problem
    reads = tuple(_reads_of(loops))
    sides = _sides(loops, reads, target)
    if isinstance(sides, str):
        return sides
    step = _step(loops, reads, sides)
    if step is None:
        return f"tiles of the least step, {_LEAST_STEP} iterations, take more than {_TILE_BYTES} bytes"
    found = ReadTiles(sides, step, reads, 0.0)
    if problem := _ragged_problem(loops, found):
        return problem
    gain = _gain(loops, found, target)
    asked = any(loop.tile for loop in loops) or any(read.seq.tile for read in reads)
    if gain < _GAIN and not asked:
        return f"reads take {gain:.2f} times as many passes without tiles as with them"
    return replace(found, gain=gain)


def seqs_of(loops: Sequence[ParOp]) -> list[SeqOp]:
    """Return the seq loops of an iteration that are not in others, nor under conditions."""
    return [cast(SeqOp, op.opview) for op in operations_of(loops[-1].body) if op.name == SEQ]


def _obstacle(loops: Sequence[ParOp]) -> str | None:
    body = operations_of(loops[-1].body)
    if has_par(*body):
        return f"there are par loops inside of 'par {loops[-1].called}'"
    for loop in loops:
        asked = (getattr(loop, name) for name in ("band", "threads", "vector", "together", "align", "group"))
        if any(value is not None for value in asked):
            return f"the program says itself who runs 'par {loop.called}'"
    news = [cast(NewOp, op.opview) for op in body if op.name == NewOp.OPERATION_NAME]
    if any(elements_of(new.buffer) > 1 or new.memory not in (None, "register") for new in news):
        return "an iteration has a buffer of several elements"
    if sum(registers_of(new) for new in news) > _REGISTERS:
        return f"an iteration's buffers take more than {_REGISTERS} registers"
    for op in body:
        for result in op.results:
            outside = any(use.owner.operation.block != op.block for use in result.uses)
            if isinstance(result.type, ir.IndexType) and outside:
                return "an index that a value decides is used in a loop"
    return None


def _reads_of(loops: Sequence[ParOp]) -> Iterator[StagedRead]:
    """Yield the reads of seq loops that can be staged: of elements that several iterations of a tile read."""
    written = {access.buffer for access in accesses_in(loops[0].operation) if access.writes}
    own = {loop.variable for loop in loops}
    for seq in seqs_of(loops):
        if seq.stages is not None or seq.tile == 0:
            continue
        for access in accesses_in(seq.operation):
            if access.writes or access.buffer in written or memory_of(access.buffer) != "scratch":
                continue
            read = _read_of(access, seq, own)
            if read is not None and 0 < len(own.intersection(read.variables)) < len(own):
                yield read


def _read_of(access: BufferAccess, seq: SeqOp, own: Container[ir.Value]) -> StagedRead | None:
    """Return a read as one of a tile: of an element for each value of its variables; None if it is not one."""
    used = sorted({number for result in access.map.results for number in result.variables()[0]})
    by_loop = {access.variables[number]: number for number in used}
    if len(by_loop) < len(used) or any(loop_of(variable) is None for variable in by_loop):
        return None
    variables = sorted(by_loop, key=lambda variable: variable in own)
    if seq.variable not in variables:
        return None
    ranges = tuple(Interval(0, _extent(variable) - 1) for variable in variables)
    places = {by_loop[variable]: dim(place) for place, variable in enumerate(variables)}
    map_ = IndexingMap(ranges, (), tuple(result.substitute(places) for result in access.map.results))
    # A condition may leave out iterations that would read beyond the array.
    if any(own.lower < 0 or own.upper >= size for own, size in zip(map_.result_ranges(), access.shape, strict=True)):
        return None
    position = linearize(list(map_.results), access.shape)
    return StagedRead(access, seq, tuple(variables), map_) if is_injective(position, [e.size for e in ranges]) else None


def _extent(variable: ir.Value) -> int:
    loop = loop_of(variable)
    assert loop is not None, "indices that values decide are no variables of staged reads"
    return cast(SeqOp, loop.opview).extent


def _sides(loops: Sequence[ParOp], reads: Sequence[StagedRead], target: Device) -> tuple[int, ...] | str:
    """Return how many iterations of each loop a block has: several of those that some reads need and others do not."""
    if not reads:
        return "no seq loop reads elements that several iterations around it share, each element once"
    used = [{loop.variable for loop in loops} & set(read.variables) for read in reads]
    varied = [loop for loop in loops if len({loop.variable in each for each in used}) > 1]
    is_asked = any(loop.tile is not None for loop in loops)
    if len(varied) < 2 and not is_asked:
        return "no two reads of a seq loop are each shared by iterations that need different elements of the other"
    for iterations in ITERATIONS:
        side = 1 << int(math.log2(iterations) / max(1, len(varied)))
        sides = tuple(
            loop.tile or (min(side, 1 << (loop.extent - 1).bit_length()) if loop in varied else 1) for loop in loops
        )
        blocks = math.prod(-(-loop.extent // own) for loop, own in zip(loops, sides, strict=True))
        warps = blocks * min(MOST_THREADS, math.prod(sides)) // WARP_SIZE
        if is_asked or warps >= target.sm_count * target.schedulers * WARPS:
            return sides
    return f"tiles of {ITERATIONS[-1]} iterations are too few for {target.sm_count} multiprocessors"


def _step(loops: Sequence[ParOp], reads: tuple[StagedRead, ...], sides: tuple[int, ...]) -> int | None:
    """Return how many iterations of a seq loop are staged at once; None if there is no room for enough."""
    asked = next((read.seq.tile for read in reads if read.seq.tile), None)
    narrowest = min(read.access.dtype.storage_bits for read in reads)
    step = asked or 8 * _STEP_BYTES // narrowest
    while True:
        found = ReadTiles(sides, step, reads, 0.0)
        bits = sum(
            math.prod(found.extent_of(each, loops, read.seq) for each in read.variables)
            * read.access.dtype.storage_bits
            for read in reads
        )
        if bits <= 8 * _TILE_BYTES or asked:
            return step
        if step <= _LEAST_STEP:
            return None
        step //= 2


def is_ragged(loop: ParOp, side: int) -> bool:
    """Whether the last tile of a loop is only partly filled."""
    return loop.extent % side != 0


def _ragged_problem(loops: Sequence[ParOp], tiles: ReadTiles) -> str | None:
    """Return why tiles that do not divide a loop cannot be: more is computed from it than staged reads."""
    ragged = {loop.variable: loop for loop, side in zip(loops, tiles.sides, strict=True) if is_ragged(loop, side)}
    staged = {read.access.op for read in tiles.reads}
    for seq in {read.seq: None for read in tiles.reads}:
        for op in walk(seq.operation):
            own = next((operand for operand in op.operands if operand in ragged), None)
            if own is not None and op not in staged:
                loop = ragged[own]
                return f"tiles do not divide 'par {loop.called}', on which more than staged reads depend"
    return None


def _gain(loops: Sequence[ParOp], tiles: ReadTiles, target: Device) -> float:
    """Return how many times as many passes through the first cache, or shared memory, reads take without tiles."""
    inner = [access for access in global_accesses(loops) if not access.writes and _is_in_seq(access, loops)]
    staged = {read.access.op for read in tiles.reads}
    direct = _direct_passes(loops, inner, target)
    left = _direct_passes(loops, [access for access in inner if access.op not in staged], target)
    covered = math.prod(
        -(-loop.extent // side) * side / loop.extent for loop, side in zip(loops, tiles.sides, strict=True)
    )
    return direct / (covered * (left + sum(_tiled_passes(read, loops, tiles) for read in tiles.reads)))


def _direct_passes(loops: Sequence[ParOp], accesses: Sequence[BufferAccess], target: Device) -> float:
    """Return the passes that accesses take for an iteration of the par loops, by the map that they would have."""
    touches = tuple(touches_of(accesses, loops))
    if not touches:
        return 0.0
    space = Space(tuple(loop.extent for loop in loops), GRID_THREADS, blocks=True)
    boxes = boxes_of(loops, space, target) or [(1,) * len(loops)]
    return best_boxes(space, touches, tuple(boxes)).score.sectors


def _is_in_seq(access: BufferAccess, loops: Sequence[ParOp]) -> bool:
    return _times(access, loops) > 1


def _times(access: BufferAccess, loops: Sequence[ParOp]) -> int:
    """Return how often an iteration of the par loops makes an access."""
    around = itertools.takewhile(lambda op: op != loops[-1].operation, ancestors(access.op))
    return math.prod(cast(SeqOp, op.opview).extent for op in around if op.name == SEQ)


def _tiled_passes(read: StagedRead, loops: Sequence[ParOp], tiles: ReadTiles) -> float:
    """Return the passes that a staged read takes for an iteration of the par loops, with the copies to its tile."""
    apart = told_apart(loops)
    several = [loop.variable for loop, side in zip(loops, tiles.sides, strict=True) if side > 1]
    several = [variable for variable in several if variable not in apart]
    others = [variable for variable in several if variable not in read.variables]
    # A thread's iterations lie along all loops of the tile alike, but for those of which conditions tell them apart.
    together = MOST_TOGETHER ** (len(others) / max(1, len(several)))
    extents = [tiles.extent_of(variable, loops, read.seq) for variable in read.variables]
    own = {loop.variable for loop in loops}
    of_seq = math.prod(_extent(variable) for variable in read.variables if variable not in own)
    of_par = math.prod(side for loop, side in zip(loops, tiles.sides, strict=True) if loop.variable in read.variables)
    copies = of_seq * of_par / math.prod(tiles.sides)
    touch = Touch(linearize(list(read.map.results), read.access.shape), read.access.dtype.storage_bits)
    space = Space(tuple(extents), MOST_THREADS, blocks=False)
    copied = best_boxes(space, (touch,), ((1,) * len(extents),)).score.sectors
    return _times(read.access, loops) / (together * WARP_SIZE) + copies * (copied + 1 / WARP_SIZE)
