"""The table of operations: what is in it has a map, and scalar code if it is computed; else it is left to XLA."""

import pytest

import xgpu
from xgpu.hlo.operations import elementwise, implemented

_COMPLEX = "tensor<8xcomplex<f32>>"


def test_a_table_that_lacks_an_operation_is_not_imported():
    with pytest.raises(LookupError, match="tanh"):
        implemented({name: None for name in elementwise("real") if name != "stablehlo.tanh"}, elementwise("real"))
    with pytest.raises(LookupError, match="no_operation"):
        implemented(dict.fromkeys((*elementwise("complex"), "no_operation")), elementwise("complex"))


@pytest.mark.parametrize("name", ["stablehlo.maximum", "stablehlo.clamp", "stablehlo.atan2"])
def test_what_has_no_code_on_complex_numbers_is_left_to_xla(name):
    operands = "%0, %x, %0" if name == "stablehlo.clamp" else "%0, %x"
    types = ", ".join([_COMPLEX] * (operands.count(",") + 1))
    text = f"""func.func @main(%x: {_COMPLEX}) -> {_COMPLEX} {{
      %0 = stablehlo.add %x, %x : {_COMPLEX}
      %1 = "{name}"({operands}) : ({types}) -> {_COMPLEX}
      %2 = stablehlo.multiply %1, %1 : {_COMPLEX}
      return %2 : {_COMPLEX}
    }}"""
    compiled = xgpu.compile(text)
    assert len(compiled.kernels) == 2
    assert name in compiled.ir("fusions").partition("func.func @main")[2]


def test_what_nobody_computes_is_refused():
    text = f"""func.func @main(%x: {_COMPLEX}) -> {_COMPLEX} {{
      %0 = stablehlo.remainder %x, %x : {_COMPLEX}
      return %0 : {_COMPLEX}
    }}"""
    with pytest.raises(xgpu.Unsupported, match=r"2:12: .* there is no remainder of complex numbers"):
        xgpu.compile(text)


def test_a_reduction_by_what_has_no_code_is_left_to_xla():
    text = f"""func.func @main(%x: {_COMPLEX}, %start: tensor<complex<f32>>) -> tensor<complex<f32>> {{
      %0 = stablehlo.add %x, %x : {_COMPLEX}
      %1 = "stablehlo.reduce"(%0, %start) ({{
      ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
        %2 = stablehlo.maximum %a, %b : tensor<complex<f32>>
        stablehlo.return %2 : tensor<complex<f32>>
      }}) {{dimensions = array<i64: 0>}} : ({_COMPLEX}, tensor<complex<f32>>) -> tensor<complex<f32>>
      return %1 : tensor<complex<f32>>
    }}"""
    main = xgpu.compile(text).ir("fusions").partition("func.func @main")[2]
    assert "stablehlo.reduce" in main
    assert "call @" in main
