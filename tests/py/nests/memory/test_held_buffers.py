"""Buffers of a block whose elements threads hold in registers: the same results, and no shared memory."""

from typing import Any

import numpy as np
import pytest

import xgpu
from tests.py.nests.te import compiled
from xgpu.errors import InvalidInput
from xgpu.interface.nest_explanation import explain_nests
from xgpu.loop_language.load import print_loops

_PRODUCT = """fn product(A: f32[128, 48], B: f32[48, 128], out C: f32[128, 128]) {{
  par 2 bm {{ par 2 bn {{
    new sum: f32[64, 64]{pragma}
    par 64 i {{ par 64 j {{ sum[i, j] = 0.0 }} }}
    seq 3 k{stages} {{
      new a: f32[64, 16]
      new b: f32[16, 64]
      par 64 i {{ par 16 c {{ a[i, c] = A[bm * 64 + i, k * 16 + c] }} }}
      par 16 c {{ par 64 j {{ b[c, j] = B[k * 16 + c, bn * 64 + j] }} }}
      par 64 i {{ par 64 j {{ seq 16 c {{ sum[i, j] += a[i, c] * b[c, j] }} }} }}
    }}
    par 64 i {{ par 64 j {{ C[bm * 64 + i, bn * 64 + j] = sum[i, j] }} }}
  }} }}
}}"""


def memories(program: Any) -> list[str]:
    return [line.split(" in ")[1].split(",")[0] for line in explain_nests(program).split("\n") if " new " in line]


def run(program: Any, *arrays: Any) -> list[Any]:
    checked = program.run(*arrays, sanitize=True)
    for plain, other in zip(program.run(*arrays), checked, strict=True):
        np.testing.assert_array_equal(plain, other)
    return list(checked)


@pytest.mark.parametrize("stages", ["", " #stages(2)"])
def test_sums_of_a_product(stages: str) -> None:
    a, b = (np.random.default_rng(0).random(shape, np.float32) for shape in ((128, 48), (48, 128)))
    held = compiled(_PRODUCT.format(pragma="", stages=stages))
    shared = compiled(_PRODUCT.format(pragma=" #shared", stages=stages))
    assert memories(held)[0] == "threads"
    assert memories(shared)[0] == "shared"
    (result,) = run(held, a, b)
    np.testing.assert_allclose(result, a @ b, rtol=1e-5)
    np.testing.assert_array_equal(result, run(shared, a, b)[0])
    counts = [program.ir("ptx").count("st.shared") for program in (held, shared)]
    assert counts[0] < counts[1]


def test_several_buffers_under_conditions() -> None:
    text = """fn f(A: f32[4, 100], out B: f32[4, 100], out C: s64[4, 100]) { par 4 b {
      new x: f32[100]
      new n: s64[100]
      new e: f32[100]
      par 100 i {
        x[i] = A[b, i]
        n[i] = s64(0)
      }
      seq 5 k {
        par 100 i { e[i] = x[i] }
        par 100 i {
          if i >= k * 10 {
            x[i] += e[99 - i]
            n[i] += s64(i)
          } else { x[i] *= 2.0 }
        }
      }
      par 100 i { if i % 2 == 0 { B[b, i] = x[i] } else { B[b, i] = -x[i] } }
      par 100 i { C[b, i] = n[i] }
    } }"""
    program = compiled(text)
    assert memories(program) == ["threads", "threads", "shared"]
    a = np.arange(400, dtype=np.float32).reshape(4, 100)
    x, n, i = a.copy(), np.zeros((4, 100), np.int64), np.arange(100)
    for k in range(5):
        x = np.where(i >= k * 10, x + x[:, ::-1], x * 2)
        n += np.where(i >= k * 10, i, 0)
    found = run(program, a)
    np.testing.assert_array_equal(found[0], np.where(i % 2 == 0, x, -x))
    np.testing.assert_array_equal(found[1], n)


def test_loops_keep_their_boxes() -> None:
    """By the map of the product columns would be stored, and by another one it would read more."""
    text = _PRODUCT.replace("64, 64]", "64, 32]").replace("[16, 64]", "[16, 32]").replace("par 64 j", "par 32 j")
    text = text.replace("bn * 64", "bn * 32").replace("par 2 bn", "par 4 bn")
    program = compiled(text.format(pragma="", stages=""))
    assert memories(program)[0] == "shared"
    assert program.ir("mapped").count("together = ") == 2


def test_what_was_decided_is_text_again() -> None:
    program = compiled(_PRODUCT.format(pragma="", stages=""))
    text = print_loops(program.modules["mapped"])
    assert "new sum: f32[64, 64] #register" in text
    assert text.count("#together(4)") == 6
    a, b = (np.random.default_rng(0).random(shape, np.float32) for shape in ((128, 48), (48, 128)))
    np.testing.assert_array_equal(run(compiled(text), a, b)[0], run(program, a, b)[0])


def test_boxes_are_asked_for_in_all_loops_or_none() -> None:
    text = "fn f(A: f32[64], out B: f32[64]) {{ par 1 b {{\nnew t: f32[64]\n{}\n}} }}"
    alike = "par 64 i #together(2) { t[i] = A[i] }\npar 64 i #together(2) { B[i] = t[i] }"
    assert memories(compiled(text.format(alike))) == ["threads"]
    assert memories(compiled(text.format(alike.replace("(2)", "(4)", 1)))) == ["shared"]
    assert memories(compiled(text.format(alike.replace("#together(2)", "", 1)))) == ["shared"]


_TRANSPOSE = """fn f(A: f32[64, 64], out B: f32[64, 64]) {{ par 1 b {{
  new t: f32[64, 64]{pragma}
  par 64 i {{ par 64 j {{ t[i, j] = A[i, j] }} }}
  par 64 i {{ par 64 j {{ B[j, i] = t[i, j] }} }}
}} }}"""


@pytest.mark.parametrize(("pragma", "memory"), [("", "shared"), (" #shared", "shared"), (" #register", "threads")])
def test_maps_that_are_worse_are_taken_only_if_asked_for(pragma: str, memory: str) -> None:
    program = compiled(_TRANSPOSE.format(pragma=pragma))
    assert memories(program) == [memory]
    a = np.arange(4096, dtype=np.float32).reshape(64, 64)
    np.testing.assert_array_equal(run(program, a)[0], a.T)


@pytest.mark.parametrize(
    ("loops", "message"),
    [
        ("par 64 i { t[i] = A[i] }\npar 64 i { B[i] = t[63 - i] }", "accesses other elements than"),
        ("par 64 i { t[i] = A[i] }\npar 32 i { B[i] = t[i] }", "or there are other iterations"),
        ("par 64 i { t[i] = A[i] }\nB[0] = t[0]", "the block accesses it outside of its par loops"),
        ("par 64 i { t[i] = 0.0 }\npar 64 i { t[i] += A[i] #atomic }\npar 64 i { B[i] = t[i] }", "in single steps"),
        ("fully par 64 i { t[i] = A[i] }\nfully par 64 i { B[i] = t[i / 2 * 2] }", "accesses other elements than"),
        ("par 64 i #vector(2) { t[i] = A[i] }\npar 64 i { B[i] = t[i] }", "which iterations of 'i' a thread has"),
    ],
)
def test_what_cannot_be_held(loops: str, message: str) -> None:
    text = "fn f(A: f32[64], out B: f32[64]) {{ par 1 b {{\nnew t: f32[64]{}\n{}\n}} }}"
    assert memories(compiled(text.format("", loops))) == ["shared"]
    with pytest.raises(InvalidInput, match=message):
        compiled(text.format(" #register", loops)).ir("ptx")


def test_iterations_that_run_at_once_hold_theirs() -> None:
    text = "fn f(A: f32[64], out B: f32[64]) { par 1 b {\nnew t: f32[64]\n"
    program = compiled(text + "fully par 64 i { t[i] = A[i] }\npar 64 i { B[i] = t[i] } } }")
    assert memories(program) == ["threads"]
    a = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(run(program, a)[0], a)


_ROWS = """fn f(A: f32[40, 32, 8], out B: f32[40, 32, 8]) {{ par 1 b {{
  new t: f32[40, 32, {size}]
  par 40 w {{ {kind}par 32 l {{ seq 8 e {{ t[w, l, e] = A[w, l, e] }} }} }}
  seq 3 k {{ par 40 w {{ {kind}par 32 l {{ seq 8 e {{ t[w, l, 7 - e] += f32({index}) }} }} }} }}
  par 40 w {{ {kind}par 32 l {{ static 8 |e| {{ B[w, l, e] = t[w, l, e] }} }} }}
}} }}"""


@pytest.mark.parametrize("kind", ["", "fully "])
@pytest.mark.parametrize("rows", [8, 40])
def test_iterations_hold_rows(kind: str, rows: int) -> None:
    program = compiled(_ROWS.format(kind=kind, size=8, index="k + e").replace("40", str(rows)))
    assert memories(program) == ["threads"]
    assert ".shared" not in program.ir("ptx")
    a = np.random.default_rng(0).random((rows, 32, 8), np.float32)
    wanted = a.copy()
    for k in range(3):
        wanted += (k + 7 - np.arange(8)).astype(np.float32)
    np.testing.assert_array_equal(run(program, a)[0], wanted)


def test_rows_that_registers_do_not_hold_are_shared() -> None:
    assert memories(compiled(_ROWS.format(kind="fully ", size=13, index="k"))) == ["shared"]
    assert memories(compiled(_ROWS.format(kind="", size=9, index="k").replace("40", "8"))) == ["threads"]
    values = "fn f(n: s32[8], A: f32[8], out B: f32[8]) { par 1 b {\nnew t: f32[8, 4]\n"
    loops = "par 8 i { seq 4 e { t[i, e] = A[i] } }\npar 8 i { B[i] = t[i, n[i]] } } }"
    assert memories(compiled(values + loops)) == ["shared"]


def test_more_elements_than_registers() -> None:
    text = "fn f(A: f32[20000], out B: f32[20000]) {{ par 1 b {{\nnew t: f32[20000]{}\n{}\n}} }}"
    loops = "par 20000 i { t[i] = A[i] }\npar 20000 i { B[i] = t[i] + A[i] }"
    assert memories(compiled(text.format("", loops))) == ["shared"]
    with pytest.raises(InvalidInput, match="a thread would have more than 64 elements"):
        compiled(text.format(" #register", loops)).ir("ptx")


def test_maps_that_a_person_edits_are_checked() -> None:
    text = "fn f(A: f32[64], out B: f32[64]) { par 1 b {\nnew t: f32[64]\n"
    mapped = compiled(text + "par 64 i { t[i] = A[i] }\npar 64 i { B[i] = t[i] }\n} }").ir("mapped")
    assert mapped.count("(d0) -> (d0), d0 in [0, 63]") > 1
    place = mapped.rindex("#xgpu.map<(d0) -> (d0), d0 in [0, 63]>")
    edited = mapped[:place] + mapped[place:].replace("(d0) -> (d0)", "(d0) -> (-d0 + 63)", 1)
    with pytest.raises(InvalidInput, match="expected one map of all loops that access it"):
        xgpu.compile(edited)
