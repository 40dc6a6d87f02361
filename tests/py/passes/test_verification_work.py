"""The work of verification, which runs after every pass and so must be cheap."""

import pytest

from xgpu import ir
from xgpu.dialects import attributes, base
from xgpu.dialects.verify import problems

MODULE = """
func.func @f(%t: tensor<8xf32>, %i: index) -> f32 {
  %j = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 + 1), d0 in [0, 6]>} : (index) -> index
  %x = "xgpu.pure_call"(%t, %j) {callee = @g} : (tensor<8xf32>, index) -> f32
  return %x : f32
}
func.func private @g(%t: tensor<8xf32>, %i: index) -> f32 {
  %x = tensor.extract %t[%i] : tensor<8xf32>
  return %x : f32
}
"""


def _fail(*arguments):
    pytest.fail("looked at what costs much")


def _problems():
    return problems(ir.Module.parse(MODULE, ir.make_context()))


def test_operands_of_any_type_are_not_asked_for_it(monkeypatch):
    monkeypatch.setitem(vars(base.ANY), "accepts", _fail)
    assert not _problems()


def test_maps_are_not_printed(monkeypatch):
    monkeypatch.setattr(attributes, "str", _fail, raising=False)
    assert not _problems()
