"""The pass `legalize-chlo`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.chlo import BESSEL_I0E, KEPT_FUNCTIONS, RAGGED, TOP_K
from xgpu.hlo.legalization import run_mlir_passes
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import replace_op, walk

_REAL = ("bf16", "f16", "f32", "f64")
_RANKED = (*_REAL, *(f"{sign}i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
"""Element types whose largest elements XLA finds."""


@dataclass(frozen=True)
class LegalizeChlo(Pass):
    """Converts CHLO, JAX's client dialect, to StableHLO, and composites to calls of their decompositions.

    Functions that kernels compute themselves stay on real numbers, and so do the largest elements, for which XLA has
    kernels, and products of rows in groups; custom calls of their names become them. Raises Unsupported for an
    operation that has no such form.
    Needs: constants of complex numbers split.

    ```mlir
    %0 = chlo.tan %x : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
    %1 = stablehlo.custom_call @chlo.erf(%y) : (tensor<4xf32>) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.tan %x : tensor<4xcomplex<f32>>
    %1 = chlo.erf %y : tensor<4xf32> -> tensor<4xf32>
    ```
    """

    NAME: ClassVar[str] = "legalize-chlo"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(
        ("chlo.*", "stablehlo.composite", "stablehlo.custom_call", BESSEL_I0E)
    )

    def apply(self, module: ir.Module) -> None:
        """Rewrite all operations at once."""
        _hide(module)
        run_mlir_passes(module, "func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo)")
        _show(module)


def _hide(module: ir.Module) -> None:
    """Turn the functions that are kept into custom calls, which the pass leaves alone."""
    for op in _operations(module):
        if _stays(op):
            name = ir.StringAttr.get(op.name, module.context)
            _rename(op, "stablehlo.custom_call", {"call_target_name": name, **_attributes(op)})


def _stays(op: ir.Operation) -> bool:
    """Whether an operation is not written as StableHLO."""
    if op.name in KEPT_FUNCTIONS:
        return _element(op) in _REAL
    return op.name == RAGGED or (op.name == TOP_K and _element(op) in _RANKED)


def _show(module: ir.Module) -> None:
    for op in _operations(module):
        if op.name == "stablehlo.custom_call":
            target = ir.StringAttr(op.attributes["call_target_name"]).value
            if target in KEPT_FUNCTIONS:
                _rename(op, target, {})
            elif target == TOP_K and "k" in op.attributes:
                _rename(op, target, {"k": op.attributes["k"]})
            elif target == RAGGED:
                _rename(
                    op, target, {name: each for name, each in _attributes(op).items() if name != "call_target_name"}
                )


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


def _rename(op: ir.Operation, name: str, attributes: dict[str, ir.Attribute]) -> None:
    types = [result.type for result in op.results]
    made = ir.Operation.create(name, types, list(op.operands), attributes, loc=op.location, ip=ir.InsertionPoint(op))
    replace_op(op, list(made.results))


def _element(op: ir.Operation) -> str | None:
    """Return the element type of the first result, None if that is not an array of known shape."""
    type_ = op.results[0].type
    return str(type_.element_type) if isinstance(type_, ir.RankedTensorType) else None


def _operations(module: ir.Module) -> list[ir.Operation]:
    return walk(module.operation, *KEPT_FUNCTIONS, TOP_K, RAGGED, "stablehlo.custom_call", post_order=False)
