"""Products of tiles where their results are to be: in registers, or from there in shared memory."""

from collections.abc import Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.block_plan.kernel import instruction_of
from xgpu.dialects import attributes
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.interval import Interval
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.blocks.computing import Held
from xgpu.passes.tiles.blocks.elements import ElementCode
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.products.by_groups import WarpGroupProduct, wait_for
from xgpu.passes.tiles.blocks.products.fragments import (
    HALVES,
    NEIGHBOURS,
    Fragment,
    FragmentLayout,
    FragmentTile,
    Indices,
    PendingTile,
)
from xgpu.passes.tiles.blocks.products.sums import SummedProduct
from xgpu.passes.tiles.blocks.program import product_layout
from xgpu.passes.tiles.blocks.state import State
from xgpu.passes.tiles.structured import counted
from xgpu.structure import dtype_of

_MOST_SUMS = 128
"""Sums of a product that goes to shared memory which a thread has at once."""


def multiply_to_fragments(state: State, op: ir.Operation, begin: FragmentTile | None, into: ir.Value) -> None:
    """Write a product whose result, ``into``, stays in registers; added to ``begin`` if that is given.

    One of warp groups is only started, unless its left operand is in registers, which are to stay until it is done.
    """
    layout = product_layout(op, state.kernel.warps)
    if instruction_of(op) == attributes.BY_WARP_GROUPS:
        product = WarpGroupProduct(state, op, layout, 0, layout.held_down)
        state.started[into] = PendingTile(layout, product.start(None if begin is None else begin.values))
        if product.holds_left:
            wait_for(state, [into])
        return
    vectors: list[ir.Value] = []
    for matrix in range(layout.matrices):
        first = None
        if begin is not None:
            first = [begin.vectors[each] for each in layout.fragments() if each.matrix == matrix]
        vectors += SummedProduct(state, op, layout, constant(matrix), 0, layout.held_down).write(first)
    state.fragments[into] = FragmentTile.of(layout, vectors)


def go_on(state: State, op: ir.Operation, begin: PendingTile) -> PendingTile:
    """Write a product of warp groups that is not waited for, but for the one before it, to which it is added."""
    layout = product_layout(op, state.kernel.warps)
    product = WarpGroupProduct(state, op, layout, 0, layout.held_down)
    return PendingTile(layout, product.go_on(begin.values))


def can_begin(state: State, op: ir.Operation) -> bool:
    """Whether sums of a product can begin with other elements: they are of the result's type."""
    layout = product_layout(op, state.kernel.warps)
    product = SummedProduct(state, op, layout, constant(0), 0, layout.held_down)
    return product.sum_type == dtype_of(op.results[0])


def multiply_to_shared(state: State, op: ir.Operation) -> None:
    """Write a product whose result goes to shared memory, some rows after the others."""
    layout = product_layout(op, state.kernel.warps)
    if layout.matrices == 1:
        _multiply_matrix(state, op, layout, constant(0))
        return
    numbers = Interval(0, layout.matrices - 1)
    with counted(create_index(0), create_index(layout.matrices), create_index(1), []) as loop:
        space = state.space.extended([numbers], [loop.counter])
        _multiply_matrix(replace(state, space=space), op, layout, dim(len(state.space.ranges)))


def _multiply_matrix(state: State, op: ir.Operation, layout: FragmentLayout, matrix: AffineExpr) -> None:
    each = max(1, _MOST_SUMS // (HALVES * NEIGHBOURS * layout.held_across))
    for first in range(0, layout.held_down, each):
        count = min(each, layout.held_down - first)
        sums = SummedProduct(state, op, layout, matrix, first, count).write(None)
        rows = range(first, first + count)
        _store(state, op, Held.of_rows(state, layout, matrix, rows), sums)


def _store(state: State, op: ir.Operation, held: Held, sums: Sequence[ir.Value]) -> None:
    (result,) = op.results
    fragments: list[Fragment] = list(dict.fromkeys(fragment for _, fragment, _ in held.places))
    tile = FragmentTile(held.layout, dict(zip(fragments, sums, strict=True)))

    def write(code: ElementCode, space: AddressSpace, at: Indices) -> None:
        state.shared[result].store(space, at, code.held(tile, at))

    held.write(write)
