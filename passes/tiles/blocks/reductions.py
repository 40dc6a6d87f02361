"""Reductions of tiles: lanes of a warp share the elements of a result, and exchange what they have of it."""

import math
from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.dialects.threads import ShuffleOp
from xgpu.dialects.xgpu import LoopOp, YieldOp
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.indexing.access import Access, shape_of
from xgpu.indexing.affine import AffineExpr, delinearize, dim, symbol
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.blocks.computing import Held, held_layout
from xgpu.passes.tiles.blocks.elements import ElementCode
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.memory.stored import MOST_BYTES, element_bytes
from xgpu.passes.tiles.blocks.memory.units import widest
from xgpu.passes.tiles.blocks.products.fragments import (
    HALVES,
    LANE,
    NEIGHBOURS,
    ROW_LANES,
    THREAD,
    FragmentTile,
    Indices,
    joined,
)
from xgpu.passes.tiles.blocks.state import State
from xgpu.passes.tiles.structured import only_if
from xgpu.records import dataclass
from xgpu.structure import body_of, dtype_of
from xgpu.target_machine import WARP_SIZE

type _Combine = Callable[[ir.Value, ir.Value], ir.Value]


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduction of one operand into a tile in shared memory.

    ``sharing`` lanes, a power of two, share each element of the result. Each takes ``lanes`` neighbours at a time of
    those along the reduced dimensions, in turn with the others.
    """

    state: State
    op: ir.Operation
    access: Access
    sharing: int
    lanes: int

    @classmethod
    def of(cls, state: State, op: ir.Operation) -> "Reduction":
        """Return how threads share a reduction. Raises `CompilerError` for one of several operands."""
        if len(op.results) != 1:
            refuse(PASS, op, f"expected a reduction of one operand, got {len(op.results)}")
        access = accesses(op)[0]
        sizes = [each.size for each in access.map.symbols]
        most = max(1, MOST_BYTES // element_bytes(dtype_of(op.operands[0])))
        lanes = widest(sizes[-1], most) if sizes else 1
        turns, results = math.prod(sizes) // lanes, math.prod(shape_of(op.results[0]))
        most = max(1, min(WARP_SIZE, turns, state.threads // results))
        return cls(state, op, access, 1 << (most.bit_length() - 1), lanes)

    def write(self) -> None:
        """Write the reduction at the insertion point."""
        state, (result,) = self.state, self.op.results
        shape = shape_of(result)
        groups, count = state.threads // self.sharing, math.prod(shape)
        passes = Interval(0, -(-count // groups) - 1)
        # All lanes of a warp exchange what they have, so those of no element repeat another one's.
        loop = LoopOp.build(IndexingMap(state.space.ranges[:1], (passes,), ()), [state.space.values[0]], [])
        with ir.InsertionPoint(loop.body):
            space = state.space.extended([passes], loop.symbol_arguments)
            number = THREAD // self.sharing + dim(len(state.space.ranges)) * groups
            at = delinearize(number % count, shape)
            total = over_lanes(space, self._own(space, at), self.sharing, self._combined)
            (start,) = ElementCode(state, space).lanes(self.op.operands[1], ())
            found = self._combined(start, total)
            bounds = [(LANE % self.sharing, Interval(0, 0)), (number, Interval(0, count - 1))]
            inside = space.holds(bounds)
            if inside is None:
                state.shared[result].store(space, at, [found])
            else:
                with only_if(inside):
                    state.shared[result].store(space, at, [found])
            YieldOp.build([])

    def _own(self, space: AddressSpace, at: Indices) -> ir.Value:
        """Return what a lane's own elements give: one value after the other, those of a turn two by two."""
        turns = math.prod(each.size for each in self.access.map.symbols) // self.lanes
        first = self._turn(space.with_lanes(self.lanes), at, LANE % self.sharing)
        later = -(-turns // self.sharing) - 1
        if not later:
            return first
        own = LANE % self.sharing + (symbol(0) + 1) * self.sharing
        bounds = () if turns % self.sharing == 0 else ((own, Interval(0, turns - 1)),)
        map_ = IndexingMap(space.ranges[:1], (Interval(0, later - 1),), (), bounds)
        loop = LoopOp.build(map_, [space.values[0]], [first])
        with ir.InsertionPoint(loop.body):
            inner = space.extended(map_.symbols, loop.symbol_arguments).with_lanes(self.lanes)
            turn = LANE % self.sharing + (dim(len(space.ranges)) + 1) * self.sharing
            YieldOp.build([self._combined(loop.carried_arguments[0], self._turn(inner, at, turn))])
        return loop.operation.results[0]

    def _turn(self, space: AddressSpace, at: Indices, turn: AffineExpr) -> ir.Value:
        """Return the combination of the neighbours of a turn."""
        position = turn * self.lanes + (symbol(0) if self.lanes > 1 else 0)
        reduced = delinearize(position, [each.size for each in self.access.map.symbols])
        where = tuple(each.substitute(at, reduced) for each in self.access.map.results)
        found = list(ElementCode(self.state, space).lanes(self.op.operands[0], where))
        return combined(found if len(found) == self.lanes else found * self.lanes, self._combined)

    def _combined(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return emit_combiner(body_of(self.op), [left, right])[0]


def reduce_rows(state: State, op: ir.Operation) -> FragmentTile:
    """Write the reduction of rows that warps hold whole: each thread has what its lanes' elements give together."""
    (result,) = op.results
    layout = held_layout(state, op.operands[0], op)
    held, rows = Held.of(state, layout), held_layout(state, result, op)
    code = held.code()
    own: dict[tuple[int, int], list[ir.Value]] = {}
    for at, fragment, half in held.places:
        found = code.lanes(op.operands[0], at)
        own.setdefault((fragment.down, half), []).extend(found if len(found) == NEIGHBOURS else found * NEIGHBOURS)

    def combine(left: ir.Value, right: ir.Value) -> ir.Value:
        return emit_combiner(body_of(op), [left, right])[0]

    (start,) = code.lanes(op.operands[1], ())
    totals = {
        place: combine(start, over_lanes(state.space, combined(parts, combine), ROW_LANES, combine))
        for place, parts in own.items()
    }
    vectors = {
        each: joined([[totals[each.down, half]] * NEIGHBOURS for half in range(HALVES)]) for each in rows.fragments()
    }
    return FragmentTile(rows, vectors)


def combined(parts: Sequence[ir.Value], combine: _Combine) -> ir.Value:
    """Write the combination of values, two by two."""
    left = list(parts)
    while len(left) > 1:
        pairs = [combine(*left[i : i + 2]) for i in range(0, len(left) - 1, 2)]
        left = pairs + left[len(left) & ~1 :]
    return left[0]


def over_lanes(space: AddressSpace, value: ir.Value, sharing: int, combine: _Combine) -> ir.Value:
    """Write the combination of what ``sharing`` lanes have that follow each other, a power of two, in all of them."""
    distance = sharing // 2
    while distance:
        # The bits of the lane's number above those of a partner's stay.
        lane = LANE - LANE % (2 * distance) + (LANE + distance) % (2 * distance)
        (other,) = ShuffleOp.build(space.index(lane), [value])
        value = combine(value, other)
        distance //= 2
    return value
