"""The pass `merge-counters`."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.constants.counters import Counter, condition_of, counters_of
from xgpu.dialects.attributes import RECURRENCE
from xgpu.hlo.stablehlo_builder import hlo, splat_like
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import body_of, terminator_of


@dataclass(frozen=True)
class MergeCounters(OperationRewrite):
    """Computes counters of a loop from the one that its condition compares, where the body reads them.

    Each counter of its own is a launch in each iteration. Of two with the same step, which is not one, XLA makes a
    third: it then no longer knows how often the loop runs, and asks the GPU before each iteration. Only for
    ``runs=xla``. Needs: loops that are one kernel to be marked, as these count in registers.

    ```mlir
    %r:3 = stablehlo.while(%i = %zero, %j = %seven, %x = %start) : tensor<i32>, tensor<i32>, tensor<8xf32>
      cond { ... %i < 8 ... } do { ... %j ... stablehlo.return (%i + 1), (%j - 1), %y }
    ```
    becomes
    ```mlir
    %r:3 = stablehlo.while(%i = %zero, %j = %seven, %x = %start) : tensor<i32>, tensor<i32>, tensor<8xf32>
      cond { ... %i < 8 ... } do { ... (7 - %i) ... stablehlo.return (%i + 1), (%j - 1), %y }
    ```
    """

    NAME: ClassVar[str] = "merge-counters"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.while",))

    runs: Literal["xla", "launches"] = "xla"
    """The executor of loops."""

    def rewrite(self, op: ir.Operation) -> None:
        """Merge the counters of a loop."""
        if self.runs != "xla" or RECURRENCE in op.attributes:
            return
        counters, compared = counters_of(op), condition_of(op)
        if compared is not None and compared.number in counters:
            _merge(op, counters, compared.number)


def _merge(loop: ir.Operation, counters: Mapping[int, Counter], kept: int) -> None:
    """Compute all counters that are multiples of the one that is kept, and a constant, from that one."""
    body, first = body_of(loop, 1), counters[kept]
    end = terminator_of(body)
    for number, counter in counters.items():
        ratio, rest = divmod(counter.step, first.step) if first.step else (0, 1)
        if number == kept or rest or counter.dtype != first.dtype:
            continue
        argument = body.arguments[number]
        with ir.InsertionPoint.at_block_begin(body):
            offset = counter.wrapped(counter.start - ratio * first.start)
            argument.replace_all_uses_with(_multiple(body.arguments[kept], ratio, offset))
        with ir.InsertionPoint(end):
            end.operands[number] = hlo.add(argument, splat_like(counter.step, argument))


def _multiple(value: ir.Value, ratio: int, offset: int) -> ir.Value:
    """Return ``ratio`` times an integer, plus an offset."""
    if ratio == -1:
        return hlo.subtract(splat_like(offset, value), value)
    if ratio != 1:
        value = hlo.multiply(value, splat_like(ratio, value))
    return hlo.add(value, splat_like(offset, value)) if offset else value
