"""The pass `count-loops`."""

from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.constants.counters import counters_of, trip_count, trips_at_entry
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.dialects.attributes import COUNTED, FALLBACK, HOST, RECURRENCE, TRIPS
from xgpu.fusion.fallback import BARRIER
from xgpu.fusion.loops.rotation import is_rotated, rotated
from xgpu.hlo.stablehlo_builder import convert, hlo, inline_block, splat, tensor
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import attributes_of, body_of, producer, replace_op


@dataclass(frozen=True)
class CountLoops(OperationRewrite):
    """Marks loops and branches as run by a host, and gives loops of known length a counter of the host's own.

    The counter is how often the body runs, known now (`xgpu.trips`) or when the loop begins. The program's counter is
    then needed only where the body computes from it. A loop that does not run at all is its operands. Loops that are
    one kernel get the mark alone, and so do barriers: all that the host knows is in memory, numbers too. Only for
    ``runs=launches``. Needs: loops to be rotated, and those that are one kernel to be marked.

    ```mlir
    %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<8xf32>
      cond { ... %i < 10 ... } do { %j = stablehlo.add %i, %one : tensor<i32> ... }
    ```
    becomes
    ```mlir
    %r:4 = stablehlo.while(%i = %zero, %x = %start, %n = %none, %end = %ten) : tensor<i32>, tensor<8xf32>, ...
      attributes {xgpu.host, xgpu.trips = 10 : i64}
      cond { ... %n < %end ... } do { %j = stablehlo.add %i, %one ... %m = stablehlo.add %n, %a {xgpu.fallback = ...} }
    ```
    """

    NAME: ClassVar[str] = "count-loops"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((*CONTROL_FLOW, BARRIER))

    runs: Literal["xla", "launches"] = "launches"
    """The executor of loops and branches."""

    def rewrite(self, op: ir.Operation) -> None:
        """Mark a loop, branch or barrier; replace a loop by one that is counted, or rotated."""
        if self.runs != "launches" or HOST in op.attributes:
            return
        op.attributes[HOST] = ir.UnitAttr.get()
        if op.name != "stablehlo.while" or RECURRENCE in op.attributes or is_rotated(op):
            return
        trips, known = trip_count(op, counters_of(op)), trips_at_entry(op)
        if trips == 0:
            replace_op(op, list(op.operands))
        elif trips is not None:
            replace_op(op, list(_counted(op, _number(trips), trips).results)[:-2])
        elif known is not None:
            replace_op(op, list(_counted(op, _difference(*known)).results)[:-2])
        else:
            replace_op(op, list(rotated(op).results)[:-1])


def _counted(loop: ir.Operation, count: ir.Value, trips: int | None = None) -> ir.Operation:
    """Make a loop with the same results, and the host's counter and what it counts to as two more."""
    starts = [*loop.operands, _number(0), count]
    types = [start.type for start in starts]
    known = {} if trips is None else {TRIPS: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), trips)}
    new = ir.Operation.create(loop.name, types, starts, attributes_of(loop) | known, regions=2)
    condition, body = (region.blocks.append(*types) for region in new.regions)
    with ir.InsertionPoint(condition):
        *_, counter, end = condition.arguments
        hlo.return_([hlo.compare(counter, end, hlo.ComparisonDirectionAttr.get("LT"))])
    with ir.InsertionPoint(body):
        *arguments, counter, end = body.arguments
        state = inline_block(body_of(loop, 1), arguments)
        next_ = hlo.add(counter, _number(1))
        producer(next_).attributes[FALLBACK] = ir.StringAttr.get(COUNTED)
        hlo.return_([*state, next_, end])
    return new


def _difference(first: ir.Value, second: ir.Value) -> ir.Value:
    """Return how much the first integer exceeds the second one, in 64 bits."""
    wide = ir.IntegerType.get_signless(64)
    return hlo.subtract(convert(first, wide), convert(second, wide))


def _number(number: int) -> ir.Value:
    value = splat(number, tensor([], ir.IntegerType.get_signless(64)))
    producer(value).attributes[FALLBACK] = ir.StringAttr.get(COUNTED)
    return value
