"""Which functions of CHLO stay what they are, and for which types."""

import numpy as np
import pytest

from xgpu import ir
from xgpu.frontend import from_stablehlo_text
from xgpu.hlo.chlo import KEPT_FUNCTIONS
from xgpu.runtime.reference import Reference


def op_names(body: str, element: str) -> list[str]:
    type_ = f"tensor<4x{element}>"
    text = f"func.func @main(%a: {type_}) -> {type_} {{\n{body.replace('T', type_)}\n}}"
    module: ir.Module = from_stablehlo_text(text).module
    (main,) = module.body.operations
    return [op.operation.name for op in main.regions[0].blocks[0].operations]


@pytest.mark.parametrize("element", ["bf16", "f16", "f32", "f64"])
@pytest.mark.parametrize("name", KEPT_FUNCTIONS)
def test_functions_of_real_numbers_stay(name: str, element: str) -> None:
    form = '"{}"(%a) : (T) -> T' if name.startswith("xgpu.") else "{} %a : T -> T"
    assert op_names(f"%0 = {form.format(name)}\nreturn %0 : T", element) == [name, "func.return"]


def test_custom_calls_of_their_names_become_them() -> None:
    body = """%0 = stablehlo.custom_call @xgpu.bessel_i0e(%a) : (T) -> T
      return %0 : T"""
    assert op_names(body, "f32") == ["xgpu.bessel_i0e", "func.return"]


@pytest.mark.parametrize("element", ["complex<f32>", "f8E4M3FN"])
def test_functions_of_other_numbers_are_expanded(element: str) -> None:
    names = op_names("%0 = chlo.sinh %a : T -> T\nreturn %0 : T", element)
    assert "stablehlo.exponential" in names or "stablehlo.exponential_minus_one" in names
    assert not any(name.startswith("chlo.") for name in names)


def test_other_functions_are_expanded_beside_them() -> None:
    names = op_names("%0 = chlo.zeta %a, %a : T, T -> T\n%1 = chlo.erf %0 : T -> T\nreturn %1 : T", "f32")
    assert names[-2:] == ["chlo.erf", "func.return"]
    assert {name.partition(".")[0] for name in names[:-2]} == {"stablehlo"}


def test_in_a_function_that_is_called() -> None:
    text = """
      func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
        %0 = call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
      func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
        %0 = chlo.erf_inv %a : tensor<4xf32> -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }"""
    source = from_stablehlo_text(text)
    assert "chlo.erf_inv" in str(source.module)
    # XLA, the reference, takes them as JAX gives them.
    np.testing.assert_allclose(Reference(source.module)([np.zeros(4, np.float32)])[0], 0)
