"""Products of tiles by instructions of warp groups (wgmma), whose accumulators are fragments of the group's warps."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from xgpu import ir
from xgpu.block_plan.instructions import BY_GROUPS
from xgpu.dialects.block import matrices
from xgpu.passes.support import arith_builder as b
from xgpu.passes.tiles.blocks.products.fragments import (
    COLUMNS,
    HALVES,
    NEIGHBOURS,
    ROWS,
    Fragment,
    FragmentLayout,
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

    def write(self, begin: Sequence[ir.Value] | None) -> list[ir.Value]:
        """Write the product; return the vectors of its fragments, row by row. Sums ``begin`` with these, or at zero."""
        each = self.layout.held_across
        if begin is None:
            zero = b.constant(0, ir.VectorType.get([_EACH * each], ir.F32Type.get()))
            sums = [zero] * self.count
        else:
            sums = [joined(begin[number * each : (number + 1) * each]) for number in range(self.count)]
        # The operands of all instructions come first: none of their code stands between these.
        parts = list(self._parts())
        matrices.WarpgroupFenceOp.create()
        for place, (lefts, right) in enumerate(parts):
            for number, left in enumerate(lefts):
                accumulate = b.constant(int(begin is not None or place > 0), b.integer_type(1))
                made = matrices.WarpgroupMmaOp.create(
                    [sums[number], left, right, accumulate], [sums[number].type], self._described
                )
                sums[number] = made.operation.results[0]
        matrices.WarpgroupCommitOp.create()
        finished = matrices.WarpgroupWaitOp.create(sums, [total.type for total in sums], {"pending": 0})
        return [part(whole, _EACH * number, _EACH) for whole in finished.operation.results for number in range(each)]

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

    def _operand(self, number: int) -> Operand:
        return Operand(self.state, self.op, self.layout, number)

    @cached_property
    def _left(self) -> MatrixInMemory | None:
        """The left operand in memory, None if the threads hold it as they hold the result."""
        held = self.state.fragments.get(self.op.operands[LEFT])
        if held is not None and (held.layout.down, held.layout.across) == (self.layout.down, 1):
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
