"""Barriers of warps: where only threads of a warp meet, the least of the two, and no other result."""

from typing import Any

import numpy as np
import pytest

import xgpu
from tests.py.effort import by_level, drawn
from tests.py.nests.loop_references import FILES, inputs_of
from tests.py.nests.te import compiled
from xgpu.errors import KernelFault
from xgpu.interface.nest_explanation import explain_nests
from xgpu.loop_language.load import print_loops
from xgpu.packaging.checks.proofs import prove

_BARRIER, _OF_WARPS, _OF_BLOCK = (
    '"xgpu.barrier"',
    '"xgpu.barrier"() {scope = "warp"}',
    '"xgpu.barrier"() {scope = "block"}',
)


def scopes(text: str) -> list[str]:
    return [line.split('"')[3] for line in compiled(text).ir("mapped").splitlines() if _BARRIER in line]


def program_of(body: str) -> str:
    buffers = "new t: f32[128] #shared\n new u: f32[2, 128] #shared\n"
    return f"""fn f(A: f32[2, 128], n: s32[128], inout B: f32[2, 128]) {{
 par 2 b {{
 {buffers} {body}
 }}
}}"""


def changed(program: Any, marks: str, by: str | None) -> list[Any]:
    """Return programs in each of which one barrier is another one, or not there."""
    lines = program.ir("mapped").splitlines()
    places = [number for number, line in enumerate(lines) if marks in line]
    kept = [[] if by is None else [lines[place].replace(marks, by)] for place in places]
    return [
        xgpu.compile("\n".join([*lines[:place], *line, *lines[place + 1 :]]))
        for place, line in zip(places, kept, strict=True)
    ]


_FILL = "par 128 i { t[i] = A[b, i] }"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # The neighbour of a pair is in the same warp, the one 32 further on is not.
        (f"{_FILL}\n par 64 p {{ par 2 q {{ B[b, p * 2 + q] = t[p * 2 + 1 - q] }} }}", ["warp"]),
        (f"{_FILL}\n par 128 i {{ B[b, i] = t[(i + 32) % 128] }}", ["block"]),
        (f"{_FILL}\n par 128 i {{ B[b, i] = t[i / 32 * 32 + 31 - i % 32] }}", ["warp"]),
        # All threads read what the first one wrote; what a value decides may be any element.
        ("t[3] = 1.0\n par 128 i { B[b, i] = t[3] }", ["block"]),
        (f"{_FILL}\n par 128 i {{ B[b, i] = t[n[i]] }}", ["block"]),
        # Global memory, too.
        (
            "par 128 i { B[b, i] = A[b, i] }\n par 128 i { t[i] = B[b, i / 4 * 4 + 3 - i % 4] }"
            "\n par 128 i { B[b, i] = t[i] }",
            ["warp", "warp"],
        ),
        # A barrier of the block is one of warps as well, and not the other way round.
        (
            f"{_FILL}\n par 128 i {{ u[0, i] = t[127 - i] }}"
            "\n par 128 i { u[1, i] = u[0, i / 32 * 32 + 31 - i % 32] }\n par 128 i { B[b, i] = u[1, 127 - i] }",
            ["block", "warp", "block"],
        ),
        # In a loop: what an iteration reads is overwritten by the next one.
        (f"seq 4 k {{ {_FILL}\n par 128 i {{ B[b, i] = t[i / 4 * 4 + 3 - i % 4] }} }}", ["warp", "warp"]),
        # A warp alone has all that it needs.
        ("par 32 i { t[i] = A[b, i] }\n par 32 i { B[b, i] = t[31 - i] }", ["warp"]),
        # A program may ask for the block.
        (f"{_FILL}\n par 128 i #block_barrier {{ B[b, i] = t[i / 4 * 4 + 3 - i % 4] }}", ["block"]),
    ],
)
def test_scopes(body: str, expected: list[str]) -> None:
    text = program_of(body)
    if "par 32 i { t" in body:
        text = text.replace("par 2 b", "par 2 b").replace("par 32 i { t", "par 32 i #threads(32) { t")
    assert scopes(text) == expected
    program = compiled(text)
    inputs = program.random_inputs(0)
    for plain, checked in zip(program.run(*inputs), program.run(*inputs, sanitize=True), strict=True):
        np.testing.assert_array_equal(plain, checked)
    if "block_barrier" not in body:
        for each in changed(program, _OF_BLOCK, _OF_WARPS) + changed(program, _BARRIER, None):
            with pytest.raises(KernelFault, match="no barrier between"):
                each.run(*inputs, sanitize=True)


def test_results_are_those_of_barriers_of_the_block() -> None:
    body = f"{_FILL}\n par 128 i {{ u[1, i] = t[i / 8 * 8 + 7 - i % 8] }}\n par 128 i {{ B[b, i] = u[1, i / 2 * 2] }}"
    program = compiled(program_of(body))
    assert program.ir("ptx").count("bar.warp.sync") == 2
    a, n, b = program.random_inputs(0)
    i = np.arange(128)
    np.testing.assert_array_equal(program.run(a, n, b)[0], a[:, i // 8 * 8 + 7 - i % 8][:, i // 2 * 2])
    asked = compiled(program_of(body.replace("par 128 i {", "par 128 i #block_barrier {")))
    assert "bar.warp.sync" not in asked.ir("ptx")
    assert "#block_barrier" in print_loops(asked.modules["mapped"])
    assert "barriers: 2 (2 of warps)" in explain_nests(program)


@pytest.mark.parametrize(("name", "of_warps"), [("bitonic_sort", 30), ("layer_norm", 10), ("softmax", 10)])
def test_examples(name: str, of_warps: int) -> None:
    program = xgpu.compile(FILES[name])
    assert program.ir("mapped").count(_OF_WARPS) == of_warps
    inputs = inputs_of(name, program)
    weaker = changed(program, _OF_BLOCK, _OF_WARPS)
    for each in drawn(weaker, by_level(2, 5, len(weaker))):
        with pytest.raises(KernelFault, match="no barrier between"):
            each.run(*inputs, sanitize=True)


def test_export_proves_them() -> None:
    body = f"{_FILL}\n par 128 i {{ B[b, i] = t[i / 4 * 4 + 3 - i % 4] }}\n par 128 i {{ u[0, i] = t[i] }}"
    program = compiled(program_of(body).replace("inout", "out"))
    (kernel,) = program.kernels
    assert prove(kernel.name, kernel.module("emitted"), kernel.aliases).is_complete
    for each in changed(program, _BARRIER, None):
        (kernel,) = each.kernels
        assert prove(kernel.name, kernel.module("emitted"), kernel.aliases).races
    crossing = compiled(program_of(f"{_FILL}\n par 128 i {{ B[b, i] = t[127 - i] }}").replace("inout", "out"))
    for each in changed(crossing, _OF_BLOCK, _OF_WARPS):
        (kernel,) = each.kernels
        assert prove(kernel.name, kernel.module("emitted"), kernel.aliases).races


@pytest.mark.parametrize(("readers", "writer"), [((2, 33), 3), ((33, 2), 3), ((2, 33, 34), 35), ((34, 33, 2, 4), 35)])
def test_readers_of_another_warp_are_remembered(readers: tuple[int, ...], writer: int) -> None:
    reads = "".join(f"  par 64 i {{ if i == {reader} {{ B[i] = t[0] }} }}\n" for reader in readers)
    text = f"""fn f(A: f32[64], out B: f32[64]) {{ par 1 b {{
  new t: f32[1] #shared
  par 64 i {{ if i == 0 {{ t[0] = A[i] }} }}
{reads}
  par 64 i {{ if i == {writer} {{ t[0] = A[i] }} }}
  par 64 i {{ if i == 50 {{ B[i] = t[0] }} }}
}} }}"""
    program = compiled(text)
    lines = program.ir("mapped").splitlines()
    place = [number for number, line in enumerate(lines) if _OF_BLOCK in line][-2 if writer < 32 else -1]
    # The readers of the writer's warp are before it; those of the other warp are not.
    lines[place] = lines[place].replace(_OF_BLOCK, _OF_WARPS)
    with pytest.raises(KernelFault, match="no barrier between"):
        xgpu.compile("\n".join(lines)).run(*program.random_inputs(0), sanitize=True)


def test_warps_that_multiply_by_instructions() -> None:
    text = """fn f(A: bf16[16, 16], B: bf16[16, 8], out C: f32[16, 8]) { par 1 b {
      new t: f32[128] #shared
      par 1 w { fully par 32 l #threads(32) {
        let g = l / 4
        let q = l % 4
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, "
          "{$8, $9}, {$10, $11, $12, $13};",
          pair(A[g, q * 2], A[g, q * 2 + 1]), pair(A[g + 8, q * 2], A[g + 8, q * 2 + 1]),
          pair(A[g, q * 2 + 8], A[g, q * 2 + 9]), pair(A[g + 8, q * 2 + 8], A[g + 8, q * 2 + 9]),
          pair(B[q * 2, g], B[q * 2 + 1, g]), pair(B[q * 2 + 8, g], B[q * 2 + 9, g]),
          f32(0.0), f32(0.0), f32(0.0), f32(0.0)) -> (c0: f32, c1: f32, c2: f32, c3: f32)
        t[g * 8 + q * 2] = c0
        t[g * 8 + q * 2 + 1] = c1
        t[g * 8 + 64 + q * 2] = c2
        t[g * 8 + 64 + q * 2 + 1] = c3
      } }
      par 16 i #threads(32) { par 8 j { C[i, j] = t[i * 8 + j] } }
    } }"""
    program = compiled(text)
    assert _OF_WARPS in program.ir("mapped")
    inputs = program.random_inputs(0)
    for sanitize in (False, True):
        (c,) = program.run(*inputs, sanitize=sanitize)
        np.testing.assert_allclose(c, inputs[0].astype(np.float32) @ inputs[1].astype(np.float32), rtol=1e-2, atol=1e-2)
    for each in changed(program, _BARRIER, None):
        with pytest.raises(KernelFault):
            each.run(*inputs, sanitize=True)
