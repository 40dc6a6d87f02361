"""The loop over the steps of two chained products: one by one, or the second of a step beside the first of the next.

While both are under way tensor cores are busy, and what lies between the products of the later step is computed as soon
as its first product is there. What the second is added to comes last: the sums are read once it is complete.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xgpu import ir
from xgpu.indexing.access import shape_of
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.chains.operands import Operands, contracted, finished, finished_after
from xgpu.passes.tiles.chains.order import ChainTile, steps_of
from xgpu.passes.tiles.chains.program import ChainProgram
from xgpu.passes.tiles.chains.spreads import Position, Spread, SpreadCode, accumulators, left_operand, of_accumulators
from xgpu.passes.tiles.chains.turns import Turns
from xgpu.passes.tiles.roles import Place
from xgpu.passes.tiles.structured import Values, counted, only_if
from xgpu.structure import producer


@dataclass(frozen=True, eq=False)
class _Held:
    """What a warp group has after what lies between the products of a step.

    ``left`` is the left operand of the second product, ``sums`` what that is added to, ``rows`` what is carried of each
    row; ``keys`` and ``values`` are the slot and the phase of the next tile of each.
    """

    left: Values
    sums: ir.Value
    rows: Values
    keys: Values
    values: Values

    @property
    def flat(self) -> Values:
        """All of it."""
        return [*self.left, self.sums, *self.rows, *self.keys, *self.values]

    def like(self, flat: Values) -> "_Held":
        """Return other values of the same kinds."""
        found, first = [], 0
        for part in (self.left, [self.sums], self.rows, self.keys, self.values):
            found.append(flat[first : first + len(part)])
            first += len(part)
        left, (sums,), rows, keys, values = found
        return _Held(left, sums, rows, keys, values)


@dataclass(frozen=True, eq=False)
class ChainSteps:
    """The steps of a warp group."""

    program: ChainProgram
    place: Place
    operands: Operands
    position: Position
    turns: Turns

    def write(self, code: SpreadCode, tile: ChainTile, slot: ir.Value, phase: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Write the loop, whose results ``code`` then knows; return the ring's slot and phase after it."""
        op = self.program.steps.operation
        begin = [code[each] for each in op.operands]
        rows = [each for number, spread in enumerate(begin) if number != self._number for each in _of_rows(spread)]
        write = self._overlapping if self.program.schedule.overlap else self._one_by_one
        sums, rows, (slot, phase) = write(tile, begin[self._number], rows, [slot, phase])
        pending = list(rows)
        for number, result in enumerate(op.results):
            if number == self._number:
                code.know(result, of_accumulators(sums))
            else:
                code.know(result, Spread(True, False, {(0, 0): pending.pop(0), (1, 0): pending.pop(0)}))
        return slot, phase

    def _one_by_one(
        self, tile: ChainTile, begin: Spread, rows: Values, slot: Values
    ) -> tuple[ir.Value, Values, Values]:
        """Write steps that wait for each product; return the sums, the rows, and the ring's slot and phase."""
        keys, values = self.operands.keys, self.operands.values
        sums = accumulators(begin, self.program.columns)
        with steps_of(tile, [sums, *rows, *slot]) as steps:
            sums, *rows, number, phase = steps.carried
            keys.ring.wait_full(number, phase)
            scores = finished(self.operands.start_first(self.program, self.place, number), 0)
            keys.release(self.place, number)
            inner, rows = self._between(tile, steps.counter, scores, rows)
            left, sums = self._left(inner), self._late(inner, of_accumulators(sums))
            values.ring.wait_full(number, phase)
            sums = finished(self.operands.start_second(self.program, left, sums, number), 0)
            values.release(self.place, number)
            steps.carried = [sums, *rows, *keys.ring.next(number, phase)]
        sums, *rows, number, phase = steps.results
        return sums, rows, [number, phase]

    def _overlapping(
        self, tile: ChainTile, begin: Spread, rows: Values, slot: Values
    ) -> tuple[ir.Value, Values, Values]:
        """Write steps of which the second product runs beside the first of the next; return the same."""
        keys, values = self.operands.keys, self.operands.values
        keys.ring.wait_full(*slot)
        scores = finished(self.operands.start_first(self.program, self.place, slot[0]), 0)
        keys.release(self.place, slot[0])
        inner, rows = self._between(tile, tile.first, scores, rows)
        sums = self._late(inner, begin)
        left = self._left(inner)
        following = list(keys.ring.next(*slot))
        self._await_keys(tile, tile.first, following)
        held = _Held(left, sums, rows, following, slot)
        second = ir.arith.addi(tile.first, create_index(1))
        with counted(second, tile.end, create_index(1), held.flat) as loop:
            loop.carried = self._step(tile, loop.counter, held.like(loop.carried)).flat
        held = held.like(loop.results)
        values.ring.wait_full(*held.values)
        sums = finished(self.operands.start_second(self.program, held.left, held.sums, held.values[0]), 0)
        values.release(self.place, held.values[0])
        return sums, held.rows, held.keys

    def _step(self, tile: ChainTile, number: ir.Value, held: _Held) -> _Held:
        """Write the first product of a step, the second one of the step before, and what lies between."""
        keys, values = self.operands.keys, self.operands.values
        self.turns.take()
        scores = self.operands.start_first(self.program, self.place, held.keys[0])
        values.ring.wait_full(*held.values)
        sums = self.operands.start_second(self.program, held.left, held.sums, held.values[0])
        self.turns.hand_on()
        scores = finished(scores, 1)
        keys.release(self.place, held.keys[0])
        inner, rows = self._between(tile, number, scores, held.rows)
        # What lies between the products is not to be left until the sums are there, for which ptxas waits as early as
        # it may: in the same basic block. But that it is rounded is left: the second product under way reads its left
        # operand from the registers that the next one will be in.
        unrounded, columns = self._unrounded, self.program.schedule.tile_n
        (wide,) = finished_after([accumulators(inner[unrounded], columns)], 1)
        following = list(keys.ring.next(*held.keys))
        self._await_keys(tile, number, following)
        sums, wide = finished_after([sums, wide], 0)
        inner.know(unrounded, of_accumulators(wide))
        values.release(self.place, held.values[0])
        sums = self._late(inner, of_accumulators(sums))
        left = self._left(inner)
        return _Held(left, sums, rows, following, held.keys)

    def _await_keys(self, tile: ChainTile, number: ir.Value, following: Values) -> None:
        """Wait for the keys of the step after one, if there is one."""
        after = ir.arith.addi(number, create_index(1))
        with only_if(ir.arith.cmpi(ir.arith.CmpIPredicate.slt, after, tile.end)):
            self.operands.keys.ring.wait_full(*following)

    def _between(self, tile: ChainTile, number: ir.Value, scores: ir.Value, rows: Values) -> tuple[SpreadCode, Values]:
        """Write what lies between the products of a step; return its code, and the rows."""
        program = self.program
        known = {program.first.results[0]: of_accumulators(scores)}
        pending = list(rows)
        for each, argument in enumerate(self._arguments):
            if each != self._number:
                known[argument] = Spread(True, False, {(0, 0): pending.pop(0), (1, 0): pending.pop(0)})
        code = SpreadCode([*tile.at, number], self.position, known, program.schedule.branched)
        for op in self._operations:
            if op not in self._late_operations and not code.is_lazy(op):
                code.write(op)
        (*_, end) = program.steps.body.operations
        yielded = [value for each, value in enumerate(end.operation.operands) if each != self._number]
        return code, [scalar for value in yielded for scalar in _of_rows(code[value])]

    def _left(self, code: SpreadCode) -> Values:
        """Write the left operand of the second product."""
        second = self.program.second
        code.write(producer(second.operands[0]))
        keys = shape_of(second.operands[0])[1]
        return [left_operand(code[second.operands[0]], part) for part in range(keys // contracted(second))]

    @property
    def _unrounded(self) -> ir.Value:
        """What the left operand of the second product is rounded from."""
        return producer(self.program.second.operands[0]).operands[0]

    def _late(self, code: SpreadCode, sums: Spread) -> ir.Value:
        """Write what is made of the sums before the second product is added to them."""
        code.know(self._arguments[self._number], sums)
        for op in self._operations:
            if op in self._late_operations:
                code.write(op)
        return accumulators(code[self.program.carried], self.program.columns)

    @property
    def _arguments(self) -> list[ir.Value]:
        return [*list(self.program.steps.body.arguments)[1:]]

    @cached_property
    def _number(self) -> int:
        """The number of what is carried that the second product is added to; others are of rows."""
        op = self.program.steps.operation
        (*_, end) = self.program.steps.body.operations
        numbers = [each for each, value in enumerate(end.operation.operands) if value == self.program.added.results[0]]
        others = [len(shape_of(value)) for each, value in enumerate(op.operands) if each not in numbers]
        if len(numbers) != 1 or any(rank != 1 for rank in others):
            refuse(PASS, op, "expected steps that carry the sum of the second product, and else numbers of rows")
        return numbers[0]

    @cached_property
    def _operations(self) -> list[ir.Operation]:
        """The operations on tiles that threads hold, but for what rounds the second product's left operand."""
        program = self.program
        fed = {program.keys.operation, program.values.operation, program.first, program.second, program.added}
        fed.add(producer(program.second.operands[0]))
        return [each.operation for each in list(program.steps.body.operations)[:-1] if each.operation not in fed]

    @cached_property
    def _late_operations(self) -> set[ir.Operation]:
        """Those that need the sums, which nothing but the sums may need."""
        needing = {self._arguments[self._number], self.program.added.results[0]}
        found = set()
        for op in self._operations:
            if any(operand in needing for operand in op.operands):
                needing.update(op.results)
                found.add(op)
        (*_, end) = self.program.steps.body.operations
        others = [value for each, value in enumerate(end.operation.operands) if each != self._number]
        if any(value in needing for value in (*others, self.program.second.operands[0])):
            refuse(PASS, self.program.steps.operation, "expected nothing but the sums to be computed of the sums")
        return found


def _of_rows(spread: Spread) -> Sequence[ir.Value]:
    return [spread.at(half, 0) for half in range(2)]
