"""The loop over the steps of chained products, one by one: each product is waited for where it is needed.

Products of tiles start where the program has them, so that the next one is under way while what is made of the first is
computed. Sums are left to the end of the step.
"""

from dataclasses import field
from functools import cached_property

from xgpu import ir
from xgpu.dialects.block.tiles import InsertTileOp, ReadTile
from xgpu.indexing.access import shape_of
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.chains.operands import (
    ChainOperands,
    contracted,
    finished_after,
    left_operand,
    wide_left_operand,
)
from xgpu.passes.tiles.chains.order import ChainTile, steps_of
from xgpu.passes.tiles.chains.program import ChainProduct, ChainProgram
from xgpu.passes.tiles.chains.spreads import Position, Spread, SpreadCode, accumulators, of_accumulators
from xgpu.passes.tiles.chains.storing import Storing
from xgpu.passes.tiles.chains.turns import Turns
from xgpu.passes.tiles.roles import ThreadNumbers
from xgpu.passes.tiles.structured import Values
from xgpu.records import dataclass
from xgpu.structure import dtype_of, producer

_HALVES = 2
_WIDE_BITS = 32


@dataclass(frozen=True, eq=False)
class ChainSteps:
    """The steps of a warp group. What they carry are sums of products, vectors, and of others two rows."""

    program: ChainProgram
    place: ThreadNumbers
    operands: ChainOperands
    position: Position
    turns: Turns
    storing: Storing

    def write(self, code: SpreadCode, tile: ChainTile, slot: ir.Value, phase: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Write the loop, whose results ``code`` then knows; return the rings' slot and phase after it."""
        op = self.program.steps.operation
        inits = [op.operands[number] for number in self.program.carried]
        begin = [part for value in inits for part in self._packed(value, code[value])]
        carried, slot, phase = self._loop(tile, begin, slot, phase)
        for number, spread in zip(self.program.carried, self._unpacked(carried), strict=True):
            added = self.program.added_rows.get(number)
            code.know(op.results[number], spread if added is None else code.over_lanes(added, spread))
        return slot, phase

    def _loop(
        self, tile: ChainTile, begin: Values, slot: ir.Value, phase: ir.Value
    ) -> tuple[Values, ir.Value, ir.Value]:
        """Write the steps; return what the last one yields, and the rings' slot and phase after it."""
        ring = next(iter(self.operands.fed.values())).ring
        with steps_of(tile, [*begin, slot, phase]) as steps:
            *carried, number, turn = steps.carried
            code = SpreadCode([*tile.at, steps.counter], self.position, {}, self.program.form)
            step = _Step(self, code, [*tile.at, steps.counter], [number, turn])
            for argument, part in zip(self._arguments, self._parts(carried), strict=True):
                step.take(argument, part)
            yielded = [value for part in step.write() for value in part]
            steps.carried = [*yielded, *ring.next(number, turn)]
        *carried, slot, phase = steps.results
        return carried, slot, phase

    @property
    def _arguments(self) -> list[ir.Value]:
        arguments = list(self.program.steps.body.arguments)[1:]
        return [arguments[number] for number in self.program.carried]

    @cached_property
    def _ranks(self) -> list[int]:
        """The ranks of the carried values: 2 for sums of products, 1 for values of rows."""
        op = self.program.steps.operation
        (*_, end) = self.program.steps.body.operations
        sums = [each.added.results[0] for each in self.program.summed if each.added is not None]
        yielded = [end.operation.operands[number] for number in self.program.carried]
        yielded = [value for value in yielded if len(shape_of(value)) != 1]
        if len(yielded) != len(sums) or set(yielded) != set(sums):
            refuse(PASS, op, "expected steps that carry the sum of each product, and else numbers of rows")
        return [len(shape_of(op.operands[number])) for number in self.program.carried]

    @staticmethod
    def _packed(tile: ir.Value, spread: Spread) -> Values:
        """Return the values by which loops carry a tile."""
        _, *columns = shape_of(tile)
        return [accumulators(spread, *columns)] if columns else rows_of(spread)

    def _parts(self, carried: Values) -> list[Values]:
        """Return those of each tile."""
        found, first = [], 0
        for rank in self._ranks:
            count = 1 if rank != 1 else _HALVES
            found.append(carried[first : first + count])
            first += count
        return found

    def _unpacked(self, carried: Values) -> list[Spread]:
        return [of_part(part) for part in self._parts(carried)]


def rows_of(spread: Spread) -> Values:
    """Return a thread's elements of a tile of rows."""
    return [spread.at(half, 0) for half in range(_HALVES)]


def of_part(part: Values) -> Spread:
    """Return the tile that values carry."""
    return of_accumulators(part[0]) if len(part) == 1 else Spread(True, False, {(0, 0): part[0], (1, 0): part[1]})


@dataclass(eq=False)
class _UnderWay:
    """A product that was started: the accumulators as it gave them, and then as they are once it was waited for."""

    product: ChainProduct
    started: ir.Value
    sums: ir.Value | None = None


@dataclass(eq=False)
class _Step:
    """A step that is being written, operation by operation.

    ``at`` are the numbers of block and step, ``slot`` the number and the phase of the rings'.
    """

    steps: ChainSteps
    code: SpreadCode
    at: Values
    slot: Values
    taken: dict[ir.Value, Values] = field(default_factory=dict)
    under_way: list[_UnderWay] = field(default_factory=list)
    lefts: dict[ir.Operation, Values] = field(default_factory=dict)
    waited: set[ReadTile] = field(default_factory=set)
    released: set[ReadTile] = field(default_factory=set)

    @property
    def program(self) -> ChainProgram:
        """The kernel."""
        return self.steps.program

    @property
    def operands(self) -> ChainOperands:
        """The operands of products."""
        return self.steps.operands

    def take(self, argument: ir.Value, part: Values) -> None:
        """Take the values that the step before has yielded for an argument."""
        self.taken[argument] = part
        self.code.know_when_needed(argument, lambda: of_part(part))

    def write(self) -> list[Values]:
        """Write all operations; return the values that are yielded of each tile."""
        products = {each.op: each for each in self.program.products}
        added = {each.added: each for each in self.program.summed}
        fed = {each.operation for each in self.program.fed} | {
            producer(each.op.operands[1]) for each in self.program.products
        }
        *operations, end = (view.operation for view in self.program.steps.body.operations)
        for op in operations:
            if op in fed:
                continue
            if op in products and products[op].left is not None:
                self._start(products[op])
            elif op in products:
                self.lefts[op] = left_of(self.code, products[op])
            elif op in added:
                self._start_sum(added[op])
            elif op in self.program.step_stores:
                self._store(self.program.step_stores[op])
            elif not self.code.is_lazy(op):
                self.code.write(op)
        sums = {each.added.results[0]: each for each in self.program.summed if each.added is not None}
        carried = [end.operands[number] for number in self.program.carried]
        rows = {value: rows_of(self.code[value]) for value in carried if value not in sums}
        self._finish(len(self.under_way))
        finished = {each.product.op: each.sums for each in self.under_way}
        yielded = []
        for value in carried:
            made = finished[sums[value].op] if value in sums else None
            yielded.append(rows[value] if made is None else [made])
        return yielded

    def _start(self, product: ChainProduct) -> None:
        self._await(product.right)
        first, *_ = started = self.program.started
        if product == first:
            self.steps.turns.take()
        sums = self.operands.start(product, self.steps.place, self.slot[0])
        if product == started[-1]:
            self.steps.turns.hand_on()
        self._note(product, sums, product.result)

    def _store(self, store: InsertTileOp) -> None:
        output = self.program.output_of(store)
        self.steps.storing.elements(store, output, self.at, self.steps.position, self.code[store.tile])

    def _start_sum(self, product: ChainProduct) -> None:
        taken = self.taken.get(product.carried)
        sums = taken[0] if taken is not None else accumulators(self.code[product.carried], product.columns)
        self._await(product.right)
        sums = self.operands.start_sum(product, self.lefts[product.op], sums, self.slot[0])
        assert product.added is not None
        self._note(product, sums, product.added.results[0])

    def _note(self, product: ChainProduct, sums: ir.Value, result: ir.Value) -> None:
        number = len(self.under_way)
        self.under_way.append(_UnderWay(product, sums))
        self.code.know_when_needed(result, lambda: self._finished(number))

    def _await(self, tile: ReadTile) -> None:
        if tile not in self.waited:
            self.operands.fed[tile].ring.wait_full(*self.slot)
            self.waited.add(tile)

    def _finished(self, number: int) -> Spread:
        self._finish(number + 1)
        sums = self.under_way[number].sums
        assert sums is not None
        return of_accumulators(sums)

    def _finish(self, count: int) -> None:
        """Wait for so many of the products that were started, and let go of tiles that no other needs."""
        finishing = [each for each in self.under_way[:count] if each.sums is None]
        if finishing:
            made = finished_after([each.started for each in finishing], len(self.under_way) - count)
            for each, sums in zip(finishing, made, strict=True):
                each.sums = sums
        done = {each.product.op for each in self.under_way if each.sums is not None}
        for tile in self.program.fed:
            users = {each.op for each in self.program.products if each.right == tile}
            if tile not in self.released and users <= done:
                self.operands.fed[tile].release(self.steps.place, self.slot[0])
                self.released.add(tile)


def left_of(code: SpreadCode, product: ChainProduct) -> Values:
    """Write the left operand of a product of what is computed."""
    keys, spread = shape_of(product.computed)[1], code[product.computed]
    parts = range(keys // contracted(product.op))
    if dtype_of(product.computed).bits == _WIDE_BITS:
        return [wide_left_operand(spread, part, code.lane) for part in parts]
    return [left_operand(spread, part) for part in parts]
