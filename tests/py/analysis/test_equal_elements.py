"""The number that all elements of a value are, of constants alone."""

import re

import jax
import pytest

from tests.py.planned import TARGET, planned
from xgpu import ir
from xgpu.analysis.constants.equal_elements import EqualElements
from xgpu.options import Options

_BODY = """
    %a = stablehlo.constant dense<3.0> : tensor<f32>
    %b = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %big = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<99999x99999xf32>
    %sum = stablehlo.add %big, %big : tensor<99999x99999xf32>
    %is = stablehlo.compare EQ, %sum, %big, FLOAT
      : (tensor<99999x99999xf32>, tensor<99999x99999xf32>) -> tensor<99999x99999xi1>
    %two = stablehlo.slice %b [1:2] : (tensor<2xf32>) -> tensor<1xf32>
    %root = stablehlo.sqrt %a : tensor<f32>
    %given = stablehlo.add %x, %a : tensor<f32>
    %zero = stablehlo.subtract %a, %a : tensor<f32>
    %nan = stablehlo.divide %zero, %zero : tensor<f32>
    return
"""


_NAMES = re.findall(r"%(\w+) =", _BODY)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sum", 6.0), ("is", False), ("two", None), ("root", None), ("given", None), ("nan", None), ("big", 3.0)],
)
def test_number_of_all_elements(name: str, expected: float | None) -> None:
    """None for one of several numbers, and for what not every machine computes to the last bit."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @main(%x: tensor<f32>) {{ {_BODY} }}")
        operations = [view.operation for view in module.body.operations[0].operation.regions[0].blocks[0].operations]
        value = operations[_NAMES.index(name)].results[0]
        assert EqualElements().number(value) == expected


def test_loop_that_no_condition_selects_is_not_run() -> None:
    """As of the two ways to draw numbers of Poisson's distribution, which its rate chooses between."""

    def draw(key: jax.Array) -> jax.Array:
        return jax.random.poisson(jax.random.wrap_key_data(key), 3.0, (65,))

    program = planned(draw, ["u32[2]"], TARGET, Options())
    assert program.ir("prepared").count("stablehlo.while") == 1
