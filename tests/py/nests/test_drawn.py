"""Programs of loops drawn at random compute on the host what their statements say, with no race."""

import numpy as np
import pytest

import xgpu
from tests.py import effort
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse

from .drawn import draw, interpret

_SEEDS = effort.drawn(range(2000), effort.by_level(5, 25, 2000))


@pytest.mark.parametrize("seed", _SEEDS)
def test_drawn_programs(seed: int) -> None:
    function = parse(draw(seed), "drawn.te")
    program = xgpu.compile(str(build(function).module))
    inputs = program.random_inputs(seed)
    expected = interpret(function, inputs)
    for sanitize in (False, True):
        for output, wanted in zip(program.run(*inputs, sanitize=sanitize), expected, strict=True):
            np.testing.assert_array_equal(output, wanted, draw(seed))
