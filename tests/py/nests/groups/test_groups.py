"""Iterations that groups of threads have together: who runs what, and instructions of warps in them."""

from typing import Any

import numpy as np
import pytest

import xgpu
from tests.py.nests.te import compiled
from xgpu import loops
from xgpu.errors import InvalidInput
from xgpu.interface.nest_explanation import explain_nests


def run(program: Any, *arrays: Any) -> list[Any]:
    checked = program.run(*arrays, sanitize=True)
    for plain, other in zip(program.run(*arrays), checked, strict=True):
        np.testing.assert_array_equal(plain, other)
    return checked


def barriers(program: Any) -> list[str]:
    return [line.split('"')[3] for line in program.ir("mapped").splitlines() if '"xgpu.barrier"' in line]


_SHIFT = 'asm("shfl.sync.down.b32 $0, $1, 1, 31, 0xffffffff;", x[l]) -> other: f32'

_ROWS = """fn f(A: f32[2, 8, 32], out B: f32[2, 8, 32]) {{
  par 2 b {{
    new t: f32[8, 32]
    par 8 i {{ par 32 j {{ t[i, j] = A[b, i, j] }} }}
    par 8 w{pragma} {{
      new x: f32[32]
      fully par 32 l {{ x[l] = t[w, 31 - l] }}
      seq 2 k {{ {condition} {{ fully par 32 l {{ {shift}
        x[l] = other }} }} }}
      par 32 i {{ B[b, w, i] = x[31 - i] }}
    }}
  }}
}}"""


def _rows(a: Any, is_shifted: Any) -> Any:
    x = a[:, :, ::-1].copy()
    for _ in range(2):
        x[:, is_shifted] = np.concatenate([x[:, is_shifted, 1:], x[:, is_shifted, -1:]], 2)
    return x[:, :, ::-1]


@pytest.mark.parametrize(
    ("condition", "is_shifted"),
    [("if k < 2", np.full(8, True)), ("if w < 3", np.arange(8) < 3), ("if w % 2 < 1 and k < 2", np.arange(8) % 2 < 1)],
)
@pytest.mark.parametrize("pragma", ["", " #threads(64)", " #group(64)"])
def test_instructions_of_warps(condition: str, is_shifted: Any, pragma: str) -> None:
    program = compiled(_ROWS.format(pragma=pragma, condition=condition, shift=_SHIFT))
    a = np.random.default_rng(0).random((2, 8, 32), np.float32)
    np.testing.assert_array_equal(run(program, a)[0], _rows(a, is_shifted))
    # What a warp exchanges is its own; where others fill the block's tile, the block waits once, before all turns.
    assert barriers(program) == ["block"] * bool(pragma) + ["warp", "warp"]


def test_what_is_decided_is_explained() -> None:
    explained = explain_nests(compiled(_ROWS.format(pragma="", condition="if k < 2", shift=_SHIFT)))
    assert "par w, l at" in explained
    assert "by the threads of a block, in groups of 32 for each w, independence proved" in explained


@pytest.mark.parametrize(("rows", "blocks"), [(32, 8), (50, 13)])
def test_groups_of_all_blocks(rows: int, blocks: int) -> None:
    """Each row is a warp's, whether it does one thing or several; 128 threads are four of them."""
    text = """fn f(A: f32[R, 40], out B: f32[R, 40]) {{ par {rows} r #group(32) #threads(128) {{ {body} }} }}"""
    one = "par 40 i { B[r, i] = A[r, i] }"
    several = "new t: f32[40]\npar 40 i { t[i] = A[r, i] }\npar 40 i { B[r, i] = t[39 - i] }"
    a = np.random.default_rng(0).random((rows, 40), np.float32)
    for body, wanted in ((one, a), (several, a[:, ::-1])):
        program = compiled(text.format(rows=rows, body=body).replace("R,", f"{rows},"))
        assert f"block = 128 : i64, grid = {blocks} : i64" in program.ir("mapped")
        np.testing.assert_array_equal(run(program, a)[0], wanted)
        assert "block" not in barriers(program)


def test_steps_of_groups_run_ahead() -> None:
    text = """fn f(A: f32[8, 6, 32], out B: f32[8, 32]) {{ par 1 b {{ par 8 w #group(32) {{
      new x: f32[32]
      par 32 l {{ x[l] = 0.0 }}
      seq 6 k{stages} {{
        new t: f32[32]
        par 32 l {{ t[l] = A[w, k, l] }}
        par 32 l {{ x[l] += t[31 - l] }}
      }}
      par 32 l {{ B[w, l] = x[l] }}
    }} }} }}"""
    programs = [compiled(text.format(stages=stages)) for stages in ("", " #stages(3)")]
    a = np.random.default_rng(0).random((8, 6, 32), np.float32)
    plain, ahead = (run(program, a)[0] for program in programs)
    np.testing.assert_array_equal(plain, ahead)
    np.testing.assert_allclose(plain, a.sum(1)[:, ::-1], rtol=1e-6)
    assert [barriers(program) for program in programs] == [["warp", "warp"], ["warp"]]


def test_what_pragmas_ask_for_inside_of_an_iteration() -> None:
    text = """fn f(A: f32[8, 32], out B: f32[8, 32]) {{ par 1 b {{ par 8 w #group(32) {{
      new t: f32[32]{placed}
      new u: f32[4, 8]
      fully par 32 l {{ t[l] = A[w, l] }}
      par 4 i{asked} {{ par 8 j {{ u[i, j] = t[31 - i * 8 - j] }} }}
      par 32 l {{ B[w, l] = u[l / 8, 7 - l % 8] }}
    }} }} }}"""
    a = np.random.default_rng(0).random((8, 32), np.float32)
    wanted = a.reshape(8, 4, 8)[:, ::-1].reshape(8, 32)
    plain = compiled(text.format(placed="", asked=""))
    asked = compiled(text.format(placed=" #offset(2048) #pad(4)", asked=" #block_barrier"))
    for program in (plain, asked):
        np.testing.assert_array_equal(run(program, a)[0], wanted)
    assert barriers(plain) == ["warp", "warp"]
    assert barriers(asked) == ["block", "warp"]
    assert "offset = 2048 : i64, pad = 4 : i64" in asked.ir("mapped")


def test_a_program_of_python() -> None:
    @loops.program
    def reverse(A: loops.f32[16, 32], B: loops.out(loops.f32[16, 32])):  # type: ignore[valid-type]
        with loops.par(16, group=32) as row:
            tile = loops.new(loops.f32[32])
            with loops.par(32) as i:
                tile[i] = A[row, i]
            with loops.par(32) as i:
                B[row, i] = tile[31 - i]

    a = np.random.default_rng(0).random((16, 32), np.float32)
    program = xgpu.compile(reverse)
    np.testing.assert_array_equal(run(program, a)[0], a[:, ::-1])
    assert "#group(32)" in str(reverse)


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ("par 8 w #group(24) { }", r"1:\d+: pragma '#group': expected a power of two up to 1024, got 24"),
        ("par 8 w #group(2048) { }", "expected 1 to 1024, got 2048"),
        ("par 8 w #group { }", "takes one number"),
        ("fully par 8 w #group(32) { }", "'fully par' has no pragma '#group'"),
        ("seq 8 w #group(32) { }", "'seq' has no pragma '#group'"),
        ("par 1 b { par 8 w #group(32) #threads(48) { B[w] = 1.0 } }", r"'#threads\(48\)': expected a multiple of 32"),
        ("par 2 v #group(8) { par 4 w #group(32) { B[v * 4 + w] = 1.0 } }", r"'#group\(8\)': loops inside of 'par v'"),
        ("par 8 w #block #group(32) { B[w] = 1.0 }", "'#group' and '#block'"),
    ],
)
def test_what_is_no_group(loop: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        compiled(f"fn f(out B: f32[8]) {{ {loop} }}").ir("ptx")
