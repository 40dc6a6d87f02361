"""How a block moves a tile of a transpose through shared memory: the maps of its threads, free of bank conflicts.

A tile has ``rows`` x ``columns`` groups of elements that stay together; elsewhere in this file a group is one element.
Both global accesses are as wide as alignment allows: a *chunk* of ``width`` elements along the columns when reading,
along the rows when writing. In shared memory the chunks of a row are rotated, by more from one run of ``width`` rows to
the next: so the threads of a warp, which read down a few columns, find every element in another bank, and a chunk
is still written at once. (The rotation does what a padding column does for single elements, without breaking the
alignment of chunks.)
"""

from dataclasses import dataclass

from xgpu.indexing.affine import AffineExpr, constant, dim, symbol
from xgpu.indexing.interval import Interval

WARP = 32
BANK_BYTES = 4
WAVE_BYTES = 128
_SIDE = {1: 128, 2: 128, 4: 64, 8: 32, 16: 32}
"""Rows and columns of a tile by the bytes of an element: enough for every bank, and for 16 bytes a thread or more."""
_GROUPED_SIDE = 32
_THREADS = 512
_THREADS_OF_NARROW_ACCESSES = 1024
_NARROW_BYTES = 4


@dataclass(frozen=True)
class Place:
    """Where a thread is in the tile, for each step of its loop over ``steps`` (the symbols of a map).

    ``row`` and ``column`` count groups, ``element`` is the place in the group, ``address`` that in the tile's memory.
    """

    steps: tuple[Interval, ...]
    row: AffineExpr
    column: AffineExpr
    element: AffineExpr
    address: AffineExpr


@dataclass(frozen=True)
class TransposeTile:
    """A tile for elements of ``element_bytes``, in groups of ``group``, read and written ``width`` at a time."""

    element_bytes: int
    width: int
    group: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block: more where each has less in flight."""
        return _THREADS_OF_NARROW_ACCESSES if self.width * self.element_bytes <= _NARROW_BYTES else _THREADS

    @property
    def side(self) -> int:
        """Rows and columns, in groups."""
        return _SIDE[self.element_bytes] if self.group == 1 else _GROUPED_SIDE

    @property
    def size(self) -> int:
        """Elements of shared memory."""
        return self.side * self._row_size

    @property
    def _row_size(self) -> int:
        # Groups of a column then follow each other as those of a row do, seen from the banks.
        return self.side if self.group == 1 else (self.side + 1) * self._room

    @property
    def _room(self) -> int:
        """Elements that a group of several takes in the tile: whole banks."""
        return -(-self.group * self.element_bytes // BANK_BYTES) * BANK_BYTES // self.element_bytes

    @property
    def _chunks(self) -> int:
        return self.side // self.width

    def _rotated(self, chunk: AffineExpr, run: AffineExpr) -> AffineExpr:
        """Where a chunk of a row lies in the row; ``run`` counts the runs of ``width`` rows."""
        by = max(1, BANK_BYTES // (self.width * self.element_bytes))
        return (chunk + run * by) % self._chunks

    def reading(self) -> Place:
        """Consecutive threads read consecutive chunks of a row and put them into the tile."""
        thread, step, within = dim(0), symbol(0), symbol(1)
        if self.group > 1:
            place = thread + step * self.threads
            row, rest = place // (self.side * self.group), place % (self.side * self.group)
            column, element = rest // self.group, rest % self.group
            address = row * self._row_size + column * self._room + element
            return Place(self._grouped_steps(), row, column, element, address)
        place = thread + step * self.threads
        row, chunk = place // self._chunks, place % self._chunks
        address = row * self.side + self._rotated(chunk, row // self.width) * self.width + within
        return Place(self._steps(), row, chunk * self.width + within, constant(0), address)

    def writing(self) -> Place:
        """Consecutive threads take chunks of a column from the tile, in as many columns as there are banks for."""
        thread, step, within = dim(0), symbol(0), symbol(1)
        if self.group > 1:
            place = thread + step * self.threads
            column, rest = place // (self.side * self.group), place % (self.side * self.group)
            row, element = rest // self.group, rest % self.group
            address = row * self._row_size + column * self._room + element
            return Place(self._grouped_steps(), row, column, element, address)
        runs = min(WARP, WAVE_BYTES // (self.width * self.element_bytes))
        lane, place = thread % WARP, thread // WARP + step * (self.threads // WARP)
        higher = self._chunks // runs
        run = place % higher * runs + lane % runs
        column = place // higher * (WARP // runs) + lane // runs
        rotated = self._rotated(column // self.width, run) * self.width + column % self.width
        row = run * self.width + within
        return Place(self._steps(), row, column, constant(0), row * self.side + rotated)

    def _steps(self) -> tuple[Interval, ...]:
        return Interval(0, self.side * self._chunks // self.threads - 1), Interval(0, self.width - 1)

    def _grouped_steps(self) -> tuple[Interval, ...]:
        return (Interval(0, self.side * self.side * self.group // self.threads - 1),)
