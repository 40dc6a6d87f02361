"""Products of tiles by instructions of warp groups (wgmma), whose accumulators are fragments of the group's warps."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from xgpu import ir
from xgpu.block_plan.instructions import BY_GROUPS
from xgpu.dialects.block import matrices
from xgpu.dtypes import dtype_named
from xgpu.passes.support import arith_builder as b
from xgpu.passes.tiles.blocks.products.fragments import (
    COLUMNS,
    HALVES,
    NEIGHBOURS,
    ROWS,
    Fragment,
    FragmentLayout,
    FragmentTile,
    PendingTile,
    converted,
)
from xgpu.passes.tiles.blocks.products.matrices_in_memory import MatrixInMemory
from xgpu.passes.tiles.blocks.products.operands import LEFT, RIGHT, Operand
from xgpu.passes.tiles.blocks.state import State
from xgpu.passes.tiles.vectors import bitcast, joined, part
from xgpu.records import dataclass
from xgpu.structure import dtype_of

_EACH = HALVES * NEIGHBOURS
_WORDS = 4


@dataclass(frozen=True, eq=False)
class WarpGroupProduct:
    """The sums of a product that warp groups multiply, some rows of a thread's fragments.

    Their rows are the ``count`` from ``first`` on; of each the warps of a group together have 64.
    """

    state: State
    op: ir.Operation
    layout: FragmentLayout
    first: int
    count: int

    def write(self) -> list[ir.Value]:
        """Write the product and wait for it; return the vectors of its fragments, row by row."""
        return fragments_of(self.layout, _waited(self.start(None), 0))

    def start(self, begin: Sequence[ir.Value] | None) -> list[ir.Value]:
        """Start the product; return the accumulators of each row of fragments. Adds to ``begin``, or to zeros."""
        if begin is not None:
            return self._started(rows_of(self.layout, begin), adds=True)
        zero = b.constant(0, ir.VectorType.get([_EACH * self.layout.held_across], ir.F32Type.get()))
        return self._started([zero] * self.count, adds=False)

    def go_on(self, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """Write a product that is added to others under way, once these are done; return its own, which goes on."""
        return _waited(self._started(sums, adds=True), 1)

    def _started(self, sums: Sequence[ir.Value], adds: bool) -> list[ir.Value]:
        """Start the instructions; return the accumulators of each row of fragments as these give them."""
        found = list(sums)
        # The operands of all instructions come first: none of their code stands between these.
        parts = list(self._parts())
        matrices.WarpgroupFenceOp.create()
        for place, (lefts, right) in enumerate(parts):
            for number, left in enumerate(lefts):
                accumulate = b.constant(int(adds or place > 0), b.integer_type(1))
                made = matrices.WarpgroupMmaOp.create(
                    [found[number], left, right, accumulate], [found[number].type], self._described
                )
                found[number] = made.operation.results[0]
        matrices.WarpgroupCommitOp.create()
        return found

    def _parts(self) -> Iterator[tuple[list[ir.Value], ir.Value]]:
        """Yield the operands of instructions: of all rows, and of the columns, for some contracted elements."""
        space, terms = self.state.space, self._operand(RIGHT).contracted
        for depth in range(0, terms, matrices.contracted(self._element)):
            right = self._right.address(space, self.layout.first_column, depth)
            yield [self._left_part(self.first + number, depth) for number in range(self.count)], right

    def _left_part(self, down: int, depth: int) -> ir.Value:
        """Return the part of the left operand for some rows, in memory or from its fragments."""
        if self._left is not None:
            return self._left.address(self.state.space, self.layout.band_row(down), depth)
        held = self.state.fragments[self.op.operands[LEFT]]
        across = range(depth // COLUMNS, (depth + matrices.contracted(self._element)) // COLUMNS)
        return bitcast(joined([held.vectors[Fragment(0, down, each)] for each in across]), _WORDS, b.integer_type(32))

    @property
    def holds_left(self) -> bool:
        """Whether the left operand is in registers, which its fragments are."""
        return self._left is None

    def _operand(self, number: int) -> Operand:
        return Operand(self.state, self.op, self.layout, number)

    @cached_property
    def _left(self) -> MatrixInMemory | None:
        """The left operand in memory, None if the threads hold it as they hold the result."""
        held = self.state.fragments.get(self.op.operands[LEFT])
        if held is not None and held.layout == replace(self.layout, shape=held.layout.shape, across=1):
            return None
        return MatrixInMemory.of(self._operand(LEFT), ROWS * self.layout.together)

    @cached_property
    def _right(self) -> MatrixInMemory:
        return MatrixInMemory.of(self._operand(RIGHT), COLUMNS * self.layout.held_across)

    @property
    def _element(self) -> str:
        return BY_GROUPS[dtype_of(self.op.operands[LEFT]).hlo]

    @cached_property
    def _described(self) -> dict[str, object]:
        """The attributes of an instruction, which takes no layout of fragments."""
        element, right = ir.Type.parse(self._element), self._right.layout
        left = right if self._left is None else self._left.layout
        return {"a_element": element, "b_element": element, "a_layout": left, "b_layout": right}


def rows_of(layout: FragmentLayout, vectors: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the accumulators of each row of fragments, given these row by row."""
    each = layout.held_across
    return [joined(vectors[first : first + each]) for first in range(0, len(vectors), each)]


def fragments_of(layout: FragmentLayout, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the vectors of fragments, row by row, of accumulators that nothing is added to any more."""
    return [part(row, _EACH * number, _EACH) for row in rows for number in range(layout.held_across)]


def wait_for(state: State, values: Iterable[ir.Value]) -> None:
    """Wait for the products of warp groups that have some of ``values``, and for those started before them."""
    if not state.started:
        return
    wanted, names = set(values), list(state.started)
    count = max((number + 1 for number, value in enumerate(names) if value in wanted), default=0)
    if not count:
        return
    tiles = [state.started.pop(value) for value in names[:count]]
    rows = iter(_waited([row for each in tiles for row in each.values], len(names) - count))
    for value, tile in zip(names, tiles, strict=False):
        vectors = fragments_of(tile.layout, [next(rows) for _ in tile.values])
        dtype = dtype_of(value)
        state.fragments[value] = FragmentTile.of(
            tile.layout, [converted(each, dtype_named("f32"), dtype) for each in vectors]
        )


def wait_for_all(state: State) -> None:
    """Wait for all products of warp groups that are under way and whose results something will read."""
    wait_for(state, list(state.started))


def finished(tile: PendingTile) -> FragmentTile:
    """Wait for all products of warp groups; return a tile that the last of them have added to."""
    return FragmentTile.of(tile.layout, fragments_of(tile.layout, _waited(tile.values, 0)))


def _waited(sums: Sequence[ir.Value], pending: int) -> list[ir.Value]:
    """Wait for all groups of products but the last ``pending``; return the accumulators."""
    made = matrices.WarpgroupWaitOp.create(sums, [total.type for total in sums], {"pending": pending})
    return list(made.operation.results)
