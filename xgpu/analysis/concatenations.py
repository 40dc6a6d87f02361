"""Concatenations, and the order in which their elements are best walked.

Seen in memory, a result is *rows*, each made of one *piece* of every operand: all that lies from the concatenated
dimension on. The loop emitter walks the result and asks of every run of elements which operand it comes from. That is
best while a warp is inside one piece; pieces that do not start at multiples of a run are then read element by element,
from lines that are in the cache, and still written in vectors. It is bad for short pieces, since the lanes of a warp
take many branches one after the other. The other emitters walk the operands, where lanes read what lies together: one
writes each element straight to where it belongs, the other through a tile of whole rows in shared memory.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from functools import cached_property

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.root_indices import Stored, at_root_indices
from xgpu.costs.sectors import SECTOR_BYTES
from xgpu.indexing.access import Shape, integer, shape_of
from xgpu.indexing.hlo_maps import access_kind
from xgpu.records import dataclass
from xgpu.structure import backward_slice, dtype_of, producer
from xgpu.target_machine import WARP_SIZE


class Walk(Enum):
    """The arrays that threads walk: the result, the operands, or the operands by way of a tile."""

    RESULT = auto()
    DIRECT = auto()
    TILED = auto()


THREADS = 128
"""Threads of a block that fills a tile."""
VECTOR_BYTES = 16
_WARP_BYTES = WARP_SIZE * VECTOR_BYTES
"""Bytes that a warp of the loop emitter stores: where pieces are that long on average, few warps cross two boundaries.

At odd places that takes a read for each element. Of bytes these are more than a cache serves in the time that memory
takes: 64 goes for the 512 bytes of a warp, which on an H200 are 1.8 TB/s if there is one each cycle.
"""
_WIDE_BYTES = 8
"""Bytes of a thread's access from which on a warp moves two lines of 128 bytes at once, and is fast without a tile."""
_NARROW_BYTES = 4
"""Bytes of a thread's access below which a warp moves less than one line of 128 bytes at once."""
_TILE_BYTES = 16 * 1024
"""Bytes of a tile that still allows full occupancy: 14 blocks of 128 threads on an SM, 128 bytes a thread."""
_MOST_TILE_BYTES = 32 * 1024
"""Bytes of a tile for half that occupancy, where rows have so many pieces that lanes idle in a smaller tile."""
MOST_PIECES = 128
"""Operands with code of their own. Concatenations of more use the loop emitter, whose code grows with them too."""
_MOST_TOGETHER = 16
"""Elements of several pieces that a thread computes at once: ptxas takes 168 registers for 32 of long functions."""
_REPEATED_OPS = 256
"""Operations that may be duplicated because several operands, or the epilogue as well, depend on them."""


@dataclass(frozen=True)
class Piece:
    """The part of each row from one operand: ``width`` elements from ``start`` on, at ``offset`` along the axis."""

    operand: int
    shape: Shape
    offset: int
    start: int
    width: int

    @property
    def elements(self) -> int:
        """Elements of the operand."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Concatenation:
    """A concatenation to ``shape`` along ``axis`` of operands of ``sizes`` along it."""

    shape: Shape
    axis: int
    sizes: tuple[int, ...]

    @cached_property
    def rows(self) -> int:
        """The number of times that the sequence of operands repeats in memory."""
        return math.prod(self.shape[: self.axis])

    @cached_property
    def row(self) -> int:
        """Elements of a row."""
        return math.prod(self.shape[self.axis :])

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of a row, in order: one for each operand that has elements."""
        inner = math.prod(self.shape[self.axis + 1 :])
        found, offset = [], 0
        for operand, size in enumerate(self.sizes):
            if size:
                shape = (*self.shape[: self.axis], size, *self.shape[self.axis + 1 :])
                found.append(Piece(operand, shape, offset, offset * inner, size * inner))
            offset += size
        return tuple(found)

    def alike(self, runs: Sequence[int]) -> tuple[tuple[Piece, ...], ...]:
        """Return the pieces in sets of one shape: threads that walk the operands compute elements of each at once.

        ``runs`` are how many elements of each piece a thread reads and writes together, as many of all in a set.
        """
        sets: dict[tuple[Shape, int], list[list[Piece]]] = {}
        for piece, run in zip(self.pieces, runs, strict=True):
            found = sets.setdefault((piece.shape, run), [[]])
            if len(found[-1]) == max(1, _MOST_TOGETHER // run):
                found.append([])
            found[-1].append(piece)
        together = [tuple(each) for found in sets.values() for each in found]
        return tuple(sorted(together, key=lambda pieces: pieces[0].operand))

    def run(self, piece: Piece, most: int) -> int:
        """Return the longest vector, a power of two up to ``most``, that is aligned in every piece."""
        boundaries = (piece.start, piece.width, self.row) if self.rows > 1 else (piece.start,)
        return math.gcd(most, *boundaries)


def concatenation_of(op: ir.Operation) -> Concatenation:
    """Return the layout of a ``stablehlo.concatenate``."""
    axis = integer(op, "dimension")
    return Concatenation(shape_of(op.results[0]), axis, tuple(shape_of(operand)[axis] for operand in op.operands))


@dataclass(frozen=True)
class ConcatenationTile:
    """Whole rows in shared memory, ``pitch`` elements apart.

    ``read`` and ``written`` are how many consecutive elements a thread reads of an operand and writes of a result.
    """

    rows: int
    pitch: int
    read: int
    written: int


def tile_of(
    concatenation: Concatenation, heroes: Sequence[ir.Value], roots: Sequence[ir.Value], blocks: int = 1
) -> ConcatenationTile | None:
    """Return the tile for the values ``heroes``, each with a tile of its own, and results ``roots``; None if too large.

    There are at least so many ``blocks``, if that leaves rows of which all threads read an operand at once.

    A tile starts at multiples of what a thread reads and writes. Reads are of 4 bytes: those of a warp are a line, and
    go to different banks of the tile as far as the pieces are long. Writes are of 16 bytes. Rows of a multiple of 16
    bytes are as far apart as an odd number of them, so that what neighbouring lanes put into different rows goes to
    different banks.
    """
    size = max(_bytes_of(value) for value in heroes)
    row = concatenation.row
    written = max(1, VECTOR_BYTES // max(_bytes_of(value) for value in (*roots, *heroes)))
    read = max(1, _NARROW_BYTES // size)
    pitch = row
    if row * size % VECTOR_BYTES == 0 and row * size // VECTOR_BYTES % 2 == 0:
        pitch += VECTOR_BYTES // size
    aligned = max(each // math.gcd(each, row) for each in (read, written))
    aligned = max(aligned, *(read // math.gcd(read, piece.width) for piece in concatenation.pieces))
    row_bytes = pitch * sum(map(_bytes_of, heroes))
    if aligned * row_bytes > _MOST_TILE_BYTES:
        return None
    mean = max(1, row // len(concatenation.pieces))
    filling = -(-THREADS * read // mean)
    rows = max(min(_TILE_BYTES // row_bytes, -(-concatenation.rows // blocks)), filling)
    rows = min(rows, _MOST_TILE_BYTES // row_bytes, concatenation.rows)
    most = max(1, rows // aligned)
    # The last tile is a partial one, in which every access is checked, unless the number divides all rows.
    dividing = (each for each in range(most, most // 2, -1) if concatenation.rows % (each * aligned) == 0)
    return ConcatenationTile(next(dividing, most) * aligned, pitch, read, written)


def walk_of(heroes: Sequence[ir.Operation], roots: Sequence[ir.Value], stored: Stored) -> Walk:
    """Return the fastest walk for a kernel that stores ``roots`` with ``heroes``, concatenations of one layout.

    ``stored`` tells of a value whether the kernel reads it, as it does arguments.
    """
    if not 2 <= len(concatenation_of(heroes[0]).pieces) <= MOST_PIECES or _repeats_much(heroes, roots, stored):
        return Walk.RESULT
    return _walk_of([hero.results[0] for hero in heroes], roots)


def together(op: ir.Operation) -> tuple[tuple[int, ...], ...] | None:
    """Return the operands of a concatenation of which threads that store it compute elements at once, in sets.

    None if a thread computes elements of one operand at a time.
    """
    layout, result = concatenation_of(op), op.results[0]
    if not 2 <= len(layout.pieces) <= MOST_PIECES:
        return None
    most, runs = max(_per_byte([result]), VECTOR_BYTES // _bytes_of(result)), [1] * len(layout.pieces)
    if not _is_known(layout, most):
        walk = _walk_of([result], [result])
        if walk is Walk.RESULT:
            return None
        read = max(1, _NARROW_BYTES // _bytes_of(result))
        runs = [read if walk is Walk.TILED else layout.run(piece, most) for piece in layout.pieces]
    sets = layout.alike(runs)
    if len(sets) == len(layout.pieces):
        return None
    return tuple([tuple([piece.operand for piece in pieces]) for pieces in sets])


def _per_byte(values: Iterable[ir.Value]) -> int:
    return max(8 // min(8, _storage_bits(value)) for value in values)


def _walk_of(results: Sequence[ir.Value], roots: Sequence[ir.Value]) -> Walk:
    """Return the fastest walk of kernels with ``results`` of concatenations of one layout, whatever they compute."""
    concatenation = concatenation_of(producer(results[0]))
    per_byte, size = _per_byte((*roots, *results)), max(_bytes_of(value) for value in (*roots, *results))
    pieces = concatenation.pieces
    most = max(per_byte, VECTOR_BYTES // size)
    run = min(concatenation.run(piece, most) for piece in pieces)
    mean = concatenation.row * size // len(pieces)
    is_long = mean >= _WARP_BYTES and (run == most or size > 1 or concatenation.rows == 1)
    if run < per_byte or _is_known(concatenation, most) or is_long:
        return Walk.RESULT
    if concatenation.rows == 1:
        return Walk.DIRECT
    if run * size >= _WIDE_BYTES and _fills_sectors(concatenation, size):
        return Walk.DIRECT
    if per_byte == 1 and tile_of(concatenation, results, roots) is not None:
        return Walk.TILED
    return (
        Walk.DIRECT
        if run * size >= _NARROW_BYTES and min(p.width for p in pieces) * size >= SECTOR_BYTES
        else Walk.RESULT
    )


def _is_known(concatenation: Concatenation, run: int) -> bool:
    """Whether each run of elements lies in one operand, known at compile time, and reads it aligned."""
    widths = (concatenation.row, *(piece.width for piece in concatenation.pieces))
    return concatenation.row <= run and all(width & (width - 1) == 0 for width in widths)


def _fills_sectors(concatenation: Concatenation, size: int) -> bool:
    """Whether sectors are filled at nearly one time: each has one operand, or all operands are at the same row."""
    pieces = concatenation.pieces
    boundaries = math.gcd(concatenation.row, *(piece.start for piece in pieces)) * size
    # Shorter pieces would leave sectors partly written.
    is_long = min(piece.width for piece in pieces) * size >= SECTOR_BYTES
    return boundaries % SECTOR_BYTES == 0 or (is_long and len({piece.width for piece in pieces}) == 1)


def _bytes_of(value: ir.Value) -> int:
    return max(1, _storage_bits(value) // 8)


def _storage_bits(value: ir.Value) -> int:
    return dtype_of(value).storage_bits


def _repeats_much(heroes: Sequence[ir.Operation], roots: Sequence[ir.Value], stored: Stored) -> bool:
    """Whether operands and epilogue share so many operations that functions of their own would duplicate too many."""
    layout, most = concatenation_of(heroes[0]), max(1, VECTOR_BYTES // _bytes_of(heroes[0].results[0]))
    alike = layout.alike([layout.run(piece, most) for piece in layout.pieces])
    operands = [[hero.operands[piece.operand] for piece in pieces for hero in heroes] for pieces in alike]
    seen: set[ir.Operation] = set()
    repeated = 0
    for values in (*operands, _read_elsewhere(heroes, roots, stored)):
        for op in _computed_with(values, stored):
            repeated += op in seen
            seen.add(op)
            if repeated > _REPEATED_OPS:
                return True
    return False


def _read_elsewhere(heroes: Sequence[ir.Operation], roots: Sequence[ir.Value], stored: Stored) -> list[ir.Value]:
    """Return the values that the epilogue reads at places other than those of the roots."""
    followers = [op for op in at_root_indices(roots, stored, behind_bitcasts=True) if op not in heroes]
    given = {value for op in (*followers, *heroes) for value in op.results}
    keep = [access_kind(op) == "elementwise" or is_bitcast(op) for op in followers]
    pairs = zip(followers, keep, strict=True)
    return [value for op, keeps in pairs for value in op.operands if value not in given or not keeps]


def _computed_with(values: Sequence[ir.Value], stored: Stored) -> Iterator[ir.Operation]:
    """Yield the backward slice of ``values``, up to what is read from memory."""
    return backward_slice(values, stored)
