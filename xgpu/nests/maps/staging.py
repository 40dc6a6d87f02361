"""The reads of a kernel's loops that are staged in shared memory, and their tiles.

A `seq` loop may read elements that several iterations of the par loops around it need: in a product by rows, an element
of either matrix. Blocks that have tiles of these iterations copy what they read into shared memory, some steps at a
time, and read it there, whatever its order in memory.
"""

import itertools
import math
from collections.abc import Container, Iterator, Sequence
from typing import cast

from xgpu import ir
from xgpu.costs.sectors import LINE_BYTES, SECTOR_BYTES
from xgpu.device import Device
from xgpu.dialects.nests.accesses import ToIndexOp, elements_of
from xgpu.dialects.nests.loops import NewOp, ParOp, SeqOp
from xgpu.indexing.affine import Dim, dim, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.held_buffers import MAX_ITERATIONS, MAX_REGISTERS, registers_of
from xgpu.nests.maps.box_choice import MOST_TOGETHER, WARPS, boxes_of, told_apart
from xgpu.nests.maps.groups import GRID_THREADS, MOST_THREADS
from xgpu.nests.maps.mapping import best_boxes
from xgpu.nests.maps.scores import Space, is_injective
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
from xgpu.structure import dtype_of, is_constant, walk
from xgpu.target_machine import WARP_SIZE

ITERATIONS = (4096, 1024)
"""Iterations of the par loops that a block has, the more the better if there are blocks for the whole device."""
_STEP_BYTES = 128
"""Bytes that a step copies of each row: a line of the cache."""
_LEAST_STEP = 8
"""Iterations of a seq loop that a step has at least: threads wait for each other twice in each."""
_AROUND = 8
"""Operations that the loops around a part of an iteration add, and how it ends."""
_TILE_BYTES = 1 << 15
"""Bytes of a block's tiles, at most: a multiprocessor has room for several blocks."""
_GAIN = 1.0
"""The passes of reads without tiles for each one with them, at least. Barriers are not counted, nor that reads of
shared memory come sooner: the two were measured to make up for each other."""


@dataclass(frozen=True)
class StagedRead:
    """A read whose elements are staged: its tile has a dimension for each of the variables, seq loops first.

    ``map`` is from these, each in its loop's whole range, to the element of the array.
    """

    access: BufferAccess
    seq: SeqOp
    variables: tuple[ir.Value, ...]
    map: IndexingMap

    @property
    def key(self) -> tuple[object, ...]:
        """The same for all reads of one tile."""
        return self.access.buffer, self.seq, self.variables, self.map


@dataclass(frozen=True)
class ReadTiles:
    """Tiles of a kernel: a block has ``sides`` iterations of each par loop, and copies ``step`` of a seq at once."""

    sides: tuple[int, ...]
    step: int
    reads: tuple[StagedRead, ...]

    def step_of(self, seq: SeqOp) -> int:
        """Return how many iterations of a seq loop are staged at once."""
        return min(seq.tile or self.step, seq.extent)

    def extent_of(self, variable: ir.Value, loops: Sequence[ParOp], seq: SeqOp) -> int:
        """Return how many values of a variable a tile has elements for."""
        if variable == seq.variable:
            return self.step_of(seq)
        for loop, side in zip(loops, self.sides, strict=True):
            if variable == loop.variable:
                return side
        return _extent(variable)


def staging_of(loops: Sequence[ParOp], target: Device, bands: int = 1) -> ReadTiles | str:
    """Return how reads inside of a kernel's outermost par loops are staged, or why none is.

    ``bands`` are those of the program, with which maps of theirs are chosen.
    """
    if problem := _obstacle(loops):
        return problem
    reads = tuple(_reads_of(loops))
    statements = Statements.of(loops, reads)
    if any(isinstance(value.type, ir.IndexType) for value in statements.kept):
        return "an index that a value decides is used beside a loop and in it"
    sides = _sides(loops, reads, statements, target)
    if isinstance(sides, str):
        return sides
    step = _step(loops, reads, sides)
    if step is None:
        return f"tiles of the least step, {_LEAST_STEP} iterations, take more than {_TILE_BYTES} bytes"
    found = ReadTiles(sides, step, reads)
    if problem := _ragged_problem(loops, found):
        return problem
    asked = any(loop.tile for loop in loops) or any(read.seq.tile for read in reads)
    if not asked and (gain := _gain(loops, found, target, bands)) < _GAIN:
        return f"reads take {gain:.2f} times as many passes without tiles as with them"
    return found


@dataclass(frozen=True)
class Statements:
    """The statements of an iteration as tiles have them: seq loops whose reads are staged, and what is between.

    ``kept`` are values, no constants, that are computed in one of the parts and used in another one.
    """

    parts: tuple[tuple[ir.Operation, ...], ...]
    kept: tuple[ir.Value, ...]

    @classmethod
    def of(cls, loops: Sequence[ParOp], reads: Sequence[StagedRead]) -> "Statements":
        """Return the statements of the innermost of ``loops``, but for the buffers that they make."""
        staged = {read.seq.operation for read in reads}
        parts: list[list[ir.Operation]] = [[]]
        for op in operations_of(loops[-1].body):
            if op in staged:
                parts += [[op], []]
            elif op.name != NewOp.OPERATION_NAME:
                parts[-1].append(op)
        kept = [value for part in parts for op in part for value in op.results if _is_kept(value, part)]
        return cls(tuple(tuple(part) for part in parts if part), tuple(kept))


def _is_kept(value: ir.Value, part: Sequence[ir.Operation]) -> bool:
    if is_constant(value):
        return False
    users = (use.owner.operation for use in value.uses)
    return any(user not in part and not any(each in part for each in ancestors(user)) for user in users)


def _obstacle(loops: Sequence[ParOp]) -> str | None:
    body = operations_of(loops[-1].body)
    if has_par(*body):
        return f"there are par loops inside of 'par {loops[-1].called}'"
    for loop in loops:
        asked = (getattr(loop, name) for name in ("band", "threads", "vector", "together", "align", "group"))
        if any(value is not None for value in asked):
            return f"the program says itself who runs 'par {loop.called}'"
    news = _news(loops)
    if any(elements_of(new.buffer) > 1 for new in news):
        return "an iteration has a buffer of several elements"
    if any(new.memory not in (None, "register") for new in news):
        return "an iteration has a buffer that is not in registers"
    seqs = [cast(SeqOp, op.opview) for op in body if op.name == SEQ]
    if seqs and all(seq.tile == 0 or seq.stages is not None for seq in seqs):
        return "the program leaves the reads of its loops as they are"
    return None


def _news(loops: Sequence[ParOp]) -> list[NewOp]:
    """Return the buffers that an iteration makes for all of its statements."""
    return [cast(NewOp, op.opview) for op in operations_of(loops[-1].body) if op.name == NewOp.OPERATION_NAME]


def _reads_of(loops: Sequence[ParOp]) -> Iterator[StagedRead]:
    """Yield the reads of seq loops that can be staged: of elements that several iterations of a tile read."""
    written = {access.buffer for access in accesses_in(loops[0].operation) if access.writes}
    own = {loop.variable for loop in loops}
    for seq in (cast(SeqOp, op.opview) for op in operations_of(loops[-1].body) if op.name == SEQ):
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


def _sides(
    loops: Sequence[ParOp], reads: Sequence[StagedRead], statements: Statements, target: Device
) -> tuple[int, ...] | str:
    """Return how many iterations of each loop a block has: several of those that some reads need and others do not."""
    if not reads:
        return "no seq loop reads elements that several iterations around it share, each element once"
    used = [{loop.variable for loop in loops} & set(read.variables) for read in reads]
    varied = [loop for loop in loops if len({loop.variable in each for each in used}) > 1]
    is_asked = any(loop.tile is not None for loop in loops)
    if len(varied) < 2 and not is_asked:
        return "no two reads of a seq loop are each shared by iterations that need different elements of the other"
    problem = ""
    for iterations in ITERATIONS:
        side = 1 << int(math.log2(iterations) / max(1, len(varied)))
        wanted = [loop.tile or (side if loop in varied else 1) for loop in loops]
        most = [loop.extent if loop.tile else 1 << (loop.extent - 1).bit_length() for loop in loops]
        sides = tuple(map(min, wanted, most))
        blocks = math.prod(-(-loop.extent // own) for loop, own in zip(loops, sides, strict=True))
        warps = blocks * min(MOST_THREADS, math.prod(sides)) // WARP_SIZE
        if not is_asked and warps < target.sm_count * target.schedulers * WARPS:
            problem = f"tiles of {iterations} iterations are too few for {target.sm_count} multiprocessors"
        elif not (problem := _held_problem(loops, statements, sides)):
            return sides
    return problem


def _held_problem(loops: Sequence[ParOp], statements: Statements, sides: Sequence[int]) -> str:
    """Return why threads cannot hold what iterations of a tile keep from one part to the next; "" if they can."""
    slots = -(-math.prod(sides) // MOST_THREADS)
    bits = (dtype_of(value).storage_bits for value in statements.kept)
    registers = sum(registers_of(new) for new in _news(loops)) + sum(max(1, -(-each // 32)) for each in bits)
    if slots * registers > MAX_REGISTERS:
        return f"a thread would hold {slots * registers} elements of its iterations, more than {MAX_REGISTERS}"
    longest = max(sum(len(walk(op)) for op in part) for part in statements.parts)
    # Loops, conditions and what is kept add some.
    longest += 4 * (len(statements.kept) + len(loops)) + _AROUND
    if slots > 1 and slots * longest > MAX_ITERATIONS:
        return f"a thread would have {slots} iterations of up to {longest} operations written out for it"
    return ""


def _step(loops: Sequence[ParOp], reads: tuple[StagedRead, ...], sides: tuple[int, ...]) -> int | None:
    """Return how many iterations of a seq loop are staged at once; None if there is no room for enough."""
    step = 8 * _STEP_BYTES // min(read.access.dtype.storage_bits for read in reads)
    unique = {read.key: read for read in reads}.values()
    while True:
        found = ReadTiles(sides, step, reads)
        bits = sum(
            math.prod(found.extent_of(each, loops, read.seq) for each in read.variables)
            * read.access.dtype.storage_bits
            for read in unique
        )
        if bits <= 8 * _TILE_BYTES or all(read.seq.tile for read in reads):
            return step
        if step <= _LEAST_STEP:
            return None
        step //= 2


def is_ragged(loop: ParOp, side: int) -> bool:
    """Whether the last tile of a loop is only partly filled."""
    return loop.extent % side != 0


def _ragged_problem(loops: Sequence[ParOp], tiles: ReadTiles) -> str | None:
    """Return why tiles that do not divide a loop cannot be: what is done beyond its end must be seen nowhere."""
    ragged = {loop.variable: loop for loop, side in zip(loops, tiles.sides, strict=True) if is_ragged(loop, side)}
    if not ragged:
        return None
    staged, first = {read.access.op for read in tiles.reads}, next(iter(ragged.values()))
    own = {new.buffer for new in _news(loops)}
    for seq in {read.seq: None for read in tiles.reads}:
        for op in walk(seq.operation):
            loop = next((ragged[operand] for operand in op.operands if operand in ragged), None)
            if loop is not None and op not in staged:
                return f"tiles do not divide 'par {loop.called}', on which more than staged reads depend"
            if op.name == NewOp.OPERATION_NAME:
                own.add(op.results[0])
            elif op.name == ToIndexOp.OPERATION_NAME:
                return f"tiles do not divide 'par {first.called}', and a loop reads an element that a value decides"
        if any(access.writes and access.buffer not in own for access in accesses_in(seq.operation)):
            return f"tiles do not divide 'par {first.called}', and a loop changes more than an iteration's own buffers"
    return None


def _gain(loops: Sequence[ParOp], tiles: ReadTiles, target: Device, bands: int) -> float:
    """Return how many times as many passes through the first cache, or shared memory, reads take without tiles."""
    accesses = global_accesses(loops)
    staged = {read.access.op for read in tiles.reads}
    others = [access for access in accesses if access.op not in staged and _times(access, loops) > 1]
    # The map is the one that the loops have if they stay.
    direct = _direct_passes(loops, accesses, target, bands)
    left = _direct_passes(loops, others, target, bands)
    covered = math.prod(
        -(-loop.extent // side) * side / loop.extent for loop, side in zip(loops, tiles.sides, strict=True)
    )
    reads = sum(_times(read.access, loops) / (_together(read, loops, tiles) * WARP_SIZE) for read in tiles.reads)
    copies = sum(_copy_passes(read, loops, tiles) for read in {read.key: read for read in tiles.reads}.values())
    return direct / (covered * (left + reads + copies))


def _direct_passes(loops: Sequence[ParOp], accesses: Sequence[BufferAccess], target: Device, bands: int) -> float:
    """Return the passes that accesses take for an iteration of the par loops, by the map that they would have."""
    touches = tuple(touches_of(accesses, loops))
    if not touches:
        return 0.0
    space = Space(tuple(loop.extent for loop in loops), GRID_THREADS, blocks=True)
    boxes = boxes_of(loops, space, target) or [(1,) * len(loops)]
    return best_boxes(space, touches, tuple(boxes), bands).score.sectors


def _times(access: BufferAccess, loops: Sequence[ParOp]) -> int:
    """Return how often an iteration of the par loops makes an access."""
    around = itertools.takewhile(lambda op: op != loops[-1].operation, ancestors(access.op))
    return math.prod(cast(SeqOp, op.opview).extent for op in around if op.name == SEQ)


def _together(read: StagedRead, loops: Sequence[ParOp], tiles: ReadTiles) -> float:
    """Return for how many iterations of a thread's an element of a tile is read once.

    They lie along all loops of the tile alike, but for those of which conditions tell iterations apart.
    """
    apart = told_apart(loops)
    several = [loop.variable for loop, side in zip(loops, tiles.sides, strict=True) if side > 1]
    several = [variable for variable in several if variable not in apart]
    others = [variable for variable in several if variable not in read.variables]
    return float(MOST_TOGETHER ** (len(others) / max(1, len(several))))


def _copy_passes(read: StagedRead, loops: Sequence[ParOp], tiles: ReadTiles) -> float:
    """Return the passes that it takes to fill a tile, for an iteration of the par loops."""
    own = {loop.variable for loop in loops}
    of_seq = math.prod(_extent(variable) for variable in read.variables if variable not in own)
    of_par = math.prod(side for loop, side in zip(loops, tiles.sides, strict=True) if loop.variable in read.variables)
    position = linearize(list(read.map.results), read.access.shape)
    strides = {atom.index: abs(factor) for atom, factor in position.terms if isinstance(atom, Dim)}
    run = math.prod(
        tiles.extent_of(variable, loops, read.seq)
        for number, variable in enumerate(read.variables)
        if strides.get(number) == 1
    )
    in_sector = min(run, max(1, 8 * SECTOR_BYTES // read.access.dtype.storage_bits))
    load = 1 / (in_sector * (LINE_BYTES // SECTOR_BYTES))
    return of_seq * of_par / math.prod(tiles.sides) * (load + 1 / WARP_SIZE)
