"""Copies of a tile of an array to shared memory by threads: in units, which are neighbours of a row.

A row of the tile goes along the dimension whose elements are neighbours in memory. In shared memory rows lie one after
the other. The chunks of 16 bytes of a row are permuted, so that eight rows have the same chunk in different banks:
`xgpu.load_matrix` reads eight of them at once.
"""

import math

from xgpu.indexing.affine import AffineExpr, Division, Symbol, dim, linearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier
from xgpu.records import dataclass

CHUNK_BYTES = 16
ASYNC_BYTES = (16, 8, 4)
"""Units that copies which threads do not wait for may have; narrower ones go through registers."""
_ROWS_AT_ONCE = 8


@dataclass(frozen=True)
class SharedRows:
    """Rows in shared memory, of so many bytes, a multiple of 16."""

    rows: int
    row_bytes: int

    @property
    def bytes(self) -> int:
        """The bytes of the buffer."""
        return self.rows * self.row_bytes

    def place(self, row: AffineExpr, byte: AffineExpr) -> tuple[AffineExpr, ...]:
        """Return where a byte of a row is, as four numbers: ``first + (chunk xor turn) * 16 + rest``."""
        chunks = self.row_bytes // CHUNK_BYTES
        turns = math.gcd(chunks, _ROWS_AT_ONCE)
        turn = row // (_ROWS_AT_ONCE // turns) % turns
        return row * self.row_bytes, byte // CHUNK_BYTES, turn, byte % CHUNK_BYTES

    def units(self, threads: int, size: int, parts: int = 1) -> IndexingMap:
        """Return (thread)[pass, part] -> (row, byte in the row, and the four numbers of where it is).

        A unit has ``size`` bytes, of ``parts`` parts; the threads of a block take one after the other.
        """
        of_row = self.row_bytes // size
        count = self.rows * of_row
        number = dim(0) + symbol(0) * threads
        row, byte = number // of_row, number % of_row * size + symbol(1) * (size // parts)
        symbols = (Interval(0, -(-count // threads) - 1), Interval(0, parts - 1))
        bounds = () if count % threads == 0 else ((number, Interval(0, count - 1)),)
        results = (row, byte, *self.place(row, byte))
        return IndexingMap((Interval(0, threads - 1),), symbols, results, bounds).with_simple_results()


@dataclass(frozen=True)
class RowTile:
    """A tile of an array, given by its map; ``inner`` is its dimension whose elements are neighbours in memory.

    ``position`` is where an element is in the array, of which each has ``size`` bytes.
    """

    map: IndexingMap
    position: AffineExpr
    inner: int
    size: int

    @classmethod
    def of(cls, map_: IndexingMap, shape: tuple[int, ...], size: int) -> "RowTile | str":
        """Return the tile of an array of ``shape``, or why its rows are not neighbours in memory."""
        position = Simplifier(map_.dims, map_.symbols).simplify(linearize(map_.results, shape))
        for number in (1, 0):
            if _is_along(position, number) and all(_is_simple(each, number) for each, _ in map_.constraints):
                return cls(map_, position, number, size)
        return "no dimension of it is contiguous in memory"

    @property
    def shared(self) -> SharedRows:
        """The tile in shared memory."""
        rows, columns = self.map.symbols[1 - self.inner].size, self.map.symbols[self.inner].size
        return SharedRows(rows, columns * self.size)

    @property
    def unit(self) -> int:
        """The bytes of the widest units: those that all begin at multiples, and are wholly inside or outside."""
        expressions = [self.position]
        width = self.map.symbols[self.inner].size
        for expression, bound in self.map.constraints:
            if _is_along(expression, self.inner):
                expressions.append(expression)
                width = math.gcd(width, bound.upper + 1, bound.lower)
        for expression in expressions:
            width = math.gcd(width, (expression - symbol(self.inner)).divisor())
        return math.gcd(width * self.size, CHUNK_BYTES)

    def source(self) -> IndexingMap:
        """Return (block, step, row, byte of the row) -> indices and position of the element, where it is inside."""
        count = len(self.map.dims)
        shared = self.shared
        element = dim(count + 1) // self.size
        at = [element, element]
        at[1 - self.inner] = dim(count)
        dims = (*self.map.dims, Interval(0, shared.rows - 1), Interval(0, shared.row_bytes - 1))
        results = tuple(each.substitute(None, at) for each in (*self.map.results, self.position))
        bounds = tuple((each.substitute(None, at), bound) for each, bound in self.map.constraints)
        return IndexingMap(dims, (), results, bounds)


def _is_along(expression: AffineExpr, number: int) -> bool:
    """Whether an expression rises by one with a tile's index."""
    return dict(expression.terms).get(Symbol(number)) == 1 and _is_simple(expression, number)


def _is_simple(expression: AffineExpr, number: int) -> bool:
    """Whether a tile's index is in an expression as it is, with factor 1, or not at all."""
    divided = [atom.expr for atom, _ in expression.terms if isinstance(atom, Division)]
    return dict(expression.terms).get(Symbol(number), 1) == 1 and not any(
        number in each.variables()[1] for each in divided
    )
