"""Rewrites reductions and scans that add or multiply f16 and bf16 to those of f32, rounded at the end, as XLA does."""

from xgpu import ir
from xgpu.frontend.narrow_floats import Widening
from xgpu.frontend.scan_op import SCAN

_ROUNDING = frozenset(f"stablehlo.{name}" for name in "add subtract multiply".split())
_EXACT = frozenset(f"stablehlo.{name}" for name in "maximum minimum compare select and or constant return".split())


def widen_sums(module: ir.Module) -> bool:
    """Rewrite each reduction and scan over f16 and bf16 whose region rounds as one over f32, between conversions.

    Returns whether there was any. One that only picks elements stays as it is, and so does one whose region has
    other operations than those that are the same in f32 but for the rounding.
    """
    widening = Widening(_wider_half)
    found: list[ir.Operation] = []

    def visit(view: ir.Operation) -> ir.WalkResult:
        op = view.operation
        if op.name in ("stablehlo.reduce", SCAN) and widening.is_needed(op):
            names = {inner.operation.name for inner in op.regions[0].blocks[0].operations}
            if names & _ROUNDING and names <= _ROUNDING | _EXACT:
                found.append(op)
        return ir.WalkResult.ADVANCE

    with module.operation.location:
        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        for op in found:
            with op.location:
                widening.widen(op)
    return bool(found)


def _wider_half(element: ir.Type) -> ir.Type | None:
    return ir.F32Type.get(element.context) if isinstance(element, ir.F16Type | ir.BF16Type) else None
