"""Entry layouts: arrays go in and out as they lie in memory, and the program means what it meant."""

import numpy as np
import pytest

import xgpu
from xgpu.frontend.hlo_text import from_hlo_text
from xgpu.frontend.mlir_text import parse_module
from xgpu.frontend.signature import normalize

HLO = """HloModule m
ENTRY e {
  a = f32[2,3,4]{0,2,1} parameter(0)
  b = f32[4]{0} parameter(1)
  c = f32[2,3,4]{1,0,2} broadcast(b), dimensions={2}
  d = f32[2,3,4]{1,0,2} add(a, c)
  ROOT r = (f32[2,3,4]{1,0,2}, f32[2,3,4]{2,1,0}) tuple(d, a)
}
"""


def test_buffers_lie_in_memory_as_the_layouts_say():
    program = xgpu.compile(HLO)
    assert [str(spec) for spec in program.arguments] == ["a: f32[3,4,2]", "b: f32[4]"]
    assert [spec.shape for spec in program.results] == [(4, 2, 3), (2, 3, 4)]
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    b = np.arange(4, dtype=np.float32) * 100
    buffer = np.ascontiguousarray(a.transpose(1, 2, 0))
    total, copy = program.run(buffer, b)
    np.testing.assert_array_equal(total, (a + b).transpose(2, 0, 1))
    np.testing.assert_array_equal(copy, a)
    for result, expected in zip((total, copy), program.reference(buffer, b), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("layout", ["{2,1,0}", "{2,0,1}", "{1,2,0}", "{0,1,2}"])
def test_every_order(layout):
    text = (
        f"HloModule m\nENTRY e {{\n  a = s32[2,3,4]{layout} parameter(0)\n  ROOT r = s32[2,3,4]{layout} negate(a)\n}}"
    )
    minor_to_major = [int(i) for i in layout[1:-1].split(",")]
    source = from_hlo_text(text)
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    buffer = np.ascontiguousarray(array.transpose(minor_to_major[::-1]))
    assert source.arguments[0].shape == buffer.shape
    (result,) = xgpu.compile(text).run(buffer)
    np.testing.assert_array_equal(result, -buffer)


def test_normalising_twice_transposes_once():
    attribute = "mhlo.xla_entry_computation_parameter_layouts = [dense<[0, 1]> : tensor<2xindex>]"
    function = "func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> { return %a : tensor<2x3xf32> }"
    text = f"module attributes {{{attribute}}} {{ {function} }}"
    module = parse_module(text, "t.mlir")
    normalize(module)
    once = str(module)
    assert "tensor<3x2xf32>) -> tensor<2x3xf32>" in once
    normalize(module)
    assert str(module) == once
