from pathlib import Path

import numpy as np
import pytest

from xgpu.errors import InvalidInput, Unsupported
from xgpu.frontend.mlir_text import parse_module
from xgpu.frontend.signature import normalize
from xgpu.frontend.stablehlo_text import from_stablehlo_text
from xgpu.runtime.reference import Reference

DATA = Path(__file__).parents[3] / "data"
TYPE = "tensor<4xf32>"


def normalized(text):
    module = parse_module(text, "t.mlir")
    normalize(module)
    assert module.operation.verify()
    return module


def op_names(module):
    (main,) = module.body.operations
    assert main.name.value == "main"
    return [op.operation.name for op in main.regions[0].blocks[0].operations]


def main(body, result=TYPE, arguments=f"%a: {TYPE}"):
    return f"func.func @main({arguments}) -> {result} {{\n{body}\n}}"


def test_calls_composites_chlo_and_wrappers_are_gone():
    module = normalized((DATA / "calls.mlir").read_text())
    names = ["add", "optimization_barrier", "multiply", "add"]
    assert op_names(module) == [*(f"stablehlo.{name}" for name in names), "func.return"]
    assert "sharding" not in str(module)
    assert "num_partitions" not in str(module)
    source = from_stablehlo_text((DATA / "calls.mlir").read_text())
    x, y = np.random.default_rng(0).standard_normal((2, 8, 4), dtype=np.float32)
    np.testing.assert_allclose(Reference(source.module)([x, y])[0], (2 * x) ** 2 + y, rtol=1e-6)


def test_normalising_twice_changes_nothing():
    module = normalized((DATA / "calls.mlir").read_text())
    text = str(module)
    normalize(module)
    assert str(module) == text


def test_the_only_public_function_becomes_main():
    text = f"func.func @f(%a: {TYPE}) -> {TYPE} {{ %0 = call @g(%a) : ({TYPE}) -> {TYPE} return %0 : {TYPE} }}"
    callee = f"func.func private @g(%a: {TYPE}) -> {TYPE} {{ return %a : {TYPE} }}"
    assert op_names(normalized(text + "\n" + callee)) == ["func.return"]


def test_a_private_main_is_the_entry():
    assert op_names(normalized(f"func.func private @main(%a: {TYPE}) -> {TYPE} {{ return %a : {TYPE} }}"))


def test_tuples_made_and_taken_apart_are_gone():
    pair = f"tuple<{TYPE}, {TYPE}>"
    body = f"""%0 = stablehlo.abs %a : {TYPE}
      %t = stablehlo.tuple %a, %0 : {pair}
      %1 = stablehlo.get_tuple_element %t[1] : ({pair}) -> {TYPE}
      %2 = stablehlo.get_tuple_element %t[0] : ({pair}) -> {TYPE}
      %3 = stablehlo.add %1, %2 : {TYPE}
      return %3 : {TYPE}"""
    assert op_names(normalized(main(body))) == ["stablehlo.abs", "stablehlo.add", "func.return"]


def test_custom_calls_return_the_elements_of_tuples():
    nested, whole = f"tuple<{TYPE}, tensor<i32>>", f"tuple<{TYPE}, tuple<{TYPE}, tensor<i32>>>"
    alias = "<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>"
    attributes = f"{{output_operand_aliases = [#stablehlo.output_operand_alias{alias}]}}"
    body = f"""%t = stablehlo.custom_call @f(%a) {attributes} : ({TYPE}) -> {whole}
      %unused = stablehlo.custom_call @g(%a) {{has_side_effect = true}} : ({TYPE}) -> {nested}
      %0 = stablehlo.get_tuple_element %t[0] : ({whole}) -> {TYPE}
      %1 = stablehlo.get_tuple_element %t[1] : ({whole}) -> {nested}
      %2 = stablehlo.get_tuple_element %1[0] : ({nested}) -> {TYPE}
      %3 = stablehlo.add %0, %2 : {TYPE}
      return %3 : {TYPE}"""
    module = normalized(main(body))
    assert op_names(module) == ["stablehlo.custom_call", "stablehlo.custom_call", "stablehlo.add", "func.return"]
    text = str(module)
    assert f"-> ({TYPE}, {TYPE}, tensor<i32>)" in text
    assert f"-> ({TYPE}, tensor<i32>)" in text
    assert f"stablehlo.add %0#0, %0#1 : {TYPE}" in text
    assert "output_tuple_indices = [0]" in text


def test_tuples_nobody_takes_apart_are_gone_and_aliases_are_flat():
    whole = f"tuple<tuple<{TYPE}, tensor<i32>>, {TYPE}>"
    alias = "<output_tuple_indices = [0, 0], operand_index = 0, operand_tuple_indices = []>"
    attributes = f"{{output_operand_aliases = [#stablehlo.output_operand_alias{alias}]}}"
    body = f"""%t = stablehlo.custom_call @f(%a) {attributes} : ({TYPE}) -> {whole}
      %0 = stablehlo.get_tuple_element %t[1] : ({whole}) -> {TYPE}
      return %0 : {TYPE}"""
    text = str(normalized(main(body)))
    assert "stablehlo.tuple" not in text
    assert "output_tuple_indices = [0]" in text
    alias = "<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>"
    attributes = f"{{output_operand_aliases = [#stablehlo.output_operand_alias{alias}]}}"
    body = f"""%t = stablehlo.custom_call @f(%a) {attributes} : ({TYPE}) -> tuple<{TYPE}>
      %0 = stablehlo.get_tuple_element %t[0] : (tuple<{TYPE}>) -> {TYPE}
      return %0 : {TYPE}"""
    assert "output_tuple_indices = []" in str(normalized(main(body)))


@pytest.mark.parametrize("path", ["", "1", "0, 1, 0", "7"])
def test_aliases_of_what_is_no_array_are_refused_or_invalid(path):
    whole = f"tuple<{TYPE}, tuple<{TYPE}, {TYPE}>>"
    alias = f"<output_tuple_indices = [{path}], operand_index = 0, operand_tuple_indices = []>"
    attributes = f"{{output_operand_aliases = [#stablehlo.output_operand_alias{alias}]}}"
    body = f"""%t = stablehlo.custom_call @f(%a) {attributes} : ({TYPE}) -> {whole}
      %0 = stablehlo.get_tuple_element %t[0] : ({whole}) -> {TYPE}
      return %0 : {TYPE}"""
    with pytest.raises(InvalidInput):
        normalized(main(body))


def test_shardings_of_tuples_are_gone():
    pair = f"tuple<{TYPE}, {TYPE}>"
    body = f"""%t = stablehlo.tuple %a, %a : {pair}
      %o = stablehlo.custom_call @Sharding(%t) : ({pair}) -> {pair}
      %0 = stablehlo.get_tuple_element %o[1] : ({pair}) -> {TYPE}
      return %0 : {TYPE}"""
    assert op_names(normalized(main(body))) == ["func.return"]


def test_custom_calls_stay():
    body = f"%0 = stablehlo.custom_call @f(%a) {{mhlo.backend_config = {{x = 1 : i32}}}} : ({TYPE}) -> {TYPE}"
    assert "mhlo.backend_config = {x = 1 : i32}" in str(normalized(main(f"{body} return %0 : {TYPE}")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a function @main or exactly one public function; the public ones are: none"),
        (
            f"func.func @f(%a: {TYPE}) {{ return }} func.func @g(%a: {TYPE}) {{ return }}",
            "the public ones are: @f, @g",
        ),
        ("func.func private @main()", "t.mlir:1:1: the entry function @main has no body"),
    ],
)
def test_modules_without_an_entry(text, message):
    with pytest.raises(InvalidInput) as caught:
        normalized(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            main("return %a : tensor<?xf32>", "tensor<?xf32>", "%z: tensor<f32>, %a: tensor<?xf32>"),
            't.mlir:1:1: argument number 1 of "main": the shape of tensor<?xf32> is dynamic',
        ),
        (
            main("%0 = arith.addf %a, %a : tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
            "t.mlir:2:6: arith.addf of type tensor<4xf32>: not a StableHLO operation",
        ),
        (
            main('%0 = "foo.bar"(%a) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>'),
            "t.mlir:2:6: foo.bar of type tensor<4xf32>: not a StableHLO operation",
        ),
        (
            main("%0 = stablehlo.create_token : !stablehlo.token\nreturn %a : tensor<4xf32>"),
            "t.mlir:2:6: stablehlo.after_all of type !stablehlo.token: tokens, which order side effects",
        ),
        (main("cf.br ^bb1\n^bb1:\nreturn %a : tensor<4xf32>"), "t.mlir:1:1: func.func: control flow"),
        (
            main("return %a : tensor<4xi7>", "tensor<4xi7>", "%a: tensor<4xi7>"),
            "element type 'i7' is not supported",
        ),
        (
            main("return %a : memref<4xf32>", "memref<4xf32>", "%a: memref<4xf32>"),
            'argument number 0 of "main": a value of type memref<4xf32> is not supported, only arrays',
        ),
        (
            main("return %a : tensor<99999999999x99999999999xf32>", *["tensor<99999999999x99999999999xf32>"] * 1,
                 "%a: tensor<99999999999x99999999999xf32>"),
            "has more than 281474976710656 elements",
        ),
        (
            main("%0 = stablehlo.get_tuple_element %a[0] : (tuple<tensor<4xf32>>) -> tensor<4xf32>\n"
                 "return %0 : tensor<4xf32>", arguments="%a: tuple<tensor<4xf32>>"),
            "t.mlir:2:6: stablehlo.get_tuple_element of type tensor<4xf32>: tuples are supported only where",
        ),
        (
            f"%0 = stablehlo.constant dense<1.0> : tensor<f32>\n{main('return %a : tensor<4xf32>')}",
            "stablehlo.constant of type tensor<f32>: only functions are supported at the top of a module",
        ),
        (
            main("%0 = call @main(%a) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
            "function @main calls itself, directly or through others; recursion is not supported",
        ),
        (
            "func.func private @f(tensor<4xf32>) -> tensor<4xf32>\n"
            + main("%0 = call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
            "function @f is called but has no body",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_compiled(text, message):
    with pytest.raises(Unsupported) as caught:
        normalized(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("layout", "array", "message"),
    [
        ("dense<[0, 1]> : tensor<2xindex>", "tensor<2x3xf32>", None),
        ("dense<[1, 0]> : tensor<2xindex>", "tensor<2x3xf32>", None),
        ("dense<[0, 1]> : tensor<2xindex>", "tensor<1x3xf32>", None),
        ("dense<[0, 1]> : tensor<2xindex>", "tensor<0x3xf32>", None),
        ("dense<[0, 0]> : tensor<2xindex>", "tensor<2x3xf32>", "does not order its dimensions"),
        (
            "dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>",
            "tensor<2x3xf32>",
            "does not give one layout for",
        ),
        ("3", "tensor<2x3xf32>", "unknown kind of layout 3"),
    ],
)
def test_entry_layouts(layout, array, message):
    attribute = f"mhlo.xla_entry_computation_parameter_layouts = [{layout}]"
    text = f"module attributes {{{attribute}}} {{ func.func @main(%a: {array}) {{ return }} }}"
    if message is None:
        normalized(text)
        return
    with pytest.raises(InvalidInput) as caught:
        normalized(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "given", ["window_reversal = array<i1>", "window_strides = array<i64>", "padding = dense<0> : tensor<0x2xi64>"]
)
def test_lists_of_windows_that_are_empty_mean_the_defaults(given):
    numbers = "dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>"
    groups = "feature_group_count = 1 : i64, batch_group_count = 1 : i64"
    types = "(tensor<2x6x9xf32>, tensor<4x6x3xf32>) -> tensor<2x4x7xf32>"
    body = f'%0 = "stablehlo.convolution"(%x, %k) <{{{numbers}, {groups}, {given}}}> : {types}\n'
    arguments, result = "%x: tensor<2x6x9xf32>, %k: tensor<4x6x3xf32>", "tensor<2x4x7xf32>"
    module = normalized(main(f"{body}return %0 : {result}", result, arguments))
    assert given.partition(" ")[0] not in str(module)


_WIDER = """%zero = stablehlo.constant dense<0.0> : tensor<f64>
%0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf32>, tensor<f64>) -> tensor<f32>
return %0 : tensor<f32>"""


def test_accumulators_of_another_type_are_not_supported():
    with pytest.raises(Unsupported, match=r"stablehlo\.reduce of type .*: it combines .* different types, f32 and f64"):
        normalized(main(_WIDER, "tensor<f32>"))
