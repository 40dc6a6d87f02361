"""The pass `double-buffer-loops`."""

from collections.abc import Container, Mapping, Sequence
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.constants.counters import Counter, counters_of, trip_count
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.dialects.attributes import RECURRENCE
from xgpu.fusion.fallback import BARRIER
from xgpu.fusion.loops.copied_states import has_copied_states, longest_move
from xgpu.hlo.stablehlo_builder import hlo, inline_block, splat_like
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import attributes_of, body_of, count_ops, defining_op, is_constant, replace_op, walk

_FEWEST_TRIPS = 8
"""Iterations below which copies take less time than compiling a longer loop does."""
_MOST_STEPS = 4
"""Iterations that are one, but for one more where that leaves no rest."""
_MOST_OPERATIONS = 512
"""Operations of a body that are compiled again, at most."""


@dataclass(frozen=True)
class DoubleBufferLoops(OperationRewrite):
    """Makes one iteration of two where XLA would copy a state in each, as its neighbours are read for its next value.

    The first of the two writes to memory of its own, the second one back to that of the state, so nothing is copied. A
    barrier between them keeps kernels from computing both at once, and from reading a state that was overwritten. Of
    an odd number of iterations three are one, or the first one comes before the loop. Only for ``runs=xla``; what runs
    loops of packages exchanges addresses. Needs: loops that are one kernel to be marked.

    ```mlir
    %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<8xf32>
      cond { ... %i < 10 ... } do { %y = ... %x ... stablehlo.return %j, %y }
    ```
    becomes
    ```mlir
    %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<8xf32>
      cond { ... %i < 10 ... } do {
        %y = ... %x ...
        %between = stablehlo.optimization_barrier %y : tensor<8xf32>
        %z = ... %between ...
        %k = stablehlo.add %i, %two : tensor<i32>
        stablehlo.return %k, %z : tensor<i32>, tensor<8xf32>
      }
    ```
    """

    NAME: ClassVar[str] = "double-buffer-loops"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.while",))

    runs: Literal["xla", "launches"] = "xla"
    """The executor of loops."""

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a loop that copies a state, if how often it runs is known."""
        if self.runs != "xla" or RECURRENCE in op.attributes or not _is_short(body_of(op, 1)):
            return
        counters = counters_of(op)
        trips = trip_count(op, counters)
        fewest = 2 + longest_move(op)
        if trips is None or trips < _FEWEST_TRIPS or fewest > _MOST_STEPS or not has_copied_states(op):
            return
        steps = next((number for number in (fewest, fewest + 1) if trips % number == 0), fewest)
        state = list(op.operands)
        for done in range(1, trips % steps + 1):
            state = inline_block(body_of(op, 1), state)
            for number, counter in counters.items():
                state[number] = splat_like(counter.wrapped(counter.start + done * counter.step), state[number])
        replace_op(op, list(_with_steps(op, state, counters, steps).results))


def _is_short(body: ir.Block) -> bool:
    """Whether a loop's body is compiled fast, and runs no other loops or branches but those that are one kernel."""
    operations = [view.operation for view in body.operations]
    inner = [each for op in operations for each in walk(op, *CONTROL_FLOW)]
    return all(RECURRENCE in op.attributes for op in inner) and sum(map(count_ops, operations)) <= _MOST_OPERATIONS


def _with_steps(
    loop: ir.Operation, state: Sequence[ir.Value], counters: Mapping[int, Counter], steps: int
) -> ir.Operation:
    """Make a loop from ``state`` on, each iteration of which is so many of those of ``loop``."""
    types = [value.type for value in state]
    new = ir.Operation.create(loop.name, types, state, attributes_of(loop), regions=2)
    condition, body = (region.blocks.append(*types) for region in new.regions)
    with ir.InsertionPoint(condition):
        hlo.return_(inline_block(body_of(loop, 0), condition.arguments))
    with ir.InsertionPoint(body):
        values: list[ir.Value] = list(body.arguments)
        before: dict[ir.Value, ir.Value] = {}
        for number in range(steps):
            values = inline_block(body_of(loop, 1), _behind_barrier(values, counters, before) if number else values)
        # What the last of them only hands on is returned as it was before the barrier: a kernel may write it in place.
        results = [before.get(value, value) for value in values]
        for number, counter in counters.items():
            step = splat_like(counter.wrapped(steps * counter.step), results[number])
            results[number] = hlo.add(body.arguments[number], step)
        hlo.return_(results)
    return new


def _behind_barrier(
    values: Sequence[ir.Value], counters: Container[int], before: dict[ir.Value, ir.Value]
) -> list[ir.Value]:
    """Return the state behind a barrier for what the loop has computed but counters; ``before`` is told what it was."""
    values = [before.get(value, value) for value in values]
    numbered = [value for number, value in enumerate(values) if number not in counters]
    computed = list(dict.fromkeys(value for value in numbered if defining_op(value) and not is_constant(value)))
    barrier = ir.Operation.create(BARRIER, results=[value.type for value in computed], operands=computed)
    behind = dict(zip(computed, barrier.results, strict=True))
    before |= dict(zip(barrier.results, computed, strict=True))
    return [behind.get(value, value) for value in values]
