import math
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgpu.errors import Unsupported
from xgpu.frontend.mlir_text import parse_module
from xgpu.frontend.signature import normalize
from xgpu.frontend.stablehlo_text import from_stablehlo_text
from xgpu.hlo.layouts import is_row_major
from xgpu.runtime.reference import Reference


def op_names(text):
    module = parse_module(text, "t.mlir")
    normalize(module)
    return [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]


def unary(op, operand="tensor<4xf32>", result="tensor<4xf32>"):
    return f"func.func @main(%a: {operand}) -> {result} {{\n{op}\nreturn %0 : {result} }}"


def layout(minor_to_major):
    return f"dense<{list(minor_to_major)}> : tensor<{len(minor_to_major)}xindex>"


def in_memory(array, minor_to_major):
    """The elements in memory order."""
    return array.transpose(minor_to_major[::-1]).ravel()


def from_memory(elements, shape, minor_to_major):
    order = minor_to_major[::-1]
    physical = elements.reshape([shape[d] for d in order])
    return physical.transpose([order.index(d) for d in range(len(shape))])


@st.composite
def factorizations(draw, number):
    shape, rest = [], number
    while len(shape) < 3:
        shape.append(draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0])))
        rest //= shape[-1]
    return [*shape, rest]


@given(st.sampled_from([1, 6, 12, 24]), st.data())
def test_a_bitcast_reads_the_same_memory(count, data):
    source, result = data.draw(factorizations(count)), data.draw(factorizations(count))
    source_layout, result_layout = (data.draw(st.permutations(range(4))) for _ in range(2))
    types = ["tensor<" + "".join(f"{size}x" for size in shape) + "i32>" for shape in (source, result)]
    attributes = f"source_layout = {layout(source_layout)}, result_layout = {layout(result_layout)}"
    text = unary(f'%0 = "mhlo.bitcast"(%a) {{{attributes}}} : ({types[0]}) -> {types[1]}', *types)
    array = np.arange(prod(source), dtype=np.int32).reshape(source)
    (found,) = Reference(from_stablehlo_text(text).module)([array])
    np.testing.assert_array_equal(found, from_memory(in_memory(array, source_layout), result, result_layout))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_row_major_layouts(shape, data):
    minor_to_major = data.draw(st.permutations(range(len(shape))))
    array = np.arange(prod(shape)).reshape(shape)
    same_memory = bool(np.array_equal(in_memory(array, minor_to_major), array.ravel()))
    assert is_row_major(minor_to_major, shape) == same_memory


@pytest.mark.parametrize(
    ("source", "result", "attributes", "expected"),
    [
        ("64x128xf32", "128x64xf32", "", ["reshape"]),
        ("64x128xf32", "128x64xf32", "result_layout = dense<[0, 1]> : tensor<2xindex>", ["transpose"]),
        ("1x128xf32", "128x1xf32", "result_layout = dense<[0, 1]> : tensor<2xindex>", ["reshape"]),
        ("8xf32", "8xi32", "", ["bitcast_convert"]),
        ("8xf32", "8xf32", "", []),
    ],
)
def test_a_bitcast_takes_as_few_operations_as_it_can(source, result, attributes, expected):
    types = f"tensor<{source}>", f"tensor<{result}>"
    text = unary(f'%0 = "mhlo.bitcast"(%a) {{{attributes}}} : ({types[0]}) -> {types[1]}', *types)
    assert op_names(text) == [*(f"stablehlo.{name}" for name in expected), "func.return"]


@pytest.mark.parametrize(
    ("result", "attributes", "message"),
    [
        (
            "tensor<5xf32>",
            "",
            "t.mlir:2:6: mhlo.bitcast of type tensor<5xf32>: a bitcast of tensor<4xf32> changes the num",
        ),
        ("tensor<4xf16>", "", "changes the width of elements"),
        (
            "tensor<2x2xf32>",
            "result_layout = dense<[0, 0]> : tensor<2xindex>",
            "does not order the dimensions of shape",
        ),
        ("tensor<?xf32>", "", "a bitcast needs arrays of known shape, not tensor<?xf32>"),
    ],
)
def test_bitcasts_that_are_none(result, attributes, message):
    with pytest.raises(Unsupported) as caught:
        op_names(unary(f'%0 = "mhlo.bitcast"(%a) {{{attributes}}} : (tensor<4xf32>) -> {result}', result=result))
    assert message in str(caught.value)


def test_nested_fusions_are_unwrapped():
    text = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0:2 = "mhlo.fusion"(%x, %y) <{fusion_kind = #mhlo<fusion_kind kLoop>}> ({
      ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
        %1 = "mhlo.fusion"(%a) <{fusion_kind = #mhlo<fusion_kind kLoop>}> ({
        ^bb0(%c: tensor<4xf32>):
          %2 = stablehlo.abs %c : tensor<4xf32>
          mhlo.return %2 : tensor<4xf32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %3 = mhlo.copy %1 : tensor<4xf32>
        %4 = stablehlo.subtract %3, %b : tensor<4xf32>
        mhlo.return %4, %b : tensor<4xf32>, tensor<4xf32>
      }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32> }"""
    assert op_names(text) == ["stablehlo.abs", "stablehlo.subtract", "func.return"]
    x, y = np.float32([1, -2, 3, -4]), np.float32([5, 6, 7, 8])
    first, second = Reference(from_stablehlo_text(text).module)([x, y])
    np.testing.assert_array_equal(first, abs(x) - y)
    np.testing.assert_array_equal(second, y)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("acos", np.arccos),
        ("acosh", np.arccosh),
        ("asin", np.arcsin),
        ("asinh", np.arcsinh),
        ("atanh", np.arctanh),
        ("cosh", np.cosh),
        ("erf", np.vectorize(math.erf)),
        ("sinh", np.sinh),
    ],
)
def test_functions_that_only_mhlo_and_chlo_have(name, expected):
    text = unary(f"%0 = mhlo.{name} %a : tensor<4xf32>")
    assert op_names(text) == [f"chlo.{name}", "func.return"]
    x = np.float32([0.1, 0.3, 0.5, 0.9]) + np.float32(name == "acosh")
    np.testing.assert_allclose(Reference(from_stablehlo_text(text).module)([x])[0], expected(x), rtol=2e-6)


def test_shared_operations_are_legalized():
    assert op_names(unary("%0 = mhlo.add %a, %a : tensor<4xf32>")) == ["stablehlo.add", "func.return"]


def test_top_k():
    text = unary(
        "%0, %1 = mhlo.topk(%a, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)", result="tensor<2xf32>"
    )
    (found,) = Reference(from_stablehlo_text(text).module)([np.float32([3, 1, 4, 2])])
    np.testing.assert_array_equal(found, [4, 3])
    with pytest.raises(Unsupported, match="the k smallest elements are not supported"):
        op_names(text.replace("k = 2", "k = 2, largest = false"))


def test_an_operation_without_a_stablehlo_form_is_named():
    with pytest.raises(Unsupported, match=r"t\.mlir:2:\d+: .*mhlo\.stochastic_convert"):
        op_names(
            "func.func @main(%a: tensor<4xf32>, %b: tensor<4xui32>) -> tensor<4xi8> {\n"
            '%0 = "mhlo.stochastic_convert"(%a, %b) : (tensor<4xf32>, tensor<4xui32>) -> tensor<4xi8>\n'
            "return %0 : tensor<4xi8> }"
        )
