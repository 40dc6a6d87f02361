"""The maps of kernels of several parts: each element of an output is written once, by blocks of its part alone."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.emit.families.parts import PartsEmitter
from xgpu.indexing.access import shape_of
from xgpu.options import Options


def parts_of(function: Callable[..., Any], *specs: str, options: Options | None = None) -> PartsEmitter:
    """Return the emitter of the one kernel of a function."""
    compiled = xgpu.compile(function, *specs, options=options or Options())
    assert len(compiled.kernels) == 1
    emitter = emitter_of(compiled)
    assert isinstance(emitter, PartsEmitter)
    return emitter


def _doubled(*arrays: Any) -> list[Any]:
    return [x + x for x in arrays]


def _mixed(x: Any, y: Any, z: Any, w: Any) -> Any:
    return x.sum(1), (y * 2).max(0), jax.nn.softmax(z), jnp.sin(w), (w * w).sum(1), y.sum(0) + 1


CASES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "few elements": (_doubled, ("f32[64]", "f32[65]", "f32[]", "f32[1,1]")),
    "many elements": (_doubled, ("f32[1023,1025]", "bf16[31]", "s8[70001]", "f64[7,1,13]")),
    "packed elements": (_doubled, ("s4[999]", "u2[67,3]", "f32[33]", "f64[5,7]")),
    "more of one shape than a part has": (_doubled, (*["f32[129]"] * 20, "f32[3]")),
    "of several families": (_mixed, ("f32[9,100]", "f32[300,17]", "f32[5,2000]", "f32[70,33]")),
    "rows of odd lengths": (
        lambda *arrays: [x.sum(1) for x in arrays],
        ("f32[33,129]", "bf16[1,5000]", "f64[700,9]", "f32[5,1025]"),
    ),
}


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("case", CASES)
def test_every_element_is_written_once(case: str, limit: int | None) -> None:
    function, specs = CASES[case]
    emitter = parts_of(function, *specs, options=Options(max_elements_per_thread=limit))
    for number, value in enumerate(emitter.fusion.results):
        shape = shape_of(value)
        map_ = emitter.thread_to_output(number)
        decided = map_.is_bijection(shape)
        assert map_.coverage(shape).is_exact if decided is None else decided


@pytest.mark.parametrize("case", CASES)
def test_blocks_are_of_one_part_each(case: str) -> None:
    function, specs = CASES[case]
    emitter = parts_of(function, *specs)
    blocks = [emitter.thread_to_output(part.outputs[0]).dims[1] for part in emitter.parts]
    assert blocks[0].lower == 0
    assert blocks[-1].upper + 1 == emitter.launch_dimensions().grid[0]
    for one, other in itertools.pairwise(blocks):
        assert one.upper + 1 == other.lower
    for part, own in zip(emitter.parts, blocks, strict=True):
        assert all(emitter.thread_to_output(output).dims[1] == own for output in part.outputs)


def test_threads_take_as_many_bytes_of_each_loop_as_alone() -> None:
    """Arrays that leave most threads idle alone keep all busy together."""
    specs = ("f32[1048576]", "bf16[524288]", "s8[262144]")
    emitter = parts_of(_doubled, *specs)
    assert [emitter.thread_to_output(number).symbols[0].size for number in range(3)] == [4, 8, 16]
    alone = [xgpu.compile(_doubled, spec).ir("fusions") for spec in specs]
    assert [re.findall(r"vector = (\d+)", text) for text in alone] == [["4"], ["8"], ["1"]]
