"""Results of operations that threads compute element by element, in shared memory or in registers."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from xgpu import ir
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.constraints import Constraint
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.blocks.elements import ElementCode, Lanes
from xgpu.passes.tiles.blocks.memory.shared import SharedTile
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.memory.units import Units, by_strides, widest
from xgpu.passes.tiles.blocks.products.fragments import (
    HALVES,
    NEIGHBOURS,
    Fragment,
    FragmentLayout,
    FragmentTile,
    Indices,
    joined,
)
from xgpu.passes.tiles.blocks.state import State
from xgpu.passes.tiles.structured import only_if
from xgpu.records import dataclass

_Write = Callable[[ElementCode, AddressSpace, Indices], None]


def compute_shared(state: State, op: ir.Operation) -> None:
    """Write the elements of what an operation makes into shared memory."""
    (result,) = op.results
    write_shared(state, state.shared[result], result, lambda code, at: code.computed(op, at))


def copy_shared(state: State, value: ir.Value, target: SharedTile) -> None:
    """Write the elements of a tile into another one in shared memory."""
    write_shared(state, target, value, lambda code, at: code.lanes(value, at))


def write_shared(
    state: State, target: SharedTile, tile: ir.Value, elements: Callable[[ElementCode, Indices], Lanes]
) -> None:
    """Write the elements of a tile, those of some indices as ``elements`` gives them."""

    def write(code: ElementCode, space: AddressSpace, at: Indices) -> None:
        found = elements(code, at)
        target.store(space, at, found if len(found) == space.lanes else found * space.lanes)

    layout = state.kernel.fragments(tile)
    if layout is not None:
        Held.of(state, layout).write(write)
        return
    shape, strides = target.layout.shape, target.layout.strides
    order = by_strides(shape, strides)
    is_row = bool(order) and strides[order[0]] == 1
    lanes = widest(shape[order[0]], target.layout.neighbours) if is_row else 1
    with Units(shape, order, lanes).shared_by(state.space, state.threads) as (space, at):
        write(ElementCode(state, space), space, at)


@dataclass(frozen=True, eq=False)
class Held:
    """The elements that a thread holds of a tile, half by half, with their indices; ``space`` has two lanes."""

    state: State
    layout: FragmentLayout
    space: AddressSpace
    places: tuple[tuple[Indices, Fragment, int], ...]

    @classmethod
    def of(cls, state: State, layout: FragmentLayout) -> "Held":
        """Return those of a layout."""
        space = state.space.with_lanes(NEIGHBOURS)
        halves = ((each, half) for each in layout.fragments() for half in range(HALVES))
        return cls(state, layout, space, tuple((layout.at(space, *place), *place) for place in halves))

    @classmethod
    def of_rows(cls, state: State, layout: FragmentLayout, matrix: AffineExpr, rows: range) -> "Held":
        """Return those of some rows of fragments, in a matrix of a number; among fragments it has number 0."""
        space = state.space.with_lanes(NEIGHBOURS)
        fragments = (Fragment(0, down, across) for down in rows for across in range(layout.held_across))
        halves = ((each, half) for each in fragments for half in range(HALVES))
        return cls(state, layout, space, tuple((layout.at(space, *place, matrix), *place) for place in halves))

    @cached_property
    def _by_indices(self) -> dict[Indices, tuple[Fragment, int]]:
        return _with_rows({at: (fragment, half) for at, fragment, half in reversed(self.places)})

    def code(self) -> ElementCode:
        """Return the code of the elements."""
        return ElementCode(self.state, self.space, self.layout, self._by_indices)

    def write(self, write: _Write) -> None:
        """Write what is done with each element, by one of the threads that hold it."""
        code = self.code()
        for at, fragment, half in self.places:
            bounds = self.space.open_constraints(self.layout.bounds(fragment, half))
            if any(bound.intersect(self.space.bounds(each)).is_empty for each, bound in bounds):
                continue
            if not bounds:
                write(code, self.space, at)
            elif self.layout.columns % NEIGHBOURS == 0:
                inside = self.space.holds([(self.space.at_lane(each, 0), bound) for each, bound in bounds])
                assert inside is not None
                with only_if(inside):
                    write(self.code(), self.space, at)
            else:
                self._write_lanes(at, (fragment, half), bounds, write)

    def _write_lanes(
        self, at: Indices, place: tuple[Fragment, int], bounds: Sequence[Constraint], write: _Write
    ) -> None:
        """Write the code for each of two neighbours; the second may be beyond the last column."""
        single = self.space.with_lanes(1)
        for lane in range(NEIGHBOURS):
            where = tuple(self.space.at_lane(each, lane) for each in at)
            inside = single.holds([(self.space.at_lane(each, lane), bound) for each, bound in bounds])
            code = ElementCode(self.state, single, self.layout, _with_rows({where: place}), lane)
            if inside is None:
                write(code, single, where)
                continue
            with only_if(inside):
                write(code, single, where)


def _with_rows(held: Mapping[Indices, tuple[Fragment, int]]) -> dict[Indices, tuple[Fragment, int]]:
    """Return which fragments have the elements at some indices, and which the numbers of their rows."""
    return {at[:1]: (Fragment(0, fragment.down, 0), half) for at, (fragment, half) in held.items()} | dict(held)


def compute_fragments(state: State, op: ir.Operation) -> None:
    """Write the elements of what an operation makes where threads hold it."""
    (result,) = op.results
    layout = held_layout(state, result, op)
    state.fragments[result] = held(state, layout, lambda code, at: code.computed(op, at))


def held_layout(state: State, value: ir.Value, op: ir.Operation) -> FragmentLayout:
    """Return how threads hold a tile. Raises `CompilerError` for one that follows no product."""
    layout = state.kernel.fragments(value)
    if layout is None:
        refuse(PASS, op, "expected a tile in fragments to follow a product, element by element")
    return layout


def held(state: State, layout: FragmentLayout, elements: Callable[[ElementCode, Indices], Lanes]) -> FragmentTile:
    """Return the tile whose elements ``elements`` gives, held by the threads."""
    held_elements = Held.of(state, layout)
    code = held_elements.code()
    halves: dict[Fragment, list[Lanes]] = {}
    for at, fragment, _ in held_elements.places:
        found = elements(code, at)
        single = len(found) < NEIGHBOURS or layout.columns == 1
        halves.setdefault(fragment, []).append(found[:1] * NEIGHBOURS if single else found)
    return FragmentTile(layout, {fragment: joined(parts) for fragment, parts in halves.items()})
