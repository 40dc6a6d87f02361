"""The loop over the steps of two chained products, the second of a step beside the first of the next.

While both are under way tensor cores are busy, and what lies between the products of the later step is computed as soon
as its first product is there. What the second is added to comes last: the sums are read once it is complete.
"""

from functools import cached_property

from xgpu import ir
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.chains.operands import Fed, finished, finished_after
from xgpu.passes.tiles.chains.order import ChainTile
from xgpu.passes.tiles.chains.program import ChainProduct
from xgpu.passes.tiles.chains.spreads import Spread, SpreadCode, accumulators, of_accumulators
from xgpu.passes.tiles.chains.steps import ChainSteps, left_of, of_part, rows_of
from xgpu.passes.tiles.structured import Values, counted, only_if
from xgpu.records import dataclass
from xgpu.structure import element_of, is_result_of, producer, users_of

_CONVERT = "stablehlo.convert"


@dataclass(frozen=True, eq=False)
class _Held:
    """The values that a warp group has after the computation between the products of a step.

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
class OverlappingSteps(ChainSteps):
    """The steps of a warp group that overlap."""

    def _loop(
        self, tile: ChainTile, begin: Values, slot: ir.Value, phase: ir.Value
    ) -> tuple[Values, ir.Value, ir.Value]:
        """Write steps of which the second product runs beside the first of the next; return what the last yields."""
        keys, values = self._keys, self._values
        sums = begin[self._position_of_sums]
        rows = [each for number, each in enumerate(begin) if number != self._position_of_sums]
        start = [slot, phase]
        keys.ring.wait_full(*start)
        scores = finished(self.operands.start(self._first, self.place, slot), 0)
        keys.release(self.place, slot)
        inner, rows = self._between(tile, tile.first, scores, rows)
        sums = self._late(inner, of_accumulators(sums))
        left = left_of(inner, self._second)
        following = list(keys.ring.next(*start))
        self._await_keys(tile, tile.first, following)
        held = _Held(left, sums, rows, following, start)
        second = ir.arith.addi(tile.first, create_index(1))
        with counted(second, tile.end, create_index(1), held.flat) as loop:
            loop.carried = self._step(tile, loop.counter, held.like(loop.carried)).flat
        held = held.like(loop.results)
        values.ring.wait_full(*held.values)
        sums = finished(self.operands.start_sum(self._second, held.left, held.sums, held.values[0]), 0)
        values.release(self.place, held.values[0])
        carried = list(held.rows)
        carried.insert(self._position_of_sums, sums)
        return carried, held.keys[0], held.keys[1]

    def _step(self, tile: ChainTile, number: ir.Value, held: _Held) -> _Held:
        """Write the first product of a step, the second one of the step before, and what lies between."""
        keys, values = self._keys, self._values
        self.turns.take()
        scores = self.operands.start(self._first, self.place, held.keys[0])
        values.ring.wait_full(*held.values)
        sums = self.operands.start_sum(self._second, held.left, held.sums, held.values[0])
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
        left = left_of(inner, self._second)
        return _Held(left, sums, rows, following, held.keys)

    def _await_keys(self, tile: ChainTile, number: ir.Value, following: Values) -> None:
        """Wait for the keys of the step after one, if there is one."""
        after = ir.arith.addi(number, create_index(1))
        with only_if(ir.arith.cmpi(ir.arith.CmpIPredicate.slt, after, tile.end)):
            self._keys.ring.wait_full(*following)

    def _between(self, tile: ChainTile, number: ir.Value, scores: ir.Value, rows: Values) -> tuple[SpreadCode, Values]:
        """Write what lies between the products of a step; return its code, and the rows."""
        program = self.program
        known = {self._first.result: of_accumulators(scores)}
        pending = list(rows)
        for each in self._arguments:
            if each != self._sums_argument:
                known[each] = of_part([pending.pop(0), pending.pop(0)])
        code = SpreadCode([*tile.at, number], self.position, known, program.form)
        for op in self._operations:
            if op not in self._late_operations and not code.is_lazy(op):
                code.write(op)
        (*_, end) = program.steps.body.operations
        yielded = [value for value in end.operation.operands if value != self._added]
        return code, [scalar for value in yielded for scalar in rows_of(code[value])]

    @property
    def _unrounded(self) -> ir.Value:
        """The value from which the left operand of the second product is rounded."""
        return self._second.computed if self._is_wide else producer(self._second.computed).operands[0]

    @property
    def _is_wide(self) -> bool:
        """Whether the left operand is of f32, which is rounded as it becomes one."""
        return isinstance(element_of(self._second.computed), ir.F32Type)

    def _late(self, code: SpreadCode, sums: Spread) -> ir.Value:
        """Write what is made of the sums before the second product is added to them."""
        code.know(self._sums_argument, sums)
        for op in self._operations:
            if op in self._late_operations and not code.is_lazy(op):
                code.write(op)
        return accumulators(code[self._second.carried], self._second.columns)

    @cached_property
    def _first(self) -> ChainProduct:
        (first, *others), sums = self.program.started, self.program.summed
        op = self.program.steps.operation
        if others or len(sums) != 1 or first.is_turned or sums[0].is_turned or len(self.program.fed) != 2:
            refuse(PASS, op, "expected steps of two products, each with a tile of its own, if they overlap")
        if len(users_of(sums[0].computed)) != 1 and not self._is_wide:
            refuse(PASS, op, "expected a left operand that nothing else reads, if products overlap")
        if not is_result_of(sums[0].computed, _CONVERT) and not self._is_wide:
            refuse(PASS, op, "expected a left operand that is rounded from what is computed, if products overlap")
        if [rank for rank in self._ranks if rank != 1] != [2]:
            refuse(PASS, op, "expected steps that carry the sum of one product, and else numbers of rows")
        return first

    @property
    def _second(self) -> ChainProduct:
        return self.program.summed[0]

    @property
    def _keys(self) -> Fed:
        return self.operands.fed[self._first.right]

    @property
    def _values(self) -> Fed:
        return self.operands.fed[self._second.right]

    @property
    def _added(self) -> ir.Value:
        assert self._second.added is not None
        return self._second.added.results[0]

    @cached_property
    def _sums_argument(self) -> ir.Value:
        return self._arguments[self._ranks.index(2)]

    @cached_property
    def _position_of_sums(self) -> int:
        """The position of the sums among the values that loops carry."""
        return 2 * self._ranks.index(2)

    @cached_property
    def _operations(self) -> list[ir.Operation]:
        """The operations on tiles that threads hold, but for what rounds the second product's left operand."""
        fed = {each.operation for each in self.program.fed}
        fed |= {self._first.op, self._second.op, producer(self._added)}
        if not self._is_wide:
            fed.add(producer(self._second.computed))
        return [each.operation for each in list(self.program.steps.body.operations)[:-1] if each.operation not in fed]

    @cached_property
    def _late_operations(self) -> set[ir.Operation]:
        """Those that need the sums, which nothing but the sums may need."""
        needing = {self._sums_argument, self._added}
        found = set()
        for op in self._operations:
            if any(operand in needing for operand in op.operands):
                needing.update(op.results)
                found.add(op)
        (*_, end) = self.program.steps.body.operations
        others = [value for value in end.operation.operands if value != self._added]
        if any(value in needing for value in (*others, self._second.computed)):
            refuse(PASS, self.program.steps.operation, "expected nothing but the sums to be computed from the sums")
        return found
