"""Lowering rules for JAX functions that are one operation of xgpu, in place of the polynomials that JAX makes of them.

Nothing else is lowered differently, nor are these by any other lowering in the process.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from xgpu import ir
from xgpu.hlo.chlo import BESSEL_I0E
from xgpu.jax_internals import mlir, pjit

_TYPES = ("bfloat16", "float16", "float32", "float64")


def lowering_parameters() -> mlir.LoweringParameters:
    """Return what to pass to ``Traced.lower``: lgamma becomes CHLO's, and bessel_i0e a custom call of its name.

    Narrower floats are converted to f32 and back. JAX itself lowers digamma and bessel_i1e to CHLO. A function of
    ``xgpu.jit`` that is called becomes what it computes, not kernels of its own.
    """
    rules = (
        (lax.lgamma_p, _rule(lax.lgamma_p, _lgamma)),
        (lax.bessel_i0e_p, _rule(lax.bessel_i0e_p, _bessel_i0e)),
        (pjit.jit_p, pjit._pjit_lowering),
    )
    return mlir.LoweringParameters(override_lowering_rules=rules)  # type: ignore[arg-type]


def _rule(primitive: Any, build: Callable[[ir.Value], ir.Operation]) -> Callable[..., Any]:
    def through_f32(x: Any) -> Any:
        return lax.convert_element_type(primitive.bind(lax.convert_element_type(x, np.float32)), x.dtype)

    def lower(context: Any, x: ir.Value) -> Any:
        if context.avals_in[0].dtype.name in _TYPES:
            return build(x).results
        return mlir.lower_fun(through_f32, multiple_results=False)(context, x)

    return lower


def _lgamma(x: ir.Value) -> ir.Operation:
    return ir.Operation.create("chlo.lgamma", results=[x.type], operands=[x])


def _bessel_i0e(x: ir.Value) -> ir.Operation:
    attributes: dict[str, ir.Attribute] = {"call_target_name": ir.StringAttr.get(BESSEL_I0E)}
    return ir.Operation.create("stablehlo.custom_call", results=[x.type], operands=[x], attributes=attributes)
