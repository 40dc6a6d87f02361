"""The pass `mark-recurrences`."""

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.constants.counters import unchanging
from xgpu.analysis.heroes import PRODUCT, is_hero
from xgpu.costs.time import bytes_per_instruction, launch_bytes
from xgpu.costs.values import byte_size, elements, instructions, is_immediate
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName
from xgpu.dialects.attributes import FALLBACK, RECURRENCE, ROTATED
from xgpu.fusion.fallback import EPILOGUE
from xgpu.fusion.loops.carried_slices import with_carried_slices
from xgpu.fusion.loops.elements import SCATTER
from xgpu.fusion.loops.products import with_sums
from xgpu.fusion.loops.recurrences import Recurrence
from xgpu.fusion.loops.rotation import condition_number, unrotated
from xgpu.fusion.loops.separate_slices import with_separate_slices
from xgpu.fusion.loops.split_states import LONGEST, with_split_states
from xgpu.fusion.loops.steps import step_of
from xgpu.hlo.stablehlo_builder import splat, splat_like
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import body_of, is_used, nested, replace_op

_READING = ("stablehlo.slice", "stablehlo.dynamic_slice")
_LOAD = 4
"""Instructions in whose time a thread loads one number, as it has several on their way."""
_SLOWER = 2
"""By how much threads that compute many numbers one after the other must be expected to be faster than kernels."""


@dataclass(frozen=True)
class MarkRecurrences(OperationRewrite):
    """Marks the loops that become one kernel each, where that is possible and faster.

    Results that do not change are replaced by their values, and counters by their last ones. Small contractions in the
    body become sums, which a recurrence's threads share. Where numbers depend on all of their row and rows are short,
    as those of quaternions or small matrices are, there is a state for each of the numbers, and sums are written out.
    Slices of slices are read from the whole array. Where an array is written slice by slice, and slices are read that
    iterations just before have written, these slices are states, and the array is stacked up. Conditions that
    `rotate-loops` has made a part of the state are taken out of it again. Needs: all other rewrites, as it looks at
    what the body is.

    ```mlir
    %result:2 = stablehlo.while(%i = %zero, %state = %x) : tensor<i32>, tensor<64xf32>
      cond { ... %i < 100 ... } do { ... one element of %state computed from the same element ... }
    ```
    becomes
    ```mlir
    %result:2 = stablehlo.while(%i = %zero, %state = %x) : tensor<i32>, tensor<64xf32> attributes {xgpu.recurrence}
      cond { ... } do { ... }
    // and %result#0 the constant 100
    ```
    """

    NAME: ClassVar[str] = "mark-recurrences"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.while",))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""

    def rewrite(self, op: ir.Operation) -> None:
        """Mark a loop if it is one of those, and forward what is known of its results."""
        if RECURRENCE in op.attributes:
            del op.attributes[RECURRENCE]
        if _mark_unrotated(op, self.target.device):
            return
        if ROTATED in op.attributes:
            del op.attributes[ROTATED]
        _mark(op, self.target.device)


def _mark_unrotated(loop: ir.Operation, target: Device) -> bool:
    """Replace a loop by the one that it was before its condition became part of its state, if that is one kernel."""
    if (plain := unrotated(loop)) is None:
        return False
    number = condition_number(loop)
    results = list(loop.results)
    ended = results.pop(number)
    for old, new in zip(results, list(plain.results), strict=True):
        old.replace_all_uses_with(new)
    if _mark(plain, target):
        if is_used(ended):
            ended.replace_all_uses_with(splat_like(0, ended))
        loop.erase()
        return True
    for old, new in zip(results, list(plain.results), strict=True):
        new.replace_all_uses_with(old)
    plain.erase()
    return False


def _mark(loop: ir.Operation, target: Device) -> bool:
    """Mark a loop if it is one kernel, and tell whether it is."""
    recurrence = _recurrence_of(loop, target)
    for rewritten in (with_sums, with_separate_slices):
        if recurrence is None and (copy := rewritten(loop)) is not None:
            _forget_epilogues(copy)
            recurrence = _recurrence_of(copy, target)
            if recurrence is None:
                copy.erase()
            else:
                replace_op(loop, list(copy.results))
    if recurrence is None:
        recurrence = _carried(loop, target) or _split(loop, target)
    if recurrence is not None:
        recurrence.loop.attributes[RECURRENCE] = ir.UnitAttr.get()
        _forward_results(recurrence)
    return recurrence is not None


def _split(loop: ir.Operation, target: Device) -> Recurrence | None:
    """Replace a loop by one with a state for each number of its rows, and return what that is as one kernel."""
    for longest in LONGEST:
        split = with_split_states(loop, longest)
        if split is None:
            continue
        _forget_epilogues(split.loop)
        recurrence = Recurrence.of(split.loop)
        # What is slower takes longest to look at.
        if recurrence and _is_faster(loop, recurrence, target) and _is_for_one_kernel(recurrence, target):
            replace_op(loop, list(split.results))
            return recurrence
        split.erase()
    return None


def _forget_epilogues(loop: ir.Operation) -> None:
    """Drop the marks of what XLA would compute with products: a loop that is one kernel has none."""
    for op in nested(loop):
        reason = op.attributes.get(FALLBACK)
        if isinstance(reason, ir.StringAttr) and reason.value.startswith(EPILOGUE.format("")):
            del op.attributes[FALLBACK]


def _carried(loop: ir.Operation, target: Device) -> Recurrence | None:
    """Replace a loop by one whose states are slices of arrays that it writes, and return what that is as one kernel."""
    carried = with_carried_slices(loop)
    if carried is None:
        return None
    recurrence = _recurrence_of(carried.loop, target)
    if recurrence is None:
        carried.erase()
    else:
        replace_op(loop, list(carried.results))
    return recurrence


def _is_faster(loop: ir.Operation, recurrence: Recurrence, target: Device) -> bool:
    """Whether threads that compute all numbers of a row take no longer than kernels that compute each of them alone."""
    rows = math.prod(recurrence.shape)
    step = [view.operation for view in body_of(recurrence.loop, 1).operations]
    before = [view.operation for number in (0, 1) for view in body_of(loop, number).operations]
    launches = 1 + sum(is_hero(op) or op.name in (SCATTER, PRODUCT) for op in before)
    alone = sum(instructions(op) * elements(op.results[0]) for op in before if len(op.results))
    moved = sum(map(byte_size, {*_moved_by_kernels(before)})) + 2 * sum(map(byte_size, loop.results))
    saved = launches * launch_bytes(target) + moved + alone * bytes_per_instruction(target)
    together = sum(instructions(op) + _LOAD * (op.name in _READING) for op in step)
    return _SLOWER * together * rows * bytes_per_instruction(target, rows) <= saved


def _moved_by_kernels(operations: Sequence[ir.Operation]) -> Iterator[ir.Value]:
    """Yield the arrays that kernels of some operations read and write between each other."""
    for op in operations:
        if is_hero(op) or op.name in (SCATTER, PRODUCT):
            yield from (value for value in (*op.operands, *op.results) if not is_immediate(value))


def _recurrence_of(loop: ir.Operation, target: Device) -> Recurrence | None:
    """Return what a loop is as one kernel; None if it is better left a loop."""
    recurrence = Recurrence.of(loop)
    return recurrence if recurrence is not None and _is_for_one_kernel(recurrence, target) else None


def _is_for_one_kernel(recurrence: Recurrence, target: Device) -> bool:
    """Whether elements are computed each for itself, by operations of which nothing is left to XLA, in good time."""
    step = step_of(recurrence)
    return step is not None and _is_cheap(recurrence, step.operations, target) and step.is_of_own_elements()


def _is_cheap(recurrence: Recurrence, operations: Sequence[ir.Operation], target: Device) -> bool:
    """Whether what several threads compute takes them no longer than a launch and the states in memory.

    That is what an iteration takes as kernels, which compute each value once.
    """
    size = math.prod(recurrence.shape)
    spread = sum(instructions(op) for op in operations if 2 * elements(op.results[0]) <= size)
    saved = launch_bytes(target) + 2 * sum(byte_size(value) for value in recurrence.next_states)
    return spread * size * bytes_per_instruction(target) <= saved


def _forward_results(recurrence: Recurrence) -> None:
    """Replace results that do not change by what they are, and counters by where they end."""
    loop = recurrence.loop
    (body,) = loop.regions[1].blocks
    with ir.InsertionPoint(loop), loop.location:
        for number, result in enumerate(loop.results):
            if (counter := recurrence.counters.get(number)) is not None:
                if is_used(result):
                    end = counter.start + recurrence.trips * counter.step
                    result.replace_all_uses_with(splat(counter.wrapped(end), ir.RankedTensorType(result.type)))
            elif unchanging(body.arguments[number], loop) != body.arguments[number]:
                result.replace_all_uses_with(loop.operands[number])
