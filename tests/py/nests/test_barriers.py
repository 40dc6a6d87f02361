"""Barriers: none is missing and none superfluous, as the sanitizer tells when any one is taken away."""

import numpy as np
import pytest

import xgpu
from tests.py.effort import by_level, drawn
from xgpu.errors import KernelFault
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse
from xgpu.nests import barriers as following
from xgpu.passes.framework import manager
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.passes.framework.remarks import Remark

from .drawn import draw, interpret
from .loop_references import FILES, REFERENCES, inputs_of
from .te import compiled

_BARRIER = '"xgpu.barrier"'


BARRIERS = {
    "bitonic_sort": 37,
    "histogram": 2,
    "layer_norm": 18,
    "prefix_sum": 10,
    "smith_waterman": 2,
    "softmax": 16,
    "stencil": 1,
    "transpose": 1,
    "warp_attention": 4,
}
"""How many there are in the examples that have some."""


@pytest.mark.parametrize("name", sorted(REFERENCES.keys() - BARRIERS.keys()))
def test_others_have_none(name: str) -> None:
    assert _BARRIER not in xgpu.compile(FILES[name]).ir("mapped")


@pytest.mark.parametrize(("name", "barriers"), BARRIERS.items())
def test_each_is_needed(name: str, barriers: int) -> None:
    program = xgpu.compile(FILES[name])
    inputs = inputs_of(name, program)
    lines = program.ir("mapped").splitlines()
    places = [number for number, line in enumerate(lines) if _BARRIER in line]
    assert len(places) == barriers
    for place in drawn(places, by_level(2, 10, len(places))):
        mutated = xgpu.compile("\n".join([*lines[:place], *lines[place + 1 :]]))
        with pytest.raises(KernelFault, match="no barrier between"):
            mutated.run(*inputs, sanitize=True)


@pytest.mark.parametrize(
    ("body", "barriers"),
    [
        # One thread writes and reads an element.
        ("par 64 i { t[i] = A[b, i] }\n par 64 i { B[b, i] = t[i] }", 0),
        # What a value decides may be any element.
        ("par 64 i { t[i] = A[b, i] }\n par 64 i { B[b, i] = t[n[i]] }", 1),
        # All threads read what the first one wrote, and what it wrote to global memory.
        ("t[3] = 1.0\n par 64 i { B[b, i] = t[3] }", 1),
        ("B[b, 3] = 1.0\n par 64 i { B[b, i] += B[b, i] }", 1),
        # Nothing is written inside of the loop: one barrier before it does for all iterations.
        ("par 64 i { t[i] = A[b, i] }\n seq 9 k { par 64 i { B[b, i] = t[63 - i] } }", 1),
        # Two buffers that take turns need one barrier an iteration.
        ("par 64 i { u[0, i] = A[b, i] }\n seq 8 k { par 64 i { u[(k + 1) % 2, i] = u[k % 2, 63 - i] } }", 1),
        # Single steps of different threads do not disturb each other.
        ("t[0] = 0.0\n par 64 i { t[0] += A[b, i] #atomic }\n par 64 i { t[0] += 1.0 #atomic }\n B[b, 0] = t[0]", 2),
        # But those of another function do.
        ("t[0] = 0.0\n par 64 i { t[0] += A[b, i] #atomic }\n par 64 i { t[0] max= 1.0 #atomic }\n B[b, 0] = t[0]", 3),
        # A barrier in a branch is none for blocks that do not take it.
        (
            "par 64 i { t[i] = A[b, i] }\n if b < 1 { par 64 i { u[0, i] = A[b, i] }\n"
            " par 64 i { B[b, i] = u[0, 63 - i] } }\n par 64 i { B[b, i] += t[63 - i] }",
            2,
        ),
        # An iteration is read by the next one, and a buffer is written again.
        ("seq 8 k { par 64 i { t[i] = A[b, i] }\n par 64 i { B[b, i] = t[63 - i] } }", 2),
    ],
)
def test_as_few_as_possible(body: str, barriers: int) -> None:
    buffers = "new t: f32[64] #shared\n new u: f32[2, 64] #shared\n"
    text = f"fn f(A: f32[2, 64], n: s32[64], inout B: f32[2, 64]) {{\n par 2 b {{\n {buffers} {body}\n }}\n}}"
    assert compiled(text).ir("mapped").count(_BARRIER) == barriers


_BEFORE = (
    "check-independence,form-launches,assign-bands,serialize-inner-loops,hold-elements,place-buffers,map-threads,"
    "pad-buffers"
)


def placed(text: str) -> tuple[int, list[Remark]]:
    """Return how many barriers a program gets, and what is said about it."""
    module, remarks = build(parse(text, "f.te")).module, list[Remark]()
    with module.context:
        passes = parse_pipeline(f"{_BEFORE},place-barriers")
        manager.run(module, passes, manager.Instrumentation(remark=remarks.append))
    return str(module).count(_BARRIER), remarks


def nested(extents: list[int], index: str) -> str:
    """Return a program whose par loop is in loops of these extents."""
    loops = "".join(f"seq {extent} k{number} {{ " for number, extent in enumerate(extents))
    return f"""fn f(A: f32[2, 64], out B: f32[2, 64]) {{ par 2 b {{
      new t: f32[64] #shared
      par 64 i {{ t[i] = A[b, i] }}
      {loops} par 64 i {{ t[({index}) % 64] = A[b, i] }} {"}" * len(extents)}
      par 64 i {{ B[b, i] = t[63 - i] }} }} }}"""


@pytest.mark.parametrize(
    ("extents", "index", "barriers", "said"),
    [
        # Followed iteration by iteration: each writes where another thread has written.
        ([200], "i + k0", 2, 0),
        # Too many iterations, of which each is taken to write anything.
        ([200, 200, 200], "i + k0 + k1 + k2", 2, 1),
        # Too many loops to take two iterations of each.
        ([3] * 24, "i + k0 + k23", 3, 1),
        # What they add does not matter: two iterations of each are as good as all.
        ([200, 200, 200], "63 - i + 64 * k0 + k1 * 64", 1, 0),
    ],
)
def test_the_work_has_a_limit(extents: list[int], index: str, barriers: int, said: int) -> None:
    count, remarks = placed(nested(extents, index))
    assert (count, len(remarks)) == (barriers, said)
    assert all(remark.pass_name == "place-barriers" for remark in remarks)


@pytest.mark.parametrize("limit", ["MOST_WORK", "MOST_WORK_OF_ALL"])
@pytest.mark.parametrize("seed", range(4))
def test_less_work_makes_more_barriers_and_no_other_result(
    limit: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = draw(seed)
    fewest, _ = placed(text)
    monkeypatch.setattr(following, limit, 1)
    count, remarks = placed(text)
    assert count >= fewest
    assert len(remarks) == 1
    program = compiled(text)
    inputs = program.random_inputs(seed)
    for output, wanted in zip(program.run(*inputs, sanitize=True), interpret(parse(text), inputs), strict=True):
        np.testing.assert_array_equal(output, wanted)
