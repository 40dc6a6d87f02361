"""The emitter of loops whose states are computed element by element: a thread runs all iterations for its element.

The states stay in registers. Neighbouring threads have neighbouring elements, so that slices of stacked arrays are read
and written in one piece. A thread waits for what it reads of memory; so several iterations come together, of which the
reads depend on none of the others. Where elements of a row need sums of it, the lanes that have them exchange them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Self

from xgpu import ir
from xgpu.analysis.constants.counters import Counter
from xgpu.costs.values import instructions
from xgpu.dialects.attributes import RECURRENCE, UNROLL
from xgpu.dialects.threads import ShuffleReduceOp
from xgpu.emit import requirements
from xgpu.emit.accumulators import combiner_name, emit_combiner_function
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.builders import Values, apply_map, scalar_type
from xgpu.emit.families.loop import block_field
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import (
    KernelBuilder,
    Tensor,
    Variable,
    assign,
    entry_function,
    loop,
    loop_while,
    values_of,
)
from xgpu.emit.reduction_tiling import WARP, distances, power_of_two_below
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.emit.scalar.op import constant
from xgpu.emit.schedule import Schedule, whole_number
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.errors import InvalidInput
from xgpu.fusion.fallback import DYNAMIC_SLICE
from xgpu.fusion.grouping.families import Heroes, Results
from xgpu.fusion.loops.recurrences import Recurrence, Stacked
from xgpu.fusion.loops.steps import Start, Step
from xgpu.hlo.source_location import source_of
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.affine import AffineExpr, delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.records import dataclass

_MOST_READS = 32
"""Elements that a thread reads before it waits for the first of them."""
_FEW = 4
"""Iterations that come together where nothing is read, so that counting takes little time beside them."""
_MOST_CODE = 1024
"""Instructions of iterations that come together."""

Iterate = Callable[[ir.Value], None]
"""Emits the iteration of a number."""


class Recurrences:
    """A fusion around one loop, whose results are those of the fusion."""

    def __init__(self, fusion: Fusion):
        self.fusion = fusion
        found = Recurrence.of(fusion.heroes[0])
        if found is None:
            raise InvalidInput("expected a loop whose iterations can be counted")
        self.recurrence = found
        made = {found.loop.results[number] for number in (*found.states, *found.stacked)}
        if any(each not in made for each in fusion.results):
            raise InvalidInput("it returns what its loop does not make", source_of(found.loop))

    @property
    def space(self) -> Shape:
        """The indices of a thread's element; iterations that hand nothing on are threads of their own."""
        found = self.recurrence
        return found.shape if found.states else (found.trips, *found.shape)


@dataclass(frozen=True)
class RecurrenceSchedule(Schedule):
    """The division of a loop's states among threads: one element each; ``together`` iterations are unrolled."""

    threads: int = block_field()
    together: int = whole_number(
        "Iterations that come together, so that a thread waits for the reads of all at once.", most=64
    )

    @classmethod
    def of(cls, facts: Recurrences) -> Self:
        """A warp at least; few enough that all multiprocessors have some. Warps are whole if their lanes have rows."""
        fusion = facts.fusion
        each = math.prod(facts.space) // fusion.device.sm_count
        most = fusion.options.threads_per_block
        if facts.recurrence.heroes:
            most = max(WARP, most // WARP * WARP)
        threads = min(most, max(WARP, power_of_two_below(max(1, each))))
        return cls(threads, _together(facts.recurrence))

    def problems(self, facts: Recurrences) -> Iterator[str]:
        """Lanes that have rows together are there."""
        if facts.recurrence.heroes and self.threads % WARP:
            yield self.wrong("threads", f"a multiple of {WARP}, as lanes of a warp have rows together")
        if self.together > max(1, facts.recurrence.trips):
            yield self.wrong("together", f"no more than the loop's {facts.recurrence.trips} iterations")


def _together(recurrence: Recurrence) -> int:
    """Return how many iterations come together, so that a thread has several elements to wait for at a time."""
    operations = [view.operation for view in recurrence.loop.regions[1].blocks[0].operations]
    streams = sum(op.name == DYNAMIC_SLICE for op in operations)
    code = sum(instructions(op) for op in operations if len(op.results))
    most = min(_MOST_READS // streams if streams else _FEW, _MOST_CODE // max(1, code), recurrence.trips)
    return power_of_two_below(max(1, most))


class RecurrenceEmitter:
    """Emits a fusion around one loop."""

    NAME = "recurrence"

    def __init__(self, facts: Recurrences, schedule: RecurrenceSchedule):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.recurrence = facts.recurrence
        self.loop = self.recurrence.loop
        self.space = facts.space
        self.numbers = [ir.OpResult(value).result_number for value in self.fusion.results]
        self.threads = schedule.threads

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks along x that cover the states once, or all iterations if there are none."""
        return LaunchDimensions.covering(math.prod(self.space), self.threads)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block) -> indices of a state, or (thread, block)[iteration] -> of what is stacked.

        Without states the threads tell the iteration as well.
        """
        number, recurrence = self.numbers[output], self.recurrence
        stacked = recurrence.stacked.get(number)
        own = shape_of(self.loop.results[number]) if stacked is None else stacked.shape
        known = self._writing(own)
        time = symbol(0) if recurrence.states else known.results[0]
        place = tuple(result.substitute(self._indices(known.results)) for result in recurrence.map_to(own).results)
        if stacked is None:
            return IndexingMap(known.dims, (), place, known.constraints).simplify()
        symbols = (Interval(0, recurrence.trips - 1),) if recurrence.states else ()
        return IndexingMap(known.dims, symbols, stacked.place(time, place), known.constraints).simplify()

    def _indices[T](self, indices: Sequence[T]) -> list[T]:
        """Return those of the indices of ``space`` that are the recurrence's."""
        return list(indices[len(self.space) - len(self.recurrence.shape) :])

    def _writing(self, own: Shape) -> IndexingMap:
        """Return (thread, block) -> indices of ``space``, for the threads that store an array of shape ``own``."""
        position = self._position()
        constraints = [(position, Interval(0, math.prod(self.space) - 1))]
        if (sharing := self.recurrence.sharing(own)) > 1:
            constraints.append((position % sharing, Interval(0, 0)))
        return IndexingMap(self._ranges(), (), delinearize(position, self.space), tuple(constraints))

    def _working(self) -> IndexingMap:
        """Return (thread, block) -> indices of ``space``, for all threads: those beyond the end begin anew.

        They have rows to reduce with other lanes, who wait for them.
        """
        position = self._position() % math.prod(self.space)
        return IndexingMap(self._ranges(), (), delinearize(position, self.space)).simplify()

    def _position(self) -> AffineExpr:
        return self.launch_dimensions().thread

    def _ranges(self) -> tuple[Interval, Interval]:
        return self.launch_dimensions().ranges

    def emit(self) -> None:
        """Write the entry function, then those of the states at the start and of an iteration."""
        given = list(self.fusion.body.arguments)
        code = _Code(self.fusion.name, self.recurrence, given)
        with entry_function(self.fusion, self, [code]) as kernel:
            position = kernel.position
            if self.recurrence.heroes:
                self._emit_thread(code, kernel, apply_map(self._working(), position))
            else:
                written = self._writing(self.recurrence.shape).simplify()
                with loop(written, position, kernel.outputs) as each:
                    self._emit_thread(code, kernel, each.result_arguments)

    def _emit_thread(self, code: "_Code", kernel: KernelBuilder, indices: Values) -> None:
        """Run all iterations for the element at ``indices`` of ``space``, or that one, and store what they make."""
        recurrence, where = self.recurrence, indices
        indices = self._indices(indices)
        outputs = list(zip(self.numbers, kernel.outputs, strict=True))
        stacked = [(number, tensor) for number, tensor in outputs if number in recurrence.stacked]
        operands = [*kernel.inputs, *indices]
        states = [Variable(value) for value in code.emit_start(operands)]

        def iterate(time: ir.Value) -> None:
            made = code.emit_step(operands, time, values_of(states))
            updates = dict(zip(recurrence.stacked, made[len(states) :], strict=True))
            for number, tensor in stacked:
                each = recurrence.stacked[number]
                place = self._place_of_update(each, time, indices)
                self._store(updates[number], tensor, place, each.shape, kernel.position)
            assign(states, made[: len(states)])

        if not recurrence.states:
            iterate(where[0])
            return
        if recurrence.mask is not None:
            with loop_while(lambda: code.emit_condition(operands, values_of(states)), states):
                assign(states, code.emit_step(operands, indices[0], values_of(states)))
        run = self.schedule.together
        turns, rest = divmod(recurrence.trips, run)
        for first, times, each in ((0, turns, run), (turns * run, rest, 1)):
            if times:
                _emit_turns(first, times, each, [*states, *(tensor for _, tensor in stacked)], iterate)
        results = dict(zip(recurrence.states, values_of(states), strict=True))
        for number, tensor in outputs:
            if number in results:
                own = shape_of(self.loop.results[number])
                place = apply_map(recurrence.map_to(own), indices)
                self._store(results[number], tensor, place, own, kernel.position)

    def _store(self, value: ir.Value, tensor: Tensor, place: Values, own: Shape, position: Values) -> None:
        """Store an element of an array of shape ``own`` at ``place`` of a tensor, if that is for this thread."""
        if not self.recurrence.heroes and self.recurrence.sharing(own) == 1:
            tensor.insert(value, place)
            return
        known = self._writing(own).simplify()
        with loop(replace(known, results=()), position, [tensor]):
            tensor.insert(value, place)

    def _place_of_update(self, stacked: Stacked, time: ir.Value, indices: Values) -> Values:
        """Return where the element at ``indices`` goes that the iteration ``time`` makes."""
        map_ = self.recurrence.map_to(stacked.shape)
        moved = [dim(1 + i) for i in range(len(map_.dims))]
        place = stacked.place(dim(0), [result.substitute(moved) for result in map_.results])
        known = (Interval(0, self.recurrence.trips - 1), *map_.dims)
        return apply_map(IndexingMap(known, (), place).simplify(), [time, *indices])


class _Code:
    """The functions of a recurrence, and the calls of them."""

    def __init__(self, name: str, recurrence: Recurrence, given: Sequence[ir.Value]):
        self._name = name
        self._recurrence = recurrence
        self._step = Step(recurrence, given)
        parts = self._step.partitions()
        if parts is None:
            loop = recurrence.loop
            raise InvalidInput("elements of this loop's state depend on others than themselves", source_of(loop))
        labels = [*(f"stage{i or ''}" for i in range(len(self._step.stages))), "step"]
        if recurrence.mask is not None:
            labels.insert(0, "condition")
        self._functions = [
            SubgraphFunctions(f"{name}__{label}", part, self._step.parameters)
            for label, part in zip(labels, parts, strict=True)
        ]
        # Like the step, it owns the operations that the functions are made of.
        self._before = Start(recurrence, given) if recurrence.states else None
        self._start = None
        if self._before is not None:
            self._start = SubgraphFunctions(f"{name}__start", self._before.partition(), self._before.parameters)

    def emit_start(self, operands: Values) -> Values:
        """Return the states before the first iteration; ``operands`` are the parameters and the indices."""
        return [] if self._start is None else self._start.emit_call(operands)

    def emit_condition(self, operands: Values, states: Values) -> ir.Value:
        """Return whether an element goes on that has these states."""
        return reduce(ir.arith.andi, self._functions[0].emit_call([*operands, *states]))

    def emit_step(self, operands: Values, time: ir.Value, states: Values) -> Values:
        """Return what the iteration ``time`` makes of the states: the next ones, and the updates."""
        counters = [_emit_counter(counter, time) for counter in self._recurrence.counters.values()]
        known = [*operands, *counters, *states]
        stages, last = self._functions[-1 - len(self._step.stages) : -1], self._functions[-1]
        number = 0
        for stage, functions in zip(self._step.stages, stages, strict=True):
            values, reduced = functions.emit_call(known), []
            for each in stage:
                count = len(each.operands)
                (*parts,), values = values[: 2 * count], values[2 * count :]
                with each.op.location:
                    total = emit_combiner(each.op.regions[0].blocks[0], [*parts[count:], *parts[:count]])
                    for distance in distances(1, self._recurrence.lanes):
                        total = ShuffleReduceOp.build(combiner_name(self._name, number), distance, total)
                reduced += total
                number += 1
            known += reduced
        return last.emit_call(known)

    def emit(self) -> None:
        """Write all functions at the current insertion point."""
        for functions in (*self._functions, *([self._start] if self._start else [])):
            functions.emit()
        reductions = [each for stage in self._step.stages for each in stage]
        for number, each in enumerate(reductions):
            emit_combiner_function(combiner_name(self._name, number), each.op)


def _emit_turns(first: int, turns: int, run: int, changed: Sequence[Variable], iterate: Iterate) -> None:
    """Emit ``turns`` times ``run`` iterations from ``first`` on, those of a turn one after the other without a loop."""
    turn = Interval(0, turns - 1)
    with loop(IndexingMap((), (turn,), ()), [], changed) as around:
        around.operation.attributes[UNROLL] = ir.StringAttr.get("none")
        time = IndexingMap((turn,), (Interval(0, run - 1),), (dim(0) * run + symbol(0) + first,)).simplify()
        with loop(time, around.symbol_arguments, changed) as inside:
            iterate(inside.result_arguments[0])


def _emit_counter(counter: Counter, time: ir.Value) -> ir.Value:
    """Return what a counter is in the iteration ``time``, in its own type."""
    type_ = scalar_type(counter.dtype)
    steps = ir.arith.muli(ir.arith.index_castui(type_, time), constant(type_, counter.step))
    return ir.arith.addi(steps, constant(type_, counter.start))


RECURRENCES = Family(
    heroes=Heroes(
        "one loop",
        lambda op: op if op.name == "stablehlo.while" else None,
        ("stablehlo.while",),
        pays=lambda op: RECURRENCE in op.attributes,
        results=Results.STORED,
    ),
    why=Reason("a loop of the program whose states are computed element by element"),
    emitter=RecurrenceEmitter,
    facts=Recurrences,
    schedule=RecurrenceSchedule,
    results=requirements.any_results,
)
