"""Loops that are one kernel: each element of the next state depends on the same element of the present one.

``lax.scan`` and ``fori_loop`` are ``stablehlo.while`` operations whose state is of five kinds: counters, arrays that do
not change, stacked inputs among them, of which an iteration reads a slice; stacked results, of which it writes one;
and what the loop is about, here called its states. If how often it runs is known, a thread can go through all
iterations with its elements of the states in registers: nothing but stacked arrays is read and written.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from xgpu import ir
from xgpu.device import Device
from xgpu.frontend.stablehlo_builder import reshape, splat
from xgpu.fusion.cost_model import BYTES_PER_INSTRUCTION, byte_size, elements, instructions, launch_bytes
from xgpu.fusion.heroes import hero_kind, is_packed
from xgpu.fusion.in_place import UPDATE_SLICE
from xgpu.fusion.left import BARRIER, RECURRENCE, reason_to_leave
from xgpu.fusion.loop_counters import Counter, Numbers, counters_of, numbers_of, trip_count, unchanging
from xgpu.fusion.regions import captured, copy_operation, is_constant, maker, planned_blocks
from xgpu.indexing.access import Shape, dims, ranges, scalar_map, shape_of
from xgpu.indexing.affine import AffineExpr, delinearize, linearize
from xgpu.indexing.hlo_maps import handled_ops
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.options import Options
from xgpu.partition.subgraphs import Partition, partition

RECURRENCE_KIND = "recurrence"
"""The emitter of recurrences, and the kind of their groups."""
_MOST_TRIPS = (1 << 31) - 64
"""Iterations that an index of 32 bits counts, whatever is added to round them up."""
_MOST_ARRAYS = 128
"""Arrays that a loop reads and writes at most; a launch takes some hundreds."""
_SPREAD = 8
"""How many times fewer elements than the states a value has that threads compute for themselves all the same."""


@dataclass(frozen=True)
class Stacked:
    """A result of which each iteration writes one slice, and all iterations every slice.

    ``dimension`` is the one that is sliced; slice ``first`` is written first, then ``step`` further on, 1 or -1.
    ``update`` is what is written.
    """

    dimension: int
    first: int
    step: int
    update: ir.Value

    def place(self, time: AffineExpr, indices: Sequence[AffineExpr], shape: Shape) -> list[AffineExpr]:
        """Return where the element of ``shape`` at ``indices`` is stored by the iteration ``time``."""
        sizes = list(shape_of(self.update))
        del sizes[self.dimension]
        place = list(delinearize(linearize(indices, shape), sizes))
        place.insert(self.dimension, time * self.step + self.first)
        return place


@dataclass(frozen=True)
class Recurrence:
    """A loop of ``trips`` iterations; its counters, states and stacked results by their number in its state.

    Elements of ``shape`` are computed each for itself.
    """

    loop: ir.Operation
    trips: int
    counters: Mapping[int, Counter]
    states: tuple[int, ...]
    stacked: Mapping[int, Stacked]
    shape: Shape

    @classmethod
    def of(cls, loop: ir.Operation) -> "Recurrence | None":
        """Return what kinds of state a loop has; None if it is not known how often it runs, or shapes do not fit.

        That the elements of its states depend on each other is another question: that of `step_of`.
        """
        counters = counters_of(loop)
        trips = trip_count(loop, counters)
        if trips is None or not 0 < trips <= _MOST_TRIPS:
            return None
        (body,) = loop.regions[1].blocks
        changing = [
            number
            for number, argument in enumerate(body.arguments)
            if number not in counters and unchanging(argument, loop) == argument
        ]
        known = {body.arguments[number]: counter.numbers(trips) for number, counter in counters.items() if changing}
        stacked = {number: each for number in changing if (each := _stacked(loop, number, known, trips)) is not None}
        states = tuple(number for number in changing if number not in stacked)
        arrays = [*(body.arguments[number] for number in states), *(each.update for each in stacked.values())]
        shapes = [_without(shape_of(each.update), each.dimension) for each in stacked.values()]
        shapes = [*(shape_of(body.arguments[number]) for number in states), *shapes]
        if not arrays or len({math.prod(shape) for shape in shapes}) > 1 or any(map(is_packed, arrays)):
            return None
        return cls(loop, trips, counters, states, stacked, shapes[0]) if math.prod(shapes[0]) else None

    @property
    def next_states(self) -> list[ir.Value]:
        """What the body makes of the states."""
        (body,) = self.loop.regions[1].blocks
        *_, end = body.operations
        return [end.operation.operands[number] for number in self.states]

    def state_map(self, number: int) -> IndexingMap:
        """Return the map from the indices of ``shape`` to those of a state."""
        indices, own = dims(len(self.shape)), shape_of(self.loop.operands[number])
        results = indices if own == self.shape else delinearize(linearize(indices, self.shape), own)
        return IndexingMap(ranges(self.shape), (), tuple(results))


def _without(shape: Shape, dimension: int) -> Shape:
    return shape[:dimension] + shape[dimension + 1 :]


def _stacked(loop: ir.Operation, number: int, known: Mapping[ir.Value, Numbers], trips: int) -> Stacked | None:
    """Return how the array ``number`` of a loop's state is stacked up; None if it is not, or not whole."""
    (body,) = loop.regions[1].blocks
    *_, end = body.operations
    argument, result = body.arguments[number], end.operation.operands[number]
    if isinstance(result.owner, ir.Block) or maker(result).name != UPDATE_SLICE:
        return None
    op = maker(result)
    if op.operands[0] != argument or any(len(list(value.uses)) != 1 for value in (argument, result)):
        return None
    whole, part = shape_of(argument), shape_of(op.operands[1])
    cut = [i for i, (size, own) in enumerate(zip(whole, part, strict=True)) if size != own]
    if len(cut) != 1 or part[cut[0]] != 1 or whole[cut[0]] != trips:
        return None
    numbers = numbers_of(op.operands[2 + cut[0]], known, loop, trips)
    if numbers is None:
        return None
    for step in (1, -1):
        if np.array_equal(numbers, np.arange(trips)[::step]):
            return Stacked(cut[0], int(numbers[0]), step, op.operands[1])
    return None


@dataclass(frozen=True, eq=False)
class Step:
    """An iteration of a recurrence as a block: what the next states and updates are, all of the recurrence's shape.

    The block's arguments are ``parameters``, then the counters and the states, at the indices of the values that are
    ``injected``. ``module`` owns it.
    """

    module: ir.Module
    block: ir.Block
    parameters: tuple[ir.Value, ...]
    injected: Mapping[ir.Value, IndexingMap]

    def partition(self) -> Partition | None:
        """Return the functions that an iteration is; None if elements of states depend on other ones."""
        found = partition(self.block, injected=self.injected)
        for (number, position), scope in found.scope_of.items():
            value = found.nodes[number].operand(position)
            if value in self.injected and not found.is_injected(value, scope):
                return None
        return found


def step_of(recurrence: Recurrence, given: Sequence[ir.Value]) -> Step:
    """Return an iteration as a block whose parameters are ``given``, values around the loop.

    What else is around the loop is computed in the block.
    """
    (body,) = recurrence.loop.regions[1].blocks
    own = [body.arguments[number] for number in (*recurrence.counters, *recurrence.states)]
    roots = [*recurrence.next_states, *(each.update for each in recurrence.stacked.values())]
    module, block = _block_of([*given, *own], roots, recurrence.shape, recurrence.loop)
    arguments = list(block.arguments)
    injected: dict[ir.Value, IndexingMap] = dict(zip(arguments[len(given) :], _maps(recurrence), strict=True))
    return Step(module, block, tuple(arguments[: len(given)]), injected)


def start_of(recurrence: Recurrence, given: Sequence[ir.Value]) -> Step:
    """Return a block that makes the states before the first iteration, of the recurrence's shape."""
    roots = [recurrence.loop.operands[number] for number in recurrence.states]
    module, block = _block_of(given, roots, recurrence.shape, recurrence.loop)
    return Step(module, block, tuple(block.arguments), {})


def _maps(recurrence: Recurrence) -> list[IndexingMap]:
    """Return where an element reads the counters and the states."""
    counters = [scalar_map(recurrence.shape) for _ in recurrence.counters]
    return [*counters, *(recurrence.state_map(number) for number in recurrence.states)]


def _block_of(
    arguments: Sequence[ir.Value], roots: Sequence[ir.Value], shape: Shape, loop: ir.Operation
) -> tuple[ir.Module, ir.Block]:
    """Return a block that makes ``roots``, under another shape, of ``arguments``, and the module that owns it."""
    with loop.context, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = ir.func.FuncOp("step", ir.FunctionType.get([value.type for value in arguments], []))
        block = function.add_entry_block()
        copies = dict(zip(arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            made = []
            for root in roots:
                _copy(root, copies, loop)
                made.append(reshape(copies[root], shape))
            ir.func.return_(made)
    return module, block


def _copy(root: ir.Value, copies: dict[ir.Value, ir.Value], loop: ir.Operation) -> None:
    """Copy what makes ``root`` from values that have copies; the loop is one kernel, so that barriers are for none."""
    pending = [root]
    while pending:
        value = pending[-1]
        needed = _needed(value, loop)
        if value in copies:
            pending.pop()
        elif unknown := [each for each in needed if each not in copies]:
            pending += unknown
        elif isinstance(value.owner, ir.Block) or maker(value).name == BARRIER:
            copies[value] = copies[needed[0]]
        else:
            copy_operation(maker(value), copies)


def _needed(value: ir.Value, loop: ir.Operation) -> list[ir.Value]:
    """Return what a value inside or around ``loop`` is made of."""
    if isinstance(value.owner, ir.Block):
        around = unchanging(value, loop)
        return [around] if around != value else []
    op = maker(value)
    if op.name == BARRIER:
        return [op.operands[ir.OpResult(value).result_number]]
    return [*op.operands, *captured(op)]


def arrays_read(recurrence: Recurrence) -> list[ir.Value]:
    """Return the values around a loop that its iterations read, but for such as are the same number everywhere."""
    loop = recurrence.loop
    (body,) = loop.regions[1].blocks
    own = {body.arguments[number] for number in (*recurrence.counters, *recurrence.states)}
    inside = {value for op in body.operations for value in op.operation.results} | set(body.arguments)
    pending = [*recurrence.next_states, *(each.update for each in recurrence.stacked.values())]
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


def is_number(value: ir.Value) -> bool:
    """Whether ``value`` is a constant, or one spread over an array, which kernels need not read."""
    while not isinstance(value.owner, ir.Block) and maker(value).name in _SPREADING:
        value = maker(value).operands[0]
    return is_constant(value) and math.prod(shape_of(value)) == 1


_SPREADING = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")


def mark_recurrences(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Mark the loops that become one kernel each, and forward what is known of their results."""
    for block in list(planned_blocks(main.entry_block)):
        for op in [view.operation for view in block.operations]:
            if op.name == "stablehlo.while":
                if RECURRENCE in op.attributes:
                    del op.attributes[RECURRENCE]
                recurrence = Recurrence.of(op)
                if recurrence is not None and _is_for_one_kernel(recurrence, target):
                    op.attributes[RECURRENCE] = ir.UnitAttr.get()
                    _forward_results(recurrence)


def _is_for_one_kernel(recurrence: Recurrence, target: Device) -> bool:
    """Whether elements are computed each for itself, by operations of which nothing is left to XLA, in good time."""
    read = arrays_read(recurrence)
    if len(read) + len(recurrence.states) + len(recurrence.stacked) > _MOST_ARRAYS:
        return False
    step = step_of(recurrence, read)
    *operations, _ = (op.operation for op in step.block.operations)
    if any(op.name not in handled_ops() or reason_to_leave(op) or hero_kind(op) for op in operations):
        return False
    if not _is_cheap(recurrence, operations, target):
        return False
    # One function: nothing is computed more than once for an element.
    return (parts := step.partition()) is not None and len(parts.subgraphs) == 1


def _is_cheap(recurrence: Recurrence, operations: Sequence[ir.Operation], target: Device) -> bool:
    """Whether what is computed once by a loop's kernels takes all threads no longer than an iteration's launches."""
    size = math.prod(recurrence.shape)
    spread = sum(instructions(op) for op in operations if _SPREAD * elements(op.results[0]) < size)
    saved = launch_bytes(target) + 2 * sum(byte_size(value) for value in recurrence.next_states)
    return spread * size * BYTES_PER_INSTRUCTION <= saved


def _forward_results(recurrence: Recurrence) -> None:
    """Replace results that do not change by what they are, and counters by where they end."""
    loop = recurrence.loop
    (body,) = loop.regions[1].blocks
    with ir.InsertionPoint(loop), loop.location:
        for number, result in enumerate(loop.results):
            if (counter := recurrence.counters.get(number)) is not None:
                if any(True for _ in result.uses):
                    end = counter.start + recurrence.trips * counter.step
                    result.replace_all_uses_with(splat(counter.wrapped(end), ir.RankedTensorType(result.type)))
            elif unchanging(body.arguments[number], loop) != body.arguments[number]:
                result.replace_all_uses_with(loop.operands[number])
