"""Steps of a block whose tiles are filled ahead: the same results, one barrier a step; loops that repeat."""

import itertools

import numpy as np
import pytest

import xgpu
from xgpu.errors import InvalidInput
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse
from xgpu.nests import barriers, periods

from .drawn import interpret
from .te import compiled

_STEPS = """fn f(A: s32[8, 64], out B: s32[64]) {{ par 1 b {{
  new sum: s32[64]
  par 64 i {{ sum[i] = 0 }}
  seq {extent} k{pragma} {{
    new t: s32[64]
    new u: s32[64]
    par 64 i {{ {fill} }}
    par 64 i {{ u[i] = t[63 - i] }}
    par 64 i {{ sum[i] += t[63 - i] - u[(i + k) % 64] }}
  }}
  par 64 i {{ B[i] = sum[i] }}
}} }}"""
_FILLS = [
    "t[i] = A[k, i]",
    # Conditions on the step: a branch that no step ahead of the loop takes, and one that all take.
    "if k < 7 { t[i] = A[k + 1, i] } else { t[i] = s32(k) }",
    "if k >= 7 { t[i] = A[k, i] } else { t[i] = A[k + 1, (i + k) % 64] }",
    "if k < 3 { t[i] = 2 } else { if k == 5 { t[i] = A[k, i] } else { t[i] = A[k, 63 - i] * k } }",
    # Registers and loops of a thread.
    "new r: s32\n r = 0\n seq 3 q { r += A[(k + q) % 8, i] }\n t[(i + k) % 64] = r",
]


@pytest.mark.parametrize("fill", _FILLS)
@pytest.mark.parametrize(("extent", "stages"), [(1, 2), (2, 2), (8, 2), (2, 8), (8, 3), (8, 16)])
def test_results_are_those_of_step_by_step(extent: int, stages: int, fill: str) -> None:
    function = parse(_STEPS.format(extent=extent, pragma=f" #stages({stages})", fill=fill), "f.te")
    program = xgpu.compile(str(build(function).module))
    inputs = program.random_inputs(1)
    expected = interpret(function, inputs)
    for sanitize in (False, True):
        np.testing.assert_array_equal(program.run(*inputs, sanitize=sanitize)[0], expected[0])


def _stencil(pragma: str) -> str:
    return f"""fn f(A: f32[66, 256], out B: f32[64, 256]) {{ par 4 b {{
      seq 64 k{pragma} {{
        new t: f32[3, 66]
        par 3 r {{ par 66 c {{ if b * 64 + c >= 1 and b * 64 + c < 257 {{ t[r, c] = A[k + r, b * 64 + c - 1] }} }} }}
        par 64 c {{
          if b * 64 + c >= 1 and b * 64 + c < 255 {{
            B[k, b * 64 + c] = t[0, c + 1] + t[2, c + 1] + t[1, c] + t[1, c + 2]
          }} else {{ B[k, b * 64 + c] = 0.0 }}
        }}
      }}
    }} }}"""


def test_a_stencil_by_steps_waits_once_a_step() -> None:
    plain, ahead = compiled(_stencil("")), compiled(_stencil(" #stages(2)"))
    assert plain.ir("mapped").count("xgpu.barrier") == 2
    assert ahead.ir("mapped").count("xgpu.barrier") == 1
    assert "memref<2x3x66xf32>" in ahead.ir("mapped")
    inputs = plain.random_inputs()
    for sanitize in (False, True):
        np.testing.assert_array_equal(ahead.run(*inputs, sanitize=sanitize)[0], plain.run(*inputs)[0])


@pytest.mark.parametrize(
    "body",
    [
        "par 8 i { B[i] += 1.0 }",
        # What a step changes cannot be read ahead of it.
        "new t: f32[8]\n par 8 i { t[i] = B[i] }\n par 8 i { B[7 - i] = t[i] }",
        # Another statement writes to the tile, too.
        "new t: f32[8]\n par 8 i { t[i] = A[k, i] }\n par 8 i { t[i] *= 2.0 }\n par 8 i { B[i] += t[7 - i] }",
        # A value of the step.
        "new t: f32[8]\n let x = B[0]\n par 8 i { t[i] = A[k, i] * x }\n par 8 i { B[i] += t[7 - i] }",
    ],
)
def test_steps_that_cannot_run_ahead(body: str) -> None:
    text = f"fn f(A: f32[4, 8], inout B: f32[8]) {{ par 1 b {{ seq 4 k #stages(2) {{ {body} }} }} }}"
    with pytest.raises(InvalidInput, match="'#stages\\(2\\)': expected a tile that is made in each step"):
        compiled(text)


def test_steps_of_a_thread() -> None:
    steps = "seq 4 k #stages(2) { new t: f32\n t = A[k, i]\n B[i] += t }"
    text = f"fn f(A: f32[4, 8], inout B: f32[8]) {{ par 8 i {{ {steps} }} }}"
    with pytest.raises(InvalidInput, match="a thread runs its steps alone"):
        compiled(text)


_TURNS = """fn f(A: s32[{extent}, 64], out B: s32[64]) {{ par 1 b {{
  new t: s32[6, 64] #shared
  new s: s32[64] #shared
  par 64 i {{ s[i] = 0
    seq 6 q {{ t[q, i] = 0 }} }}
  seq {extent} k {{ {body} }}
  par 64 i {{ B[i] = s[63 - i] }}
}} }}"""


@pytest.mark.parametrize(
    "body",
    [
        "par 64 i { t[k % 2, i] = A[k, i] }\n par 64 i { s[i] += t[(k + 1) % 2, 63 - i] }",
        "par 64 i { t[k % 3, i] = A[k, i] }\n par 64 i { s[i] += t[(k + 1) % 3, 63 - i] }",
        "par 64 i { t[(5 * k + 2) % 6, i] = A[k, i] }\n par 64 i { s[i] += t[(k + 3) % 6, 63 - i] }",
        "if k < 199 { par 64 i { t[k % 2, i] = A[k + 1, i] } }\n par 64 i { s[i] += t[k % 2, 63 - i] }",
        "if k >= 150 { par 64 i { t[0, i] = A[k, i] } }\n par 64 i { s[i] += t[k % 2, 63 - i] }",
        "par 64 i { if k % 4 == 3 { t[1, i] = A[k, i] } }\n par 64 i { s[i] += t[k % 2, 63 - i] }",
        "par 64 i { s[i] += t[k % 6, i] }",
    ],
)
def test_a_few_periods_tell_of_all_iterations(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _TURNS.format(extent=200, body=body)
    program = compiled(text)
    monkeypatch.setattr(barriers, "telling_iterations", lambda *_: None)
    assert compiled(text).ir("mapped") == program.ir("mapped")


def test_what_does_not_repeat_is_followed_wholly() -> None:
    body = "par 64 i { t[k / 40, i] = A[k, i] }\n par 64 i { s[i] += t[5 - k / 40, 63 - i] }"
    whole = compiled(_TURNS.format(extent=200, body=body))
    (inputs,) = (whole.random_inputs(),)
    whole.run(*inputs, sanitize=True)


@pytest.mark.parametrize(
    ("period", "changes"), [(1, [0, 100]), (3, [0, 7, 50, 52, 100]), (7, [0, 100]), (40, [0, 100])]
)
def test_whole_periods_are_left_out(period: int, changes: list[int]) -> None:
    followed = periods._followed(period, changes)
    assert followed == sorted(set(followed))
    assert set(changes[:-1]) | {99} <= set(followed)
    assert all((later - earlier - 1) % period == 0 for earlier, later in itertools.pairwise(followed))
    assert len(followed) < 7 * period * (len(changes) - 1)


def test_conditions_on_the_block_do_not_hide_which_element_a_thread_has() -> None:
    """Each thread reads what it wrote itself, whatever a block leaves out."""
    text = """fn f(A: f32[256], out B: f32[256]) { par 4 b {
      new t: f32[64] #shared
      par 64 i { t[i] = 0.0 }
      par 64 i { if b * 64 + i >= 1 { t[i] = A[b * 64 + i - 1] } }
      par 64 i { B[b * 64 + i] = t[i] }
    } }"""
    assert "xgpu.barrier" not in compiled(text).ir("mapped")
    turned = compiled(text.replace("= t[i] }", "= t[63 - i] }"))
    assert turned.ir("mapped").count("xgpu.barrier") == 1
    (values,) = turned.random_inputs()
    expected = np.r_[0, values[:-1]].reshape(4, 64)[:, ::-1].ravel()
    np.testing.assert_array_equal(turned.run(values, sanitize=True)[0], expected)


def test_elements_before_the_first_under_a_condition() -> None:
    text = """fn f(A: f32[256], out B: f32[256]) {
      new w: f32[256]
      par 256 i { w[i] = 0.0 }
      par 4 b {
        par 64 i { if b * 64 + i >= 1 { w[b * 64 + i - 1] = A[b * 64 + i] } }
        par 32 i { if b < 3 { B[b * 64 + i] = w[b * 64 + i + 1] } else { B[b * 64 + i] = 0.0 } }
        par 32 i { B[b * 64 + i + 32] = 1.0 }
      }
    }"""
    program = compiled(text)
    (values,) = program.random_inputs()
    expected = np.ones((4, 64), np.float32)
    expected[:, :32] = np.r_[values[1:], 0].reshape(4, 64)[:, 1:33]
    expected[3, :32] = 0
    np.testing.assert_array_equal(program.run(values, sanitize=True)[0], expected.ravel())
