"""Arithmetic on floats of 8 and 4 bits becomes arithmetic in wider types, and nothing else changes."""

import pytest

from xgpu import ir
from xgpu.passes.framework import manager
from xgpu.passes.normalize.widen_narrow_floats import WidenNarrowFloats


def widened(text: str) -> tuple[bool, str]:
    with ir.make_context():
        module = ir.Module.parse(text)
        given = str(module)
        manager.run(module, [WidenNarrowFloats()])
        return str(module) != given, str(module)


def names(text: str) -> list[str]:
    words = [line.split(" = ")[-1].split("(")[0].strip().split(" ")[0] for line in text.splitlines()]
    return [word.strip('"').removeprefix("stablehlo.") for word in words if "stablehlo." in word]


def test_an_operation_between_conversions() -> None:
    changed, text = widened("""
      func.func @main(%x: tensor<4xf8E4M3FN>, %y: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {
        %0 = stablehlo.add %x, %y : tensor<4xf8E4M3FN>
        return %0 : tensor<4xf8E4M3FN>
      }""")
    assert changed
    assert names(text) == ["convert", "convert", "add", "convert"]
    assert "stablehlo.add %0, %1 : tensor<4xf16>" in text


def test_powers_of_two_need_the_range_of_f32() -> None:
    _, text = widened("""
      func.func @main(%x: tensor<4xf8E8M0FNU>) -> tensor<4xi1> {
        %0 = stablehlo.compare LT, %x, %x : (tensor<4xf8E8M0FNU>, tensor<4xf8E8M0FNU>) -> tensor<4xi1>
        return %0 : tensor<4xi1>
      }""")
    assert "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>" in text


@pytest.mark.parametrize(
    "operation",
    [
        "stablehlo.transpose %x, dims = [1, 0] : (tensor<2x2xf8E5M2>) -> tensor<2x2xf8E5M2>",
        "stablehlo.select %c, %x, %x : (tensor<i1>, tensor<2x2xf8E5M2>, tensor<2x2xf8E5M2>) -> tensor<2x2xf8E5M2>",
        "stablehlo.convert %x : (tensor<2x2xf8E5M2>) -> tensor<2x2xf8E4M3FN>",
        "stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]"
        " : (tensor<2x2xf8E5M2>, tensor<2x2xf8E5M2>) -> tensor<2x2xf8E5M2>",
    ],
    ids=lambda text: text.split(" ")[0],
)
def test_what_computes_nothing_stays(operation: str) -> None:
    changed, text = widened(f"""
      func.func @main(%x: tensor<2x2xf8E5M2>, %c: tensor<i1>) {{
        %0 = {operation}
        return
      }}""")
    assert not changed
    assert "f16" not in text


def test_other_types_stay() -> None:
    changed, _ = widened("""
      func.func @main(%x: tensor<4xbf16>, %y: tensor<4xi4>) -> (tensor<4xbf16>, tensor<4xi4>) {
        %0 = stablehlo.add %x, %x : tensor<4xbf16>
        %1 = stablehlo.add %y, %y : tensor<4xi4>
        return %0, %1 : tensor<4xbf16>, tensor<4xi4>
      }""")
    assert not changed


def test_a_reduction_as_a_whole() -> None:
    _, text = widened("""
      func.func @main(%x: tensor<4xf8E5M2>, %i: tensor<4xi32>, %a: tensor<f8E5M2>, %b: tensor<i32>)
          -> (tensor<f8E5M2>, tensor<i32>) {
        %0:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [0]
            : (tensor<4xf8E5M2>, tensor<4xi32>, tensor<f8E5M2>, tensor<i32>) -> (tensor<f8E5M2>, tensor<i32>)
          reducer(%p: tensor<f8E5M2>, %q: tensor<f8E5M2>) (%k: tensor<i32>, %l: tensor<i32>) {
            %c = stablehlo.constant dense<2.0> : tensor<f8E5M2>
            %m = stablehlo.multiply %q, %c : tensor<f8E5M2>
            %1 = stablehlo.compare GT, %p, %m : (tensor<f8E5M2>, tensor<f8E5M2>) -> tensor<i1>
            %2 = stablehlo.select %1, %p, %m : tensor<i1>, tensor<f8E5M2>
            %3 = stablehlo.select %1, %k, %l : tensor<i1>, tensor<i32>
            stablehlo.return %2, %3 : tensor<f8E5M2>, tensor<i32>
        }
        return %0#0, %0#1 : tensor<f8E5M2>, tensor<i32>
      }""")
    assert text.count("stablehlo.convert") == 4
    assert "(tensor<4xf16>, tensor<4xi32>, tensor<f16>, tensor<i32>) -> (tensor<f16>, tensor<i32>)" in text
    assert "stablehlo.return %" in text and ": tensor<f16>, tensor<i32>" in text


def test_a_region_that_rounds_is_widened_step_by_step() -> None:
    _, text = widened("""
      func.func @main(%x: tensor<4xf8E5M2>, %a: tensor<f8E5M2>) -> tensor<f8E5M2> {
        %0 = stablehlo.reduce(%x init: %a) across dimensions = [0]
            : (tensor<4xf8E5M2>, tensor<f8E5M2>) -> tensor<f8E5M2>
          reducer(%p: tensor<f8E5M2>, %q: tensor<f8E5M2>) {
            %1 = stablehlo.add %p, %q : tensor<f8E5M2>
            %2 = stablehlo.convert %1 : (tensor<f8E5M2>) -> tensor<f8E4M3FN>
            %3 = stablehlo.convert %2 : (tensor<f8E4M3FN>) -> tensor<f8E5M2>
            stablehlo.return %3 : tensor<f8E5M2>
        }
        return %0 : tensor<f8E5M2>
      }""")
    assert "(tensor<4xf8E5M2>, tensor<f8E5M2>) -> tensor<f8E5M2>" in text
    assert "stablehlo.add" in text and ": tensor<f16>" in text
