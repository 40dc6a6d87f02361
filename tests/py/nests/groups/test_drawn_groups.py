"""Programs drawn at random, in which groups of threads do several things, compute what their statements say."""

import numpy as np
import pytest

import xgpu
from tests.py import effort
from tests.py.nests.drawn import interpret
from tests.py.nests.groups.drawn_groups import draw_groups
from tests.py.nests.te import compiled
from xgpu.errors import KernelFault
from xgpu.loop_language.load import print_loops
from xgpu.loop_language.parser import parse

_SEEDS = effort.drawn(range(2000), effort.by_level(5, 25, 2000))
_BARRIER = '"xgpu.barrier"'


@pytest.mark.parametrize("seed", _SEEDS)
def test_drawn_programs(seed: int) -> None:
    text = draw_groups(seed)
    program = compiled(text)
    inputs = program.random_inputs(seed)
    expected = interpret(parse(text, "drawn.te"), inputs)
    for sanitize in (False, True):
        for output, wanted in zip(program.run(*inputs, sanitize=sanitize), expected, strict=True):
            np.testing.assert_array_equal(output, wanted, text)


@pytest.mark.parametrize("seed", effort.drawn(_SEEDS, effort.by_level(1, 3, 50)))
def test_each_barrier_is_needed(seed: int) -> None:
    program = compiled(draw_groups(seed))
    inputs = program.random_inputs(seed)
    lines = program.ir("mapped").splitlines()
    places = [number for number, line in enumerate(lines) if _BARRIER in line]
    for place in effort.drawn(places, effort.by_level(2, 4, len(places))):
        mutated = xgpu.compile("\n".join([*lines[:place], *lines[place + 1 :]]))
        with pytest.raises(KernelFault, match="no barrier between"):
            mutated.run(*inputs, sanitize=True)


@pytest.mark.parametrize("seed", effort.drawn(_SEEDS, effort.by_level(2, 5, 200)))
def test_what_was_decided_is_text_again(seed: int) -> None:
    program = compiled(draw_groups(seed))
    again = compiled(print_loops(program.modules["mapped"]))
    inputs = program.random_inputs(seed)
    for output, wanted in zip(again.run(*inputs, sanitize=True), program.run(*inputs), strict=True):
        np.testing.assert_array_equal(output, wanted)
