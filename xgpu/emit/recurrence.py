"""The emitter of loops whose states are computed element by element: a thread runs all iterations for its element.

The states stay in registers. Neighbouring threads have neighbouring elements, so that slices of stacked arrays are read
and written in one piece. A thread waits for what it reads of memory; so several iterations come together, of which the
reads depend on none of the others.
"""

import math
from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.dialects.attributes import UNROLL
from xgpu.dialects.xgpu import LoopOp, PureCallOp, YieldOp
from xgpu.emit.base import Fusion, LaunchDimensions, entry_function, thread_and_block
from xgpu.emit.builders import Values, apply_map, insert, scalar_type
from xgpu.emit.in_place import Elements
from xgpu.emit.reduction_tiling import WARP, power_of_two_below
from xgpu.emit.scalar.op import constant
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.errors import InvalidInput
from xgpu.frontend.source_location import source_of
from xgpu.fusion.cost_model import instructions
from xgpu.fusion.left import DYNAMIC_SLICE
from xgpu.fusion.loop_counters import Counter
from xgpu.fusion.recurrences import RECURRENCE_KIND, Recurrence, Step, start_of, step_of
from xgpu.fusion.regions import maker
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.partition.subgraphs import Partition, partition

_MOST_READS = 32
"""Elements that a thread reads before it waits for the first of them."""
_FEW = 4
"""Iterations that come together where nothing is read, so that counting takes little time beside them."""
_MOST_CODE = 1024
"""Instructions of iterations that come together."""

Iterate = Callable[[ir.Value, Values], Values]
"""Emits an iteration: takes its number and what the one before hands on, and returns what it hands on."""


class RecurrenceEmitter:
    """Emits a fusion around one loop, whose results are those of the fusion."""

    NAME = RECURRENCE_KIND

    def __init__(self, fusion: Fusion):
        self.fusion = fusion
        heroes = fusion.heroes
        found = Recurrence.of(heroes[0]) if len(heroes) == 1 and heroes[0].name == "stablehlo.while" else None
        if found is None:
            raise InvalidInput(f"fusion @{fusion.name} has no loop whose iterations can be counted")
        self.recurrence = found
        self.loop = found.loop
        if any(isinstance(each.owner, ir.Block) or maker(each) != self.loop for each in fusion.results):
            raise InvalidInput(f"fusion @{fusion.name} returns what its loop does not", source_of(self.loop))
        self.numbers = [ir.OpResult(value).result_number for value in fusion.results]
        self.elements = Elements(found.shape, 1, self._threads_per_block())

    def _threads_per_block(self) -> int:
        """A warp at least; few enough that all multiprocessors have some."""
        each = math.prod(self.recurrence.shape) // self.fusion.device.sm_count
        return min(self.fusion.options.threads_per_block, max(WARP, power_of_two_below(max(1, each))))

    def launch_dimensions(self) -> LaunchDimensions:
        """As many blocks along x as cover the states once."""
        return self.elements.launch_dimensions()

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[element] -> indices of a state, or [element, iteration] -> of a stack."""
        map_, number = self.elements.map(), self.numbers[output]
        indices, shape = map_.results, self.recurrence.shape
        if (stacked := self.recurrence.stacked.get(number)) is not None:
            times = (*map_.symbols, Interval(0, self.recurrence.trips - 1))
            place = stacked.place(symbol(len(map_.symbols)), indices, shape)
            return IndexingMap(map_.dims, times, tuple(place), map_.constraints).simplify()
        return map_.compose(self._place_of_state(number)).simplify()

    def emit(self) -> None:
        """Write the entry function, then those of the states at the start and of an iteration."""
        given = list(self.fusion.body.arguments)
        step = step_of(self.recurrence, given)
        parts = step.partition()
        if parts is None:
            raise InvalidInput("elements of this loop's state depend on others than themselves", source_of(self.loop))
        start = start_of(self.recurrence, given)
        functions = self._functions("step", step, parts)
        starts = self._functions("start", start, partition(start.block)) if self.recurrence.states else None
        block = entry_function(self.fusion, self)
        inputs: Values = [*list(block.arguments)[: len(given)]]
        outputs = list(block.arguments)[len(given) :]
        with ir.InsertionPoint(block):
            around = LoopOp.build(self.elements.map(), thread_and_block(self.launch_dimensions()), outputs)
            with ir.InsertionPoint(around.body):
                indices: Values = around.result_arguments
                states = [] if starts is None else _call(starts, [*inputs, *indices])
                YieldOp.build(self._emit_loop(functions, inputs, indices, states, around.carried_arguments))
            ir.func.return_(list(around.operation.results))
        functions.emit()
        if starts is not None:
            starts.emit()

    def _functions(self, label: str, step: Step, parts: Partition) -> SubgraphFunctions:
        return SubgraphFunctions(f"{self.fusion.name}__{label}", parts, step.parameters)

    def _emit_loop(
        self, functions: SubgraphFunctions, inputs: Values, indices: Values, states: Values, outputs: Sequence[ir.Value]
    ) -> Values:
        """Run all iterations for the element at ``indices`` and return the outputs."""
        recurrence, count = self.recurrence, len(states)
        stacked = [i for i, number in enumerate(self.numbers) if number in recurrence.stacked]

        def iterate(time: ir.Value, carried: Values) -> Values:
            counters = [_emit_counter(counter, time) for counter in recurrence.counters.values()]
            made = _call(functions, [*inputs, *indices, *counters, *carried[:count]])
            updates = dict(zip(recurrence.stacked, made[count:], strict=True))
            tensors = [
                insert(updates[self.numbers[i]], tensor, self._place_of_update(self.numbers[i], time, indices))
                for i, tensor in zip(stacked, carried[count:], strict=True)
            ]
            return [*made[:count], *tensors]

        finals = [*states, *(outputs[i] for i in stacked)]
        run = self._run()
        turns, rest = divmod(recurrence.trips, run)
        for first, times, each in ((0, turns, run), (turns * run, rest, 1)):
            if times:
                finals = _emit_turns(first, times, each, finals, iterate)
        results = dict(zip(recurrence.states, finals[:count], strict=True))
        new = dict(zip(stacked, finals[count:], strict=True))
        for i, number in enumerate(self.numbers):
            if number in results:
                new[i] = insert(results[number], outputs[i], apply_map(self._place_of_state(number), indices))
        return [new[i] for i in range(len(self.numbers))]

    def _run(self) -> int:
        """Return how many iterations come together, so that a thread has several elements to wait for at a time."""
        operations = [view.operation for view in self.loop.regions[1].blocks[0].operations]
        streams = sum(op.name == DYNAMIC_SLICE for op in operations)
        code = sum(instructions(op) for op in operations if len(op.results))
        most = min(_MOST_READS // streams if streams else _FEW, _MOST_CODE // code, self.recurrence.trips)
        return power_of_two_below(max(1, most))

    def _place_of_state(self, number: int) -> IndexingMap:
        """Return the map from the recurrence's indices to those of a state."""
        return self.recurrence.state_map(number).simplify()

    def _place_of_update(self, number: int, time: ir.Value, indices: Values) -> Values:
        """Return where the element at ``indices`` goes that the iteration ``time`` makes."""
        shape = self.recurrence.shape
        moved = [dim(1 + i) for i in range(len(shape))]
        place = self.recurrence.stacked[number].place(dim(0), moved, shape)
        known = (Interval(0, self.recurrence.trips - 1), *ranges(shape))
        return apply_map(IndexingMap(known, (), tuple(place)).simplify(), [time, *indices])


def _call(functions: SubgraphFunctions, operands: Sequence[ir.Value]) -> Values:
    types = functions.result_types(functions.partition.subgraphs[0])
    return PureCallOp.build(functions.names[0], operands, types)


def _emit_turns(first: int, turns: int, run: int, carried: Values, iterate: Iterate) -> Values:
    """Emit ``turns`` times ``run`` iterations from ``first`` on, those of a turn one after the other without a loop."""
    around = LoopOp.build(IndexingMap((), (Interval(0, turns - 1),), ()), [], carried)
    around.operation.attributes[UNROLL] = ir.StringAttr.get("none")
    with ir.InsertionPoint(around.body):
        time = IndexingMap(
            (Interval(0, turns - 1),), (Interval(0, run - 1),), (dim(0) * run + symbol(0) + first,)
        ).simplify()
        inside = LoopOp.build(time, around.symbol_arguments, around.carried_arguments)
        with ir.InsertionPoint(inside.body):
            YieldOp.build(iterate(inside.result_arguments[0], inside.carried_arguments))
        YieldOp.build(list(inside.operation.results))
    return list(around.operation.results)


def _emit_counter(counter: Counter, time: ir.Value) -> ir.Value:
    """Return what a counter is in the iteration ``time``, in its own type."""
    type_ = scalar_type(counter.dtype)
    steps = ir.arith.muli(ir.arith.index_castui(type_, time), constant(type_, counter.step))
    return ir.arith.addi(steps, constant(type_, counter.start))
