"""Transposes in canonical form, and which of them need a tile.

Dimensions of size 1 are dropped and those that stay neighbours are merged. What is left of the shape ends with the
minor dimension if the transpose keeps it minor, else with a 1. A transpose is tiled over the two dimensions before that
one on either side, which are far apart on the other side.
"""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.costs.sectors import LINE_BYTES, fills_sectors
from xgpu.indexing.access import Shape, integers, shape_of
from xgpu.records import dataclass

_LEAST = 8
_LEAST_BOTH = 16
_LEAST_PRODUCT = 8192
"""Rows and columns from which on a tile pays: both of them the second, or the first in so large a plane as the third.

(Source: XLA's emitter of transposes.)
"""
FEWEST_IN_TILES = _LEAST_BOTH**2
"""Elements of an array below which no transpose of it takes tiles."""
_MOST_ACCESS_BYTES = 16


@dataclass(frozen=True)
class Transpose:
    """``shape`` is that of the operand, ``permutation`` the operand's dimension for each of the result's, the last in
    its place.

    ``rows`` and ``columns`` are the operand's dimensions that are minor, before the last, in the result and operand.
    """

    shape: Shape
    permutation: tuple[int, ...]

    @property
    def rows(self) -> int:
        """The dimension of the operand that the result has before its last."""
        return self.permutation[-2]

    @property
    def columns(self) -> int:
        """The dimension of the operand before its last."""
        return len(self.shape) - 2

    @property
    def group(self) -> int:
        """The number of contiguous elements that stay contiguous."""
        return self.shape[-1]

    @property
    def others(self) -> list[int]:
        """The dimensions of the operand that no tile has a part of."""
        return [i for i in range(len(self.shape) - 1) if i not in (self.rows, self.columns)]

    def grid(self, side: int) -> Shape:
        """Return how many tiles of so many rows and columns there are: in the others, down the rows, along columns."""
        tiled = (-(-self.shape[i] // side) for i in (self.rows, self.columns))
        return (*[self.shape[i] for i in self.others], *tiled)


def canonical(shape: Sequence[int], permutation: Sequence[int]) -> Transpose | None:
    """Return the canonical form of a transpose; None if it moves no element."""
    kept = [i for i, size in enumerate(shape) if size != 1]
    order = [kept.index(i) for i in permutation if i in kept]
    # Runs of dimensions that are neighbours, in the same order, on both sides.
    runs: list[list[int]] = []
    for i in order:
        if runs and runs[-1][-1] == i - 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    by_position = sorted(runs)
    merged = [math.prod(shape[kept[i]] for i in run) for run in by_position]
    moved = [by_position.index(run) for run in runs]
    if len(moved) < 2:
        return None
    if moved[-1] != len(moved) - 1:
        merged.append(1)
        moved.append(len(moved))
    return Transpose(tuple(merged), tuple(moved))


def transpose_of(op: ir.Operation) -> Transpose | None:
    """Return the canonical form of a ``stablehlo.transpose``."""
    return canonical(shape_of(op.operands[0]), integers(op, "permutation"))


def moves_lines(transpose: Transpose, element_bits: int) -> bool:
    """Whether what stays contiguous is a line of memory or more, so that any kernel reads it as well from elsewhere."""
    return transpose.group * element_bits >= 8 * LINE_BYTES


def access_width(transpose: Transpose, element_bytes: int) -> int:
    """Return how many elements of a tile a thread reads or writes at once: 16 bytes if every row is aligned to them."""
    if transpose.group > 1:
        return 1
    rows, columns = transpose.shape[transpose.rows], transpose.shape[transpose.columns]
    return math.gcd(_MOST_ACCESS_BYTES // element_bytes, rows, columns)


def moves_rows(transpose: Transpose, element_bits: int) -> bool:
    """Whether plain loads and stores of the elements that stay together use most of the sectors that they touch."""
    return fills_sectors(transpose.group * element_bits)


def needs_tile(transpose: Transpose, element_bits: int, stored_bits: int) -> bool:
    """Whether plain loads or stores would waste most of each sector, and both dimensions fill a tile.

    ``stored_bits`` are those of the narrowest element that the kernel stores: a thread must write whole bytes.
    """
    rows, columns = transpose.shape[transpose.rows], transpose.shape[transpose.columns]
    if transpose.rows == transpose.columns or moves_rows(transpose, element_bits):
        return False
    if access_width(transpose, max(1, element_bits // 8)) * stored_bits % 8:
        return False
    least = min(rows, columns)
    return least >= _LEAST_BOTH or (least >= _LEAST and rows * columns >= _LEAST_PRODUCT)
