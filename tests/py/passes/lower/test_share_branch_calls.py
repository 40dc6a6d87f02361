"""Calls that branches share: chains of functions longer than Python recurses, and functions that call themselves."""

import pytest

from xgpu import ir
from xgpu.passes.framework import manager
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.structure import walk

ENTRY = """
func.func @main(%t: tensor<8xf32>, %i: index, %j: index, %first: i1) -> f32 {
  %x = scf.if %first -> (f32) {
    %0 = "xgpu.pure_call"(%t, %i) {callee = @f0} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  } else {
    %0 = "xgpu.pure_call"(%t, %j) {callee = @f0} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  }
  return %x : f32
}
"""
LINK = """
func.func private @f{this}(%t: tensor<8xf32>, %i: index) -> f32 {{
  %0 = "xgpu.pure_call"(%t, %i) {{callee = @f{next}}} : (tensor<8xf32>, index) -> f32
  %1 = "xgpu.pure_call"(%t, %i) {{callee = @f{next}}} : (tensor<8xf32>, index) -> f32
  %2 = arith.addf %0, %1 : f32
  return %2 : f32
}}
"""
LEAF = """
func.func private @f{this}(%t: tensor<8xf32>, %i: index) -> f32 {{
  %0 = tensor.extract %t[%i] : tensor<8xf32>
  return %0 : f32
}}
"""


@pytest.mark.parametrize(
    ("functions", "calls"),
    [
        # A leaf has one operation; what calls it twice has three, and two such leaves; and so on, twice as many each.
        (LEAF.format(this=0), 2),
        (LINK.format(this=0, next=1) + LINK.format(this=1, next=2) + LEAF.format(this=2), 6),
        ("".join(LINK.format(this=i, next=i + 1) for i in range(3)) + LEAF.format(this=3), 7),
        ("".join(LINK.format(this=i, next=i + 1) for i in range(2000)) + LEAF.format(this=2000), 4001),
        (LINK.format(this=0, next=0), 4),
    ],
)
def test_functions_are_measured_with_their_callees(functions: str, calls: int) -> None:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(ENTRY + functions)
        manager.run(module, parse_pipeline("share-branch-calls"))
        assert len(walk(module.operation, "xgpu.pure_call")) == calls
