"""Loops that write arrays slice by slice and read the last ones, with these slices as states and the arrays stacked up.

Whether such a loop is one kernel is then as plain as of one that was written by ``lax.scan``.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.combiners import combined
from xgpu.analysis.constants.counters import counters_of, trip_count
from xgpu.fusion.loops.split_states import SplitLoop, between
from xgpu.fusion.loops.written_slices import CountedLoop, Written, written_of
from xgpu.hlo.stablehlo_builder import broadcast, hlo, inline_block, reshape, splat, splat_like, tensor
from xgpu.indexing.access import shape_of
from xgpu.records import dataclass
from xgpu.structure import attributes_of, body_of, copy_operation, element_of, producer, terminator_of

_FEWEST_TRIPS = 2


def with_carried_slices(op: ir.Operation) -> SplitLoop | None:
    """Return a loop, written again before it, whose states are the slices that it reads of arrays that it writes.

    None if it writes no array slice by slice, or if its trip count is not known.
    """
    counters = counters_of(op)
    trips = trip_count(op, counters)
    clock = next((number for number, counter in counters.items() if counter.step == 1), None)
    if trips is None or trips < _FEWEST_TRIPS or clock is None:
        return None
    loop = CountedLoop(op, counters, trips)
    # No attribute is a complex zero, which stacks would begin with.
    arrays = [i for i, value in enumerate(op.operands) if not isinstance(element_of(value), ir.ComplexType)]
    found = [written_of(loop, number) for number in arrays if number not in counters]
    written = [each for each in found if each is not None]
    if not written:
        return None
    with op.location, ir.InsertionPoint(op):
        before = producer(splat(0, tensor([], "i32")))
        writer = _Writer(loop, written, clock)
        new = writer.write()
        results = tuple(writer.results(new))
    made = between(before, op)
    before.erase()
    return SplitLoop(new, results, made)


class _Values(dict[ir.Value, ir.Value]):
    """The values in the new loop for those of the old one; those from around it are themselves."""

    def __missing__(self, value: ir.Value) -> ir.Value:
        return value


@dataclass(frozen=True)
class _Writer:
    """Writes a loop again. ``clock`` is the number of a counter that is raised by one."""

    loop: CountedLoop
    written: Sequence[Written]
    clock: int

    def write(self) -> ir.Operation:
        """Write the loop at the insertion point: stacks in place of arrays, and the carried slices after all others."""
        op = self.loop.op
        starts = list(op.operands)
        for each in self.written:
            array = op.operands[each.number]
            zero = splat(0, tensor([], element_of(array)))
            starts[each.number] = broadcast(zero, self._stack(each))
        starts += [self._slice(each, each.starts[i]) for each in self.written for i in range(len(each.starts))]
        types = [start.type for start in starts]
        new = ir.Operation.create(op.name, types, starts, attributes_of(op), regions=2)
        condition, body = (region.blocks.append(*types) for region in new.regions)
        count = len(op.operands)
        with ir.InsertionPoint(condition):
            hlo.return_(inline_block(body_of(op, 0), list(condition.arguments)[:count]))
        with ir.InsertionPoint(body):
            hlo.return_(self._next(list(body.arguments)))
        return new

    def results(self, new: ir.Operation) -> list[ir.Value]:
        """Return the results of the old loop, made of those of the new one."""
        results: list[ir.Value] = [new.results[i] for i in range(len(self.loop.op.results))]
        for each in self.written:
            array, stack = self.loop.op.operands[each.number], results[each.number]
            if stack.type != array.type:
                starts = [splat(number, tensor([], "i32")) for number in self._offsets(each)]
                results[each.number] = hlo.dynamic_update_slice(array, stack, starts)
        return results

    def _stack(self, each: Written) -> list[int]:
        return [self.loop.trips if i == each.dimension else size for i, size in enumerate(each.sizes)]

    def _offsets(self, each: Written) -> list[int]:
        """Return where all slices together begin."""
        last = each.first + each.step * (self.loop.trips - 1)
        return [min(each.first, last) if i == each.dimension else number for i, number in enumerate(each.offsets)]

    def _slice(self, each: Written, number: int) -> ir.Value:
        """Return a slice of the array as it is before the loop."""
        starts = [number if i == each.dimension else offset for i, offset in enumerate(each.offsets)]
        limits = [start + size for start, size in zip(starts, each.sizes, strict=True)]
        return hlo.slice(self.loop.op.operands[each.number], starts, limits, [1] * len(starts))

    def _next(self, arguments: list[ir.Value]) -> list[ir.Value]:
        """Return the state after an iteration, of which ``arguments`` are the state before."""
        old = body_of(self.loop.op, 1)
        values = _Values(zip(old.arguments, arguments, strict=False))
        carried = iter(arguments[len(old.arguments) :])
        kept = {each.number: [next(carried) for _ in each.starts] for each in self.written}
        writes = {each.op: each for each in self.written}
        reads = {read: each for each in self.written for read in each.lags}
        latest: dict[int, ir.Value] = {}
        for op in [view.operation for view in old.operations]:
            if op in writes:
                each = writes[op]
                latest[each.number] = self._update(each, values)
                values[op.results[0]] = self._stacked(each, values, latest[each.number])
            elif op in reads:
                each = reads[op]
                lag = each.lags[op]
                if lag is None:
                    copy_operation(op, values).operands[0] = self.loop.op.operands[each.number]
                else:
                    values[op.results[0]] = kept[each.number][lag - 1] if lag else latest[each.number]
            elif op != terminator_of(old):
                copy_operation(op, values)
        shifted = [
            value for each in self.written for value in [latest[each.number], *kept[each.number]][: len(each.starts)]
        ]
        return [values[value] for value in terminator_of(old).operands] + shifted

    def _update(self, each: Written, values: _Values) -> ir.Value:
        """Return the slice that an iteration writes."""
        new = reshape(values[each.update], each.sizes)
        if each.function == "overwrite":
            return new
        place = self._place(each, values, each.first)
        starts = [place if i == each.dimension else splat_like(number, place) for i, number in enumerate(each.offsets)]
        old = hlo.dynamic_slice(self.loop.op.operands[each.number], starts, list(each.sizes))
        return combined(each.function, old, new)

    def _stacked(self, each: Written, values: _Values, update: ir.Value) -> ir.Value:
        """Return the stack with one more slice."""
        place = self._place(each, values, 0 if each.step == 1 else self.loop.trips - 1)
        zero = splat_like(0, place)
        stack = values[body_of(self.loop.op, 1).arguments[each.number]]
        starts = [place if i == each.dimension else zero for i in range(len(shape_of(stack)))]
        return hlo.dynamic_update_slice(stack, update, starts)

    def _place(self, each: Written, values: _Values, first: int) -> ir.Value:
        """Return the number that is ``first`` in the first iteration, and goes on as slices are written."""
        clock = values[body_of(self.loop.op, 1).arguments[self.clock]]
        start = self.loop.counters[self.clock].start
        if each.step == 1:
            return hlo.add(clock, splat_like(first - start, clock))
        return hlo.subtract(splat_like(first + start, clock), clock)
