"""The scalars of tiles at single elements: what is not kept anywhere is computed from what is."""

from collections.abc import Callable, Mapping

from xgpu import ir
from xgpu.dialects.block.tiles import IndexTileOp, TileOp
from xgpu.dtypes import dtype_named
from xgpu.emit.scalar.constants import emit_constant, emit_iota
from xgpu.emit.scalar.convert import convert_value
from xgpu.emit.scalar.op import ScalarOp
from xgpu.emit.scalar.table import build_scalar
from xgpu.indexing.access import Access, integer
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.scf_ops import create_if
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.blocks.memory.arrays import ArrayElements
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.memory.stored import scalar_type
from xgpu.passes.tiles.blocks.products.fragments import Fragment, FragmentLayout, FragmentTile, Indices
from xgpu.passes.tiles.blocks.state import State
from xgpu.structure import defining_op, dtype_of, made, producer

Lanes = tuple[ir.Value, ...]
"""An element for each lane, or one for all of them."""
_Element = tuple[ir.Value, Indices]


class ElementCode:
    """The scalars of tiles, written at the insertion point where they are first asked for, all lanes together.

    ``held`` says which fragment has the elements at some indices, of tiles that are held as ``layout`` says; if a
    ``neighbour`` is given, only that one of a thread's two neighbours.
    """

    def __init__(
        self,
        state: State,
        space: AddressSpace,
        layout: FragmentLayout | None = None,
        held: Mapping[Indices, tuple[Fragment, int]] | None = None,
        neighbour: int | None = None,
    ):
        self._state, self._space, self._layout, self._neighbour = state, space, layout, neighbour
        self._held = held or {}
        self._known: dict[_Element, Lanes] = {}

    def lanes(self, tile: ir.Value, at: Indices) -> Lanes:
        """Return the elements of ``tile`` at some indices, which may depend on the lane."""
        indices = tuple(self._space.simple(each) for each in at)
        return made((tile, indices), self._known, self._operands, self._make)

    def computed(self, op: ir.Operation, at: Indices) -> Lanes:
        """Return the elements of what an operation makes, which is to be kept; one for each lane."""
        indices = tuple(self._space.simple(each) for each in at)
        operands = [self.lanes(*each) for each in self._reads(op, indices)]
        found = self._written(op, indices, operands)
        return found if len(found) == self._space.lanes else found * self._space.lanes

    def _operands(self, element: _Element) -> list[_Element]:
        tile, at = element
        return [] if self._state.kernel.is_kept(tile) else self._reads(producer(tile), at)

    def _reads(self, op: ir.Operation, at: Indices) -> list[_Element]:
        """Return the elements that an operation computes its own of; none if it is not known which."""
        if isinstance(op.opview, TileOp | IndexTileOp):
            return []
        kind = access_kind(op)
        if kind not in ("elementwise", "indexing"):
            return []
        return [self._read(op, access, at) for access in accesses(op)]

    def _read(self, op: ir.Operation, access: Access, at: Indices) -> _Element:
        if access.runtime:
            refuse(PASS, op, "expected indices that are known where it is compiled")
        where = tuple(self._space.simple(each.substitute(at)) for each in access.map.results)
        return op.operands[access.operand], where

    def _make(self, element: _Element, operands: list[Lanes]) -> Lanes:
        tile, at = element
        if tile in self._state.shared:
            return self._state.shared[tile].load(self._space, at)
        if self._state.kernel.is_kept(tile):
            return self._of_fragments(tile, at)
        op = producer(tile)
        with op.location:
            return self._written(op, at, operands)

    def _of_fragments(self, tile: ir.Value, at: Indices) -> Lanes:
        found = self._state.fragments[tile]
        layout = self._layout
        if layout is None or found.layout not in (layout, layout.of_rows) or at not in self._held:
            op = defining_op(tile)
            what = "expected it in shared memory, as other elements of it are read than a thread holds"
            refuse(PASS, self._state.kernel.function if op is None else op, what)
        return self.held(found, at)

    def held(self, found: FragmentTile, at: Indices) -> Lanes:
        """Return the elements at some indices of a tile that threads hold as this code's layout says."""
        both = found.scalars(*self._held[at])
        return both if self._neighbour is None or len(both) == 1 else (both[self._neighbour],)

    def _written(self, op: ir.Operation, at: Indices, operands: list[Lanes]) -> Lanes:
        view = op.opview
        if isinstance(view, TileOp):
            return self._of_array(view, at)
        if isinstance(view, IndexTileOp):
            return self._number(view, at)
        kind = access_kind(op)
        if kind == "generator":
            return self._generated(op, at)
        if kind == "elementwise" and not op.regions:
            count = max((len(each) for each in operands), default=1)
            whole = [each if len(each) == count else each * count for each in operands]
            return tuple(build_scalar(ScalarOp(op, each)) for each in zip(*whole, strict=True))
        if kind == "indexing":
            return operands[-1]
        if kind != "piecewise":
            refuse(PASS, op, "expected its result to be kept in shared memory, not computed for each element")
        return self._piecewise(op, at)

    def _of_array(self, tile: TileOp, at: Indices) -> Lanes:
        state = self._state
        return ArrayElements.of(tile, state.pointers[tile.array], state.numbers, at).load(self._space)

    def _number(self, tile: IndexTileOp, at: Indices) -> Lanes:
        dims = [self._state.numbers[value] for value in tile.at]
        return self._each_lane(
            tile.map.results[0].substitute(dims, at),
            lambda number: convert_value(
                ir.arith.index_cast(b.integer_type(64), number), dtype_named("s64"), dtype_of(tile.tile)
            ),
        )

    def _generated(self, op: ir.Operation, at: Indices) -> Lanes:
        space = self._space
        if op.name == "stablehlo.iota":
            number = integer(op, "iota_dimension")
            return self._each_lane(at[number], lambda index: emit_iota(op, [index] * (number + 1)))
        lanes = range(space.lanes if any(space.has_lanes(each) for each in at) else 1)
        if ir.DenseElementsAttr(op.attributes["value"]).is_splat:
            return (emit_constant(op, ()),)
        return tuple(emit_constant(op, [space.index(space.at_lane(each, lane)) for each in at]) for lane in lanes)

    def _each_lane(self, expression: AffineExpr, make: Callable[[ir.Value], ir.Value]) -> Lanes:
        """Return what is made of a number in each lane, or of the one that all of them have."""
        space = self._space
        lanes = range(space.lanes if space.has_lanes(expression) else 1)
        return tuple(make(space.index(space.at_lane(expression, lane))) for lane in lanes)

    def _piecewise(self, op: ir.Operation, at: Indices) -> Lanes:
        """Write a choice between reads, the first whose constraints hold: of all lanes, or of one after the other."""
        found = accesses(op)
        space = self._space
        bounds = [[(each.substitute(at), bound) for each, bound in access.map.constraints] for access in found]
        if not any(space.has_lanes(each) for part in bounds for each, _ in part):
            has_lanes = any(space.has_lanes(each) for each in at)
            return self._choice(op, at, list(found), space.lanes if has_lanes else 1)
        chosen: list[ir.Value] = []
        for lane in range(space.lanes):
            where = tuple(space.at_lane(each, lane) for each in at)
            chosen += self._choice(op, where, list(found), 1)
        return tuple(chosen)

    def _choice(self, op: ir.Operation, at: Indices, pieces: list[Access], count: int) -> Lanes:
        first, *rest = pieces
        bounds = [(each.substitute(at), bound) for each, bound in first.map.constraints]
        condition = self._space.holds(bounds) if rest else None
        if condition is None:
            return self._widened(self.lanes(*self._read(op, first, at)), count)
        branch, then, otherwise = create_if(condition, [scalar_type(dtype_of(op.results[0]))] * count)
        known = self._known
        # What is written in a branch is known in it alone.
        self._known = dict(known)
        with ir.InsertionPoint(then):
            ir.scf.yield_(list(self._widened(self.lanes(*self._read(op, first, at)), count)))
        self._known = dict(known)
        with ir.InsertionPoint(otherwise):
            ir.scf.yield_(list(self._choice(op, at, rest, count)))
        self._known = known
        return tuple(branch.results)

    @staticmethod
    def _widened(lanes: Lanes, count: int) -> Lanes:
        return lanes if len(lanes) == count else lanes * count
