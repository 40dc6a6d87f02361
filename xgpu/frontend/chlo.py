"""Functions of CHLO, JAX's client dialect: most are written as StableHLO, a few stay what they are."""

from xgpu import ir
from xgpu.frontend.mhlo import replace
from xgpu.hlo.operations import OPERATIONS

BESSEL_I0E = "xgpu.bessel_i0e"
"""The function that CHLO lacks: an operation of our own from the start, and a custom call in what JAX lowers."""
KEPT_FUNCTIONS = (*(name for name in OPERATIONS if name.startswith("chlo.")), BESSEL_I0E)
"""Functions that stay one operation on real numbers, as `expand-math` does better than their expansions here.

In f32, cosh and sinh are within 3 units in the last place instead of 24, acos and asin 1.1 instead of 2.2 (in bf16 0.5
instead of 1.4, as one rounding is enough), erf_inv and erfc 5 instead of 65. digamma, lgamma and the Bessel functions
are a fifth to a tenth as many instructions. docs/accuracy.md has all of them.
"""
_REAL = ("bf16", "f16", "f32", "f64")
TOP_K = "chlo.top_k"
"""The largest elements of rows, for which XLA has kernels of its own that look at a row once: a sort does not."""
_RANKED = (*_REAL, *(f"{sign}i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
"""Element types whose largest elements XLA finds."""


def legalize_chlo(module: ir.Module) -> None:
    """Write CHLO operations and composites as StableHLO, but for `KEPT_FUNCTIONS` on real numbers and `TOP_K`.

    Custom calls of their names become them. Raises `MLIRError` with the diagnostics of the pass if an operation has no
    such form.
    """
    _hide(module)
    passes = "func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo)"
    ir.PassManager.parse(f"builtin.module({passes})", module.context).run(module.operation)
    _show(module)


def _hide(module: ir.Module) -> None:
    """Turn the functions that are kept into custom calls, which the pass leaves alone."""
    for op in _operations(module):
        if (op.name in KEPT_FUNCTIONS and _element(op) in _REAL) or (op.name == TOP_K and _element(op) in _RANKED):
            name = ir.StringAttr.get(op.name, module.context)
            _rename(op, "stablehlo.custom_call", {"call_target_name": name, **_attributes(op)})


def _show(module: ir.Module) -> None:
    for op in _operations(module):
        if op.name == "stablehlo.custom_call":
            target = ir.StringAttr(op.attributes["call_target_name"]).value
            if target in KEPT_FUNCTIONS:
                _rename(op, target, {})
            elif target == TOP_K and "k" in op.attributes:
                _rename(op, target, {"k": op.attributes["k"]})


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


def _rename(op: ir.Operation, name: str, attributes: dict[str, ir.Attribute]) -> None:
    types = [result.type for result in op.results]
    made = ir.Operation.create(name, types, list(op.operands), attributes, loc=op.location, ip=ir.InsertionPoint(op))
    replace(op, list(made.results))


def _element(op: ir.Operation) -> str | None:
    """Return the element type of the first result, None if that is not an array of known shape."""
    type_ = op.results[0].type
    return str(type_.element_type) if isinstance(type_, ir.RankedTensorType) else None


def _operations(module: ir.Module) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name in (*KEPT_FUNCTIONS, TOP_K, "stablehlo.custom_call"):
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect, ir.WalkOrder.PRE_ORDER)
    return found
