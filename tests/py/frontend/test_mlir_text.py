import re
import subprocess
from pathlib import Path

import pytest

from xgpu.errors import InvalidInput
from xgpu.frontend.mlir_text import parse_module
from xgpu.hlo.source_location import source_of

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {", r"^x\.mlir:1:7: expected operation name in quotes"),
        (
            "func.func @f() {\n  %0 = stablehlo.addd %a : f32\n}",
            r"^x\.mlir:2:8: custom op 'stablehlo\.addd' is unknown",
        ),
        (
            "func.func @f(%a: tensor<4xf32>) {\n  %0 = stablehlo.add %a, %b : tensor<4xf32>\n  return\n}",
            r"^x\.mlir:2:26: use of undeclared SSA value name",
        ),
        (
            "func.func private @f()\nfunc.func @g(%a: tensor<4xf32>) {\n  %0 = stablehlo.add %a, %b : tensor<4xf32>\n}",
            r"^x\.mlir:3:26: use of undeclared",
        ),
        (
            '%0 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<2xf32>',
            r"^x\.mlir:1:6: .*",
        ),
        (
            'func.func @f(%a: tensor<4xf32>) {\n%0= "stablehlo.reshape"(%a) : (tensor<4xf32>) -> tensor<5xf32> return}',
            r"^x\.mlir:2:5: number of output elements \(5\) doesn't match",
        ),
        ("func.func @f() {\n\0}", r"^x\.mlir:2: the text contains a null byte"),
        ("module {} \ud800", r"^x\.mlir: the text is not Unicode"),
    ],
)
def test_errors_have_their_place(text, message):
    with pytest.raises(InvalidInput, match=message):
        parse_module(text, "x.mlir")


@pytest.mark.parametrize(
    "text",
    [
        "module attributes {a.b = " + "[" * 100_000 + "]" * 100_000 + "} {}",
        "module attributes {a.b = " + "{a = " * 100_000 + "1" + "}" * 100_000 + "} {}",
        "module attributes {a.b = " + "tuple<" * 100_000 + "f32" + ">" * 100_000 + "} {}",
        "module {} loc(" + "callsite(" * 100_000 + '"a" at "b"' + ' at "c")' * 100_000 + ")",
        "module {\n" * 100_000 + "}" * 100_000,
        "module attributes {a.b = affine_map<(d0) -> (" + "d0 + " * 100_000 + "d0)>} {}",
    ],
    ids=["array", "dictionary", "tuple", "location", "region", "affine sum"],
)
def test_text_that_would_overflow_the_parsers_stack(text):
    with pytest.raises(
        InvalidInput, match=r"^x\.mlir:\d+(:\d+)?: (brackets nest deeper than 256|affine map longer than)"
    ):
        parse_module(text, "x.mlir")


def test_brackets_in_strings_comments_and_arrows_do_not_nest():
    text = f'module attributes {{a.b = "{"[" * 1000}", a.c = (i32) -> i32}} {{}} // {"(" * 1000}\n'
    assert "a.c" in str(parse_module(text, "x.mlir"))


@pytest.mark.parametrize(
    "text",
    [
        "func.func @f(%a: f32) -> f32 {\n  %0 = vector.from_elements %a : vector<2147483647xf32>\n return %a : f32 }",
        "func.func @f(%a: f32) -> f32 {\n  %0 = tensor.from_elements %a : tensor<4x536870912xf32>\n return %a : f32 }",
        "func.func @f(%a: f32) -> f32 {\n  %0 = vector.splat %a : vector<70000x[4]xf32>\n return %a : f32 }",
    ],
)
def test_vectors_for_which_the_parser_would_run_out_of_memory(text):
    with pytest.raises(InvalidInput, match=r"^x\.mlir:2:\d+: a vector of more than 65,536 elements"):
        parse_module(text, "x.mlir")


def test_vectors_in_comments_and_large_tensors_are_read():
    text = "// vector<2147483647xf32>\nfunc.func @f(%a: tensor<2147483647xf32>, %b: vector<65536xf32>) { return }"
    assert "tensor<2147483647xf32>" in str(parse_module(text, "x.mlir"))


@pytest.mark.parametrize("text", ["", "// nothing\n"])
def test_empty_text_is_an_empty_module(text):
    assert len(parse_module(text, "x.mlir").body.operations) == 0


def test_one_operation_is_put_into_a_module_and_keeps_its_place():
    module = parse_module("\nfunc.func private @f()", "x.mlir")
    assert str(source_of(module.body.operations[0])) == "x.mlir:2:1"


def test_operations_at_the_top_keep_their_places():
    module = parse_module("func.func private @f()\nfunc.func private @g()", "x.mlir")
    assert [str(source_of(op)) for op in module.body.operations] == ["x.mlir:1:1", "x.mlir:2:1"]


def test_a_module_keeps_its_name_and_attributes():
    text = str(parse_module('module @m attributes {a.b = "c"} { func.func private @f() }', "x.mlir"))
    assert re.search(r'module @m attributes \{a\.b = "c"\}', text)


def test_no_truncation_of_a_file_is_anything_but_an_error():
    text = (DATA / "calls.mlir").read_text()
    for end in range(len(text.partition("\n")[0]) + 1, len(text.rstrip()) - 1, 7):
        if text[:end].partition("\n")[2].strip():
            with pytest.raises(InvalidInput, match=r"^calls\.mlir:\d+:\d+: "):
                parse_module(text[:end], "calls.mlir")


_UPDATE = """func.func @f(%p: !llvm.ptr<1>, %v: f32) {{
  %0 = llvm.atomicrmw fadd %p, %v monotonic : !llvm.ptr<1>, {}
  return
}}"""
_VARIABLE = "llvm.mlir.global internal @g() {{addr_space = {}, alignment = 16 : i64}} : !llvm.array<8 x f32>"


@pytest.mark.parametrize("space", ["unit", '"shared"', "3", "3 : i64", "-3 : i32", "[3 : i32]"])
def test_address_spaces_that_would_crash_the_parser(space):
    with pytest.raises(InvalidInput, match=r"^x\.mlir:2:\d+: expected a number of type i32 as an address space"):
        parse_module("// addr_space = any\n" + _VARIABLE.format(space), "x.mlir")


def test_text_at_which_the_parser_may_crash_is_parsed_in_another_process():
    """It crashes at this type most of the time, and else says one thing or another."""
    with pytest.raises(InvalidInput, match=r"^x\.mlir(:2:\d+)?: .*(parser crashed|tuple<>)"):
        parse_module(_UPDATE.format("tuple<>"), "x.mlir")
    with pytest.raises(InvalidInput, match=r"^x\.mlir:1:\d+: .*undefined symbol alias id 'space'"):
        parse_module(_VARIABLE.format("#space"), "x.mlir")
    assert "addr_space = 3" in str(parse_module("#space = 3 : i32\n" + _VARIABLE.format("#space"), "x.mlir"))


def test_text_as_it_always_is_is_parsed_here(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("started a process"))
    assert "llvm.atomicrmw" in str(parse_module(_UPDATE.format("f32"), "x.mlir"))
    assert "addr_space = 3" in str(parse_module(_VARIABLE.format("3 : i32"), "x.mlir"))


def test_locations_as_attributes():
    with pytest.raises(InvalidInput, match=r"^x\.mlir:1:1: 'builtin\.module' attribute 'a\.b' is or holds"):
        parse_module("module attributes {a.b = [loc(unknown)]} { func.func private @f() }", "x.mlir")
    with pytest.raises(InvalidInput, match=r"^x\.mlir:2:1: 'func\.func' attribute 'a\.b' is or holds"):
        parse_module("func.func private @g()\nfunc.func private @f() attributes {a.b = loc(unknown)}", "x.mlir")


@pytest.mark.parametrize("link", ["#a{} = [#a{}]", "!a{} = tuple<!a{}>"])
def test_chains_of_aliases_nest_as_brackets_do(link):
    sign = link[0]
    start = f"{sign}a0 = {'1' if sign == '#' else 'i1'}\n"
    chain = start + "".join(link.format(i + 1, i) + "\n" for i in range(5000))
    with pytest.raises(InvalidInput, match=r"^x\.mlir:2001:1: a chain of more than 2,000 aliases"):
        parse_module(chain, "x.mlir")
    # Many that are no chain are what locations in JAX's text are.
    many = start + "".join(link.format(i + 1, 0) + "\n" for i in range(5000))
    assert len(parse_module(many, "x.mlir").body.operations) == 0


@pytest.mark.parametrize("number", ["0x7FC00000", "2147483647", "64"])
def test_numbers_of_dimensions_for_which_the_parser_would_run_out_of_memory(number):
    numbers = f"[b, f, {number}]x[o, i, {number}]->[b, f, {number}]"
    with pytest.raises(InvalidInput, match=r"^x\.mlir:2:22: a dimension's number beyond 63"):
        parse_module(f"\n#a = #stablehlo.conv<{numbers}>", "x.mlir")
