import pytest

from xgpu.errors import SourceLocation
from xgpu.frontend.mlir_text import parse_module
from xgpu.hlo import source_location
from xgpu.hlo.source_location import name_of, source_of, unsupported


def location(text):
    return parse_module(f"func.func private @f() loc({text})", "t.mlir").body.operations[0].location


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unknown", None),
        ('"name"', None),
        ('"a.py":3:4', SourceLocation("a.py", 3, 4)),
        # Under a name the location is JAX's, which counts columns from 0.
        ('"add"("a.py":3:4)', SourceLocation("a.py", 3, 5)),
        ('callsite("f"("in.py":1:2) at "g"("out.py":8:9))', SourceLocation("in.py", 1, 3)),
        ('callsite("no_frame" at "g"("out.py":8:9))', SourceLocation("out.py", 8, 10)),
        ('fused["op", "a.py":10:0]', SourceLocation("a.py", 10, 0)),
        ('fused["op", callsite(unknown at "a.py":10:7)]', SourceLocation("a.py", 10, 7)),
        ('"a.py":0:0', None),
        (f'callsite("{source_location.__file__}":5:1 at "user.py":2:1)', SourceLocation("user.py", 2, 1)),
    ],
)
def test_the_innermost_frame_of_the_user(text, expected):
    assert source_of(location(text)) == expected


def test_a_location_nested_as_deep_as_text_may_be():
    text = "callsite(" * 200 + '"a" at "b.py":1:1)' + ' at "c.py":2:2)' * 199
    assert source_of(location(text)) == SourceLocation("b.py", 1, 1)


def first_op(text):
    module = parse_module(text, "t.mlir")
    return module, module.body.operations[0].regions[0].blocks[0].operations[0]


def test_unsupported_names_the_operation_its_type_and_its_place():
    _module, op = first_op("func.func @f(%a: tensor<2xf32>) {\n  %0 = stablehlo.abs %a : tensor<2xf32>\n  return\n}")
    assert str(unsupported(op, "no reason")) == "t.mlir:2:8: stablehlo.abs of type tensor<2xf32>: no reason"


def test_unsupported_falls_back_to_the_instruction_name():
    _module, op = first_op(
        'func.func @f(%a: tensor<2xf32>) {\n  %0 = stablehlo.abs %a : tensor<2xf32> loc("abs.1")\n  return\n}'
    )
    assert str(unsupported(op, "no reason")) == "stablehlo.abs ('abs.1') of type tensor<2xf32>: no reason"
    assert name_of(op) == "abs.1"
