"""An iteration of a recurrence, for one element, as a block of operations to emit."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.constants.counters import unchanging
from xgpu.analysis.heroes import PRODUCT, combines_many
from xgpu.analysis.subgraphs import Partition, partition
from xgpu.dialects.attributes import RECURRENCE
from xgpu.fusion.fallback import BARRIER, fallback_reason
from xgpu.fusion.loops.recurrences import Recurrence
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.stablehlo_builder import broadcast, reshape
from xgpu.indexing.access import shape_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import (
    backward_slice,
    behind,
    body_of,
    captured,
    copy_operation,
    is_argument,
    is_constant,
    longest_chains,
    producer,
)

_SPREADING = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")
_MOST_ARRAYS = 128
"""Arrays that a loop reads and writes at most; a launch takes some hundreds."""
Injected = dict[ir.Value, IndexingMap]
"""Values available as scalars, each with the map from the recurrence's indices to its own."""


@dataclass(frozen=True)
class RowReduction:
    """A reduction of rows: ``op`` has the region; its operands and initial values are under the recurrence's shape."""

    op: ir.Operation
    operands: tuple[ir.Value, ...]
    starts: tuple[ir.Value, ...]


class Step:
    """An iteration of a recurrence as a block.

    The block's arguments are ``parameters``, which stand for values ``given`` around the loop, then the counters and
    the states; what else is around the loop is computed in it. All ``results`` are of the recurrence's shape.
    ``stages`` are reductions of rows, each of what those before it give.
    """

    def __init__(self, recurrence: Recurrence, given: Sequence[ir.Value]):
        loop = recurrence.loop
        (body,) = loop.regions[1].blocks
        own = [body.arguments[number] for number in (*recurrence.counters, *recurrence.states)]
        self._block = _Block(recurrence, [*given, *own])
        for number in recurrence.states:
            self._block.copies[body_of(loop, 0).arguments[number]] = self._block.copies[body.arguments[number]]
        self._conditions = [self._block.make(value) for value in recurrence.conditions]
        self.results = [self._block.make(value) for value in recurrence.results]
        self.parameters = self._block.arguments[: len(given)]
        self.injected: Injected = {
            argument: recurrence.map_to(shape_of(argument)) for argument in self._block.arguments[len(given) :]
        }
        operations = (view.operation for view in body_of(recurrence.loop, 1).operations)
        numbers = longest_chains(operations, lambda op: op in recurrence.heroes)
        self.stages = [
            [self._reduction(op) for op in recurrence.heroes if numbers[op.results[0]] == number]
            for number in sorted({numbers[op.results[0]] for op in recurrence.heroes})
        ]
        self._reduced: list[Injected] = [
            {value: recurrence.map_to(shape_of(value)) for each in stage for value in each.op.results}
            for stage in self.stages
        ]

    def _reduction(self, op: ir.Operation) -> RowReduction:
        count = len(op.results)
        self._block.make(op.results[0])
        made = [self._block.make(value) for value in op.operands]
        return RowReduction(producer(self._block.copies[op.results[0]]), tuple(made[:count]), tuple(made[count:]))

    @property
    def operations(self) -> list[ir.Operation]:
        """The operations but for the reductions of rows."""
        rows = {each.op for stage in self.stages for each in stage}
        found = [view.operation for view in self._block.block.operations]
        return [op for op in found if op not in rows and op.name != "func.return"]

    def partitions(self) -> list[Partition] | None:
        """Return partitions for the operands of each stage, then for results; None if they need others' elements.

        If the recurrence has a mask, one for its conditions is the first.
        """
        roots = [[v for each in stage for v in (*each.operands, *each.starts)] for stage in self.stages]
        first = [self._conditions] if self._conditions else []
        self._block.end([value for values in (*first, *roots, self.results) for value in values])
        found = []
        injected = dict(self.injected)
        made: list[Injected] = [*({} for _ in first), *self._reduced, {}]
        for values, reduced in zip((*first, *roots, self.results), made, strict=True):
            part = partition(self._block.block, values, injected)
            if any(_is_elsewhere(part, number, position) for number, position in part.scope_of):
                return None
            found.append(part)
            injected |= reduced
        return found

    def is_of_own_elements(self) -> bool:
        """Whether each element depends on its own state only, and nothing is computed more than once for it."""
        return (parts := self.partitions()) is not None and all(len(part.subgraphs) == 1 for part in parts)


def _is_elsewhere(part: Partition, number: int, position: int) -> bool:
    """Whether a read takes an injected value at indices other than its own."""
    value = part.nodes[number].operand(position)
    return value in part.injected and not part.is_injected(value, part.scope_of[number, position])


def step_of(recurrence: Recurrence) -> Step | None:
    """Return an iteration of a loop; None if part of it falls back to XLA, or needs an iteration space of its own."""
    *operations, _ = (view.operation for view in body_of(recurrence.loop, 1).operations)
    operations += backward_slice(recurrence.conditions, lambda value: not _is_within(value, recurrence.loop))
    if any(op.name != BARRIER and (op.name not in OPERATIONS or fallback_reason(op)) for op in operations):
        return None
    read = arrays_read(recurrence)
    if len(read) + len(recurrence.states) + len(recurrence.stacked) > _MOST_ARRAYS:
        return None
    step = Step(recurrence, read)
    return None if any(combines_many(op) or op.name == PRODUCT for op in step.operations) else step


def _is_within(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether a value is computed in one of a loop's blocks."""
    return not is_argument(value) and producer(value).parent == loop


class Start:
    """The states before the first iteration, as a block whose ``parameters`` stand for values ``given``."""

    def __init__(self, recurrence: Recurrence, given: Sequence[ir.Value]):
        self._block = _Block(recurrence, given)
        self._results = [self._block.make(recurrence.loop.operands[number]) for number in recurrence.states]
        self.parameters = self._block.arguments

    def partition(self) -> Partition:
        """Return the partition that computes the states, under the recurrence's shape."""
        self._block.end(self._results)
        return partition(self._block.block)


class _Block:
    """A block that grows by copies of the producers of values; its arguments stand for given values."""

    def __init__(self, recurrence: Recurrence, arguments: Sequence[ir.Value]):
        self._recurrence = recurrence
        with recurrence.loop.context, ir.Location.unknown():
            self._module = ir.Module.create()
            with ir.InsertionPoint(self._module.body):
                function = ir.func.FuncOp("step", ir.FunctionType.get([value.type for value in arguments], []))
            self.block = function.add_entry_block()
        self.arguments: list[ir.Value] = list(self.block.arguments)
        self.copies: dict[ir.Value, ir.Value] = dict(zip(arguments, self.arguments, strict=True))

    def make(self, value: ir.Value) -> ir.Value:
        """Return ``value`` at the recurrence's indices."""
        shape = self._recurrence.shape
        with self._recurrence.loop.context, ir.Location.unknown(), ir.InsertionPoint(self.block):
            _copy(value, self.copies, self._recurrence.loop)
            copy, count = self.copies[value], math.prod(shape_of(value))
            if count == math.prod(shape):
                return reshape(copy, shape)
            return reshape(broadcast(reshape(copy, [count]), [count, math.prod(shape) // count], [0]), shape)

    def end(self, results: Sequence[ir.Value]) -> None:
        """End the block, which returns ``results``."""
        with self._recurrence.loop.context, ir.Location.unknown(), ir.InsertionPoint(self.block):
            ir.func.return_(list(results))


def _copy(root: ir.Value, copies: dict[ir.Value, ir.Value], loop: ir.Operation) -> None:
    """Copy the backward slice of ``root``, up to values that have copies, without barriers: the loop is one kernel."""
    pending = [root]
    while pending:
        value = pending[-1]
        needed = _needed(value, loop)
        if value in copies:
            pending.pop()
        elif unknown := [each for each in needed if each not in copies]:
            pending += unknown
        elif is_argument(value) or producer(value).name == BARRIER:
            copies[value] = copies[needed[0]]
        else:
            copy_operation(producer(value), copies)


def _needed(value: ir.Value, loop: ir.Operation) -> list[ir.Value]:
    """Return the operands of a value inside or around ``loop``, seen through barriers and unchanging state."""
    if is_argument(value):
        around = unchanging(value, loop)
        return [around] if around != value else []
    op = producer(value)
    if op.name == BARRIER:
        return [op.operands[ir.OpResult(value).result_number]]
    return [*op.operands, *captured(op)]


def arrays_read(recurrence: Recurrence) -> list[ir.Value]:
    """Return the values around a loop that its iterations read, except constants of one number."""
    loop = recurrence.loop
    blocks = [body_of(loop, 0), body_of(loop, 1)] if recurrence.mask else [body_of(loop, 1)]
    own = {block.arguments[number] for block in blocks for number in (*recurrence.counters, *recurrence.states)}
    inside = {
        value
        for block in blocks
        for values in (block.arguments, *(op.operation.results for op in block.operations))
        for value in values
    }
    pending = [*recurrence.results, *recurrence.conditions]
    seen, found = set(pending), dict[ir.Value, None]()
    while pending:
        value = pending.pop()
        if value in own:
            continue
        if value not in inside:
            found[value] = None
            continue
        needed = [each for each in _needed(value, loop) if each not in seen]
        seen.update(needed)
        pending += needed
    return [value for value in found if not is_number(value)]


def read_by_loop(op: ir.Operation) -> list[ir.Value] | None:
    """Return the values that ``op`` reads as a loop that is one kernel, states included; None if it is none."""
    recurrence = Recurrence.of(op) if RECURRENCE in op.attributes else None
    if recurrence is None:
        return None
    return [*arrays_read(recurrence), *(op.operands[number] for number in recurrence.states)]


def is_number(value: ir.Value) -> bool:
    """Whether ``value`` is one constant number, or that number broadcast: kernels need not read it."""
    value = behind(value, *_SPREADING)
    return is_constant(value) and math.prod(shape_of(value)) == 1
