"""A transpose's tile in shared memory: the maps of a block's threads, free of bank conflicts.

A tile has ``rows`` x ``columns`` groups of elements that stay together; elsewhere in this file a group is one element.
Both global accesses are as wide as alignment allows: a *chunk* of ``width`` elements along the columns when reading,
along the rows when writing. In shared memory the chunks of a row are rotated, by more from one run of ``width`` rows to
the next: so the threads of a warp, which read down a few columns, find every element in another bank, and a chunk
is still written at once. (The rotation does what a padding column does for single elements, without breaking the
alignment of chunks.)
"""

from collections.abc import Iterator

from xgpu.indexing.affine import AffineExpr, constant, dim, symbol
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

WARP = WARP_SIZE
BANK_BYTES = 4
WAVE_BYTES = 128


@dataclass(frozen=True)
class TilePosition:
    """The place of a thread in the tile, for each step of its loop over ``steps`` (the symbols of a map).

    ``row`` and ``column`` count groups, ``element`` is the place in the group, ``address`` that in the tile's memory.
    """

    steps: tuple[Interval, ...]
    row: AffineExpr
    column: AffineExpr
    element: AffineExpr
    address: AffineExpr


@dataclass(frozen=True)
class TransposeTile:
    """A tile for elements of ``element_bytes``, in groups of ``group``, read and written ``width`` at a time.

    It has ``side`` rows and columns of groups, which a block of ``threads`` moves.
    """

    element_bytes: int
    width: int
    group: int
    side: int
    threads: int

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield which number does not fit the others, and what was expected: each thread has the same to do."""
        if self.group > 1:
            if self.width > 1:
                yield "width", "1, as groups of elements stay together"
            if self.side * self.side * self.group % self.threads:
                yield "threads", f"a divisor of the tile's {self.side * self.side * self.group} elements"
            return
        lanes = self._runs if self.width * self.element_bytes <= WAVE_BYTES else 0
        if not lanes or self.side % (self.width * lanes) or self.side % (WARP // lanes):
            yield (
                "width",
                f"a side of whole runs of {max(1, lanes)} accesses, and accesses of at most {WAVE_BYTES} bytes",
            )
        elif self.side * self._chunks % self.threads or self.threads % WARP:
            yield "threads", f"whole warps that divide the tile's {self.side * self._chunks} accesses"

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
    def _runs(self) -> int:
        """Lanes of a warp that take chunks of one column: as many as there are banks for."""
        return min(WARP, WAVE_BYTES // (self.width * self.element_bytes))

    @property
    def _chunks(self) -> int:
        return self.side // self.width

    def _rotated(self, chunk: AffineExpr, run: AffineExpr) -> AffineExpr:
        """The place of a chunk of a row in the row; ``run`` counts the runs of ``width`` rows."""
        by = max(1, BANK_BYTES // (self.width * self.element_bytes))
        return (chunk + run * by) % self._chunks

    def reading(self) -> TilePosition:
        """Consecutive threads read consecutive chunks of a row and put them into the tile."""
        thread, step, within = dim(0), symbol(0), symbol(1)
        if self.group > 1:
            place = thread + step * self.threads
            row, rest = place // (self.side * self.group), place % (self.side * self.group)
            column, element = rest // self.group, rest % self.group
            address = row * self._row_size + column * self._room + element
            return TilePosition(self._grouped_steps(), row, column, element, address)
        place = thread + step * self.threads
        row, chunk = place // self._chunks, place % self._chunks
        address = row * self.side + self._rotated(chunk, row // self.width) * self.width + within
        return TilePosition(self._steps(), row, chunk * self.width + within, constant(0), address)

    def writing(self) -> TilePosition:
        """Consecutive threads take chunks of a column from the tile, in as many columns as there are banks for."""
        thread, step, within = dim(0), symbol(0), symbol(1)
        if self.group > 1:
            place = thread + step * self.threads
            column, rest = place // (self.side * self.group), place % (self.side * self.group)
            row, element = rest // self.group, rest % self.group
            address = row * self._row_size + column * self._room + element
            return TilePosition(self._grouped_steps(), row, column, element, address)
        runs = self._runs
        lane, place = thread % WARP, thread // WARP + step * (self.threads // WARP)
        higher = self._chunks // runs
        run = place % higher * runs + lane % runs
        column = place // higher * (WARP // runs) + lane // runs
        rotated = self._rotated(column // self.width, run) * self.width + column % self.width
        row = run * self.width + within
        return TilePosition(self._steps(), row, column, constant(0), row * self.side + rotated)

    def _steps(self) -> tuple[Interval, ...]:
        return Interval(0, self.side * self._chunks // self.threads - 1), Interval(0, self.width - 1)

    def _grouped_steps(self) -> tuple[Interval, ...]:
        return (Interval(0, self.side * self.side * self.group // self.threads - 1),)
