"""The pass `hoist-invariants`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.constants.counters import counters_of, trip_count
from xgpu.analysis.control_flow import planned_blocks
from xgpu.device import DEFAULT_DEVICE, DeviceName
from xgpu.fusion.loops.invariants import values_before
from xgpu.hlo.stablehlo_builder import hlo, inline_block
from xgpu.passes.framework.base import OperationRewrite, main_of
from xgpu.records import dataclass
from xgpu.structure import as_needed, attributes_of, block_of, body_of, copy_operation, replace_op


@dataclass(frozen=True)
class HoistInvariants(OperationRewrite):
    """Computes before a loop what is the same in each iteration, where that takes kernels of its own.

    Such values become part of the state, which hands them on. XLA does the same, but not with what kernels compute, or
    with what follows from that. What is cheap stays in the kernels that need it. Needs: reductions to be in their final
    form. Run it before loops that are one kernel are marked, as they have no such operations, and trivial-dce after it,
    which removes what was computed in the body.

    ```mlir
    %r:2 = stablehlo.while(%x = %start, %a = %b) : tensor<64xf32>, tensor<64x64xf32> cond { ... } do {
      %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : ...
      %y = stablehlo.divide %x, %s : tensor<64xf32>
      stablehlo.return %y, %a
    }
    ```
    becomes
    ```mlir
    %s = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : ...
    %r:3 = stablehlo.while(%x = %start, %a = %b, %c = %s) : tensor<64xf32>, ... cond { ... } do {
      %y = stablehlo.divide %x, %c : tensor<64xf32>
      stablehlo.return %y, %a, %c
    }
    ```
    """

    NAME: ClassVar[str] = "hoist-invariants"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.while",))

    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""

    def apply(self, module: ir.Module) -> None:
        """Rewrite every block of the function ``main``, inner ones first: outer loops may move on what they move."""
        for block in reversed(list(planned_blocks(main_of(module).entry_block))):
            self.rewrite_block(block)

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a loop that computes such values, unless it is known to run once at most."""
        trips = trip_count(op, counters_of(op))
        if (trips is None or trips > 1) and (values := values_before(op, self.target.device)):
            replace_op(op, list(_with_values(op, values).results)[: len(op.results)])


def _with_values(loop: ir.Operation, values: Sequence[ir.Value]) -> ir.Operation:
    """Make a loop with ``values`` of the body of ``loop``, computed before it, as more of its state."""
    body = body_of(loop, 1)
    copies: dict[ir.Value, ir.Value] = dict(zip(body.arguments, loop.operands, strict=True))
    for op in as_needed(values, lambda value: block_of(value) != body):
        # What is from around the loop is its own copy.
        copies |= {value: value for value in op.operands if value not in copies}
        copy_operation(op, copies)
    starts = [*loop.operands, *(copies[value] for value in values)]
    types = [start.type for start in starts]
    for value in values:
        value.replace_all_uses_with(body.add_argument(value.type, loop.location))
    new = ir.Operation.create(loop.name, types, starts, attributes_of(loop), regions=2)
    for number, region in enumerate(new.regions):
        block, old = region.blocks.append(*types), body_of(loop, number)
        with ir.InsertionPoint(block):
            results = inline_block(old, block.arguments[: len(old.arguments)])
            hlo.return_([*results, *block.arguments[len(loop.operands) :]] if number else results)
    return new
