"""The loop over the steps of a block: what it carries, and the copies that run ahead of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from xgpu import ir
from xgpu.block_plan.accumulation import accumulated_products
from xgpu.block_plan.pipelines import Pipeline
from xgpu.dialects import attributes
from xgpu.dialects.block import copies
from xgpu.dialects.block.tiles import StepsOp, TileOp
from xgpu.indexing.affine import constant, dim
from xgpu.indexing.interval import Interval
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.blocks.bulk_copies import FullBarriers
from xgpu.passes.tiles.blocks.computing import copy_shared, held, held_layout
from xgpu.passes.tiles.blocks.copying import TileCopy, any_async
from xgpu.passes.tiles.blocks.memory.shared import TileLayout
from xgpu.passes.tiles.blocks.products.by_groups import finished, rows_of, wait_for_all
from xgpu.passes.tiles.blocks.products.fragments import FragmentLayout, FragmentTile, PendingTile
from xgpu.passes.tiles.blocks.program import prefetch_of, stages_of
from xgpu.passes.tiles.blocks.state import State
from xgpu.passes.tiles.ring import i32
from xgpu.passes.tiles.roles import below, equal
from xgpu.passes.tiles.structured import Values, counted, only_if
from xgpu.records import dataclass

type _Carried = FragmentTile | PendingTile


@dataclass(frozen=True, eq=False)
class StepLoop:
    """The loop of some steps; ``write_operations`` writes what is in a step.

    A step begins when its copies have arrived. Where it reads a tile that is copied ahead, the copy of a later step
    starts, into the buffer of the step before.
    """

    state: State
    steps: StepsOp
    write_operations: Callable[[State, ir.Block], None]

    @cached_property
    def _stages(self) -> int:
        return stages_of(self.steps) if self._tiles_read else 1

    @cached_property
    def _pipeline(self) -> Pipeline:
        """The steps' copies, as far ahead as there are buffers."""
        return Pipeline(self.steps.count, self._stages, prefetch_of(self.steps) if self._stages > 1 else 0)

    @cached_property
    def _pending(self) -> dict[ir.Operation, int]:
        """The products that go on until the next step has started its own, with what carries their sums.

        There is a buffer that they read then, besides those that are filled and the one of the next step.
        """
        found = accumulated_products(self.steps) if self._stages - self._pipeline.prefetch > 1 else {}
        places, held = self.state.kernel.places, attributes.FRAGMENTS
        return {op: n for op, n in found.items() if places[op.results[0]] == places[self._inside[n]] == held}

    @property
    def _tiles_read(self) -> list[TileOp]:
        views = (each.operation.opview for each in self.steps.body.operations)
        return [each for each in views if isinstance(each, TileOp)]

    @cached_property
    def _ahead(self) -> list[TileOp]:
        """The tiles that are copied ahead."""
        kept = [each for each in self._tiles_read if self.state.kernel.places[each.tile] == attributes.SHARED]
        return [each for each in kept if self.state.kernel.is_ahead(each.operation)]

    @cached_property
    def _bulk(self) -> list[TileOp]:
        """Those of them that TMA copies."""
        return [each for each in self._ahead if each in self.state.kernel.bulk]

    @cached_property
    def _has_async(self) -> bool:
        return any_async([TileCopy.of(self.state, each) for each in self._ahead if each not in self._bulk])

    @property
    def _written(self) -> list[ir.Value]:
        """The tiles in shared memory that threads write in a step, or have written in the one before."""
        results = (value for each in self.steps.body.operations for value in each.operation.results)
        bulk = [each.tile for each in self._bulk]
        return [value for value in results if value in self.state.kernel.layouts and value not in bulk]

    @property
    def _inside(self) -> Sequence[ir.Value]:
        """The values that a step takes from the one before."""
        return list(self.steps.body.arguments)[1:]

    @property
    def _in_registers(self) -> list[int]:
        places = self.state.kernel.places
        return [i for i, value in enumerate(self._inside) if places[value] == attributes.FRAGMENTS]

    def write(self) -> None:
        """Write the loop, after what it begins with; the state then knows its results."""
        op, state = self.steps.operation, self.state
        wait_for_all(state)
        begin = self._write_inits()
        for step in self._pipeline.prologue() if self._ahead else ():
            if self._pipeline.exists(step):
                for tile in self._ahead:
                    self._start(replace(state, numbers=state.numbers | {self._number: constant(step)}), tile, i32(step))
            self._commit()
        held = [vector for tile in begin for vector in tile.values]
        turn = [i32(0), i32(0)] if self._bulk else [i32(0)]
        count = create_index(self.steps.count)
        with counted(create_index(0), count, create_index(1), [*held, *turn]) as loop:
            vectors, (slot, *phase) = loop.carried[: len(held)], loop.carried[len(held) :]
            inner = self._state_inside(loop.counter, begin, vectors, slot)
            inner.start_ahead = lambda tile: self._start_later(inner, tile, loop.counter, slot)
            for parity in phase:
                self._full.wait(slot, parity)
            self._write_step(inner)
            loop.carried = [*self._yielded(inner, begin), *self._next(slot, phase)]
        for number, result in zip(self._in_registers, _unpacked(begin, loop.results[: len(held)]), strict=True):
            state.fragments[op.results[number]] = finished(result) if isinstance(result, PendingTile) else result

    @property
    def _number(self) -> ir.Value:
        """The number of the step."""
        return self.steps.body.arguments[0]

    def _write_inits(self) -> list[_Carried]:
        """Write what the first step takes into shared memory where it is there, and return the rest."""
        state, begin = self.state, list[_Carried]()
        for number, (value, init) in enumerate(zip(self._inside, self.steps.inits, strict=True)):
            if state.kernel.places[value] == attributes.FRAGMENTS:
                tile = self._init(value, init)
                rows = rows_of(tile.layout, tile.values) if number in self._pending.values() else []
                begin.append(PendingTile(tile.layout, rows) if rows else tile)
            elif not _is_same(state.kernel.layouts.get(init), state.kernel.layouts[value]):
                copy_shared(state, init, state.shared[value])
                state.barriers.wrote(state.shared[value].layout)
        return begin

    def _init(self, value: ir.Value, init: ir.Value) -> FragmentTile:
        return self._as_held(self.state, init, held_layout(self.state, value, self.steps.operation))

    @staticmethod
    def _as_held(state: State, value: ir.Value, layout: FragmentLayout) -> FragmentTile:
        """Return a tile as threads are to hold it."""
        known = state.fragments.get(value)
        if known is not None and known.layout == layout:
            return known
        return held(state, layout, lambda code, at: code.lanes(value, at))

    def _state_inside(self, counter: ir.Value, begin: Sequence[_Carried], vectors: Values, slot: ir.Value) -> State:
        state = self.state
        space = state.space.extended([Interval(0, max(0, self.steps.count - 1))], [counter])
        shared = dict(state.shared)
        for tile in self._ahead:
            shared[tile.tile] = shared[tile.tile].in_slot(slot)
        inside = [self._inside[number] for number in self._in_registers]
        carried = dict(zip(inside, _unpacked(begin, vectors), strict=True))
        fragments = state.fragments | {k: tile for k, tile in carried.items() if isinstance(tile, FragmentTile)}
        under_way = {k: tile for k, tile in carried.items() if isinstance(tile, PendingTile)}
        numbers = state.numbers | {self._number: dim(len(state.space.ranges))}
        found = replace(state, space=space, pointers=dict(state.pointers), numbers=numbers, shared=shared)
        return replace(found, fragments=fragments, under_way=under_way, pending=self._pending)

    def _write_step(self, inner: State) -> None:
        """Write a step: what it waits for, its operations, and between these the copies that start."""
        if self._has_async:
            copies.AsyncWaitOp.create(attributes={"pending": self._pipeline.groups_in_flight})
        for tile in self._written:
            inner.barriers.wrote(self.state.kernel.layouts[tile])
        self.write_operations(inner, self.steps.body)
        wait_for_all(inner)
        (*_, end) = self.steps.body.operations
        if attributes.MEET in end.operation.attributes:
            inner.barriers.meet()

    def _yielded(self, inner: State, begin: Sequence[_Carried]) -> Values:
        """Return the vectors of what stays in registers. Raises `CompilerError` if the rest lies elsewhere."""
        (*_, end) = self.steps.body.operations
        kernel, tiles, vectors = self.state.kernel, iter(begin), []
        for value, yielded in zip(self._inside, end.operation.operands, strict=True):
            if kernel.places[value] == attributes.FRAGMENTS:
                layout = next(tiles).layout
                vectors += (inner.under_way.get(yielded) or self._as_held(inner, yielded, layout)).values
            elif not _is_same(kernel.layouts.get(yielded), kernel.layouts[value]):
                what = "expected what steps yield to be written in the place and layout of what they carry"
                refuse(PASS, self.steps.operation, f"{what}, {kernel.layouts[value].start}, got {yielded}")
        return vectors

    def _start_later(self, inner: State, tile: TileOp, counter: ir.Value, slot: ir.Value) -> None:
        """Start the copy for a later step, into a buffer that nothing reads now; those that start now are a group."""
        ahead, count = self._pipeline.prefetch, self.steps.count
        if count > ahead:
            back = self._stages - ahead
            wraps = ir.arith.cmpi(ir.arith.CmpIPredicate.ult, slot, i32(back))
            free = ir.arith.select(wraps, ir.arith.addi(slot, i32(ahead)), ir.arith.subi(slot, i32(back)))
            later = inner.numbers | {self._number: inner.numbers[self._number] + ahead}
            with only_if(below(counter, count - ahead)):
                self._start(replace(inner, numbers=later), tile, free)
        if tile == self._ahead[-1]:
            self._commit()

    def _start(self, state: State, tile: TileOp, slot: ir.Value) -> None:
        """Start to copy a tile: all threads, or by TMA one of them, which first says how many bytes of a step come."""
        target = self.state.shared[tile.tile].in_slot(slot)
        if tile not in self._bulk:
            TileCopy.of(state, tile).start(target)
            return
        assert state.bulk is not None
        with only_if(equal(state.bulk.thread, 0)):
            if tile == self._bulk[0]:
                self._full.expect(slot)
            state.bulk.tiles[tile].start(tile, state.space, state.numbers, target, self._full.at(slot))

    @property
    def _full(self) -> FullBarriers:
        """The mbarriers of the buffers that TMA fills."""
        assert self.state.bulk is not None
        return self.state.bulk.full[self.steps.operation]

    def _commit(self) -> None:
        if self._has_async:
            copies.AsyncCommitOp.create()

    def _next(self, slot: ir.Value, phase: Values) -> Values:
        """Return the buffer of the next step, and the parity of its phase."""
        after = ir.arith.addi(slot, i32(1))
        wraps = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, after, i32(self._stages))
        turned = [ir.arith.select(wraps, ir.arith.xori(each, i32(1)), each) for each in phase]
        return [ir.arith.select(wraps, i32(0), after), *turned]


def _is_same(layout: TileLayout | None, other: TileLayout) -> bool:
    return layout is not None and replace(layout, buffers=1) == replace(other, buffers=1)


def _unpacked(begin: Sequence[_Carried], vectors: Values) -> list[_Carried]:
    """Return the tiles of vectors, one after the other, held as those that a loop begins with."""
    found, first = list[_Carried](), 0
    for tile in begin:
        count = len(tile.values)
        found.append(tile.with_values(vectors[first : first + count]))
        first += count
    return found
