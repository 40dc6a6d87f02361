"""The pass `rotate-loops`."""

from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.constants.counters import counters_of, trip_count, trips_at_entry
from xgpu.fusion.loops.rotation import is_rotated, rotated
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op


@dataclass(frozen=True)
class RotateLoops(OperationRewrite):
    """Makes the conditions of loops a part of their state, for a host that computes nothing.

    The condition is computed before the loop, and from the next state at the end of the body, by kernels that also
    compute other things there. The host reads it. Loops whose number of iterations is known, now or when they begin,
    stay, as a host counts them. `mark-recurrences` takes a condition out again where a loop is one kernel. Only for
    ``runs=launches``. Needs: constants in the blocks that use them, which tell what is known.

    ```mlir
    %r = stablehlo.while(%x = %start) : tensor<f32>
      cond { %p = stablehlo.compare LT, %x, %limit ... } do { %y = stablehlo.add %x, %x ... }
    ```
    becomes
    ```mlir
    %first = stablehlo.compare LT, %start, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %r:2 = stablehlo.while(%x = %start, %p = %first) : tensor<f32>, tensor<i1>
      cond { stablehlo.return %p : tensor<i1> }
      do { %y = stablehlo.add %x, %x ... %next = stablehlo.compare LT, %y, %limit ... }
    ```
    """

    NAME: ClassVar[str] = "rotate-loops"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.while",))

    runs: Literal["xla", "launches"] = "launches"
    """The executor of loops."""

    def rewrite(self, op: ir.Operation) -> None:
        """Rotate a loop unless it is counted."""
        if self.runs != "launches" or is_rotated(op) or trips_at_entry(op) is not None:
            return
        if trip_count(op, counters_of(op)) is None:
            replace_op(op, list(rotated(op).results)[:-1])
