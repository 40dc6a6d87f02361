"""Reads that are staged in shared memory: the same results, with no race, and only where it pays."""

import re
from typing import cast

import numpy as np
import pytest

import xgpu
from tests.py import effort
from tests.py.nests.memory.drawn_staged import draw
from tests.py.nests.te import compiled
from xgpu.device import device
from xgpu.dialects.nests.loops import ParOp
from xgpu.driver.nest_programs import remarks_on_loops
from xgpu.errors import InvalidInput
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse
from xgpu.nests.structure import PAR
from xgpu.options import Options
from xgpu.structure import walk

_SEEDS = effort.drawn(range(2000), effort.by_level(5, 25, 2000))


def product(body: str, first: str = "A: f32[2048, 2048], B: f32[2048, 2048]", tiles: str = "") -> str:
    return f"""fn f({first}, out C: f32[2048, 2048]) {{ par 2048 i{tiles} {{ par 2048 j{tiles} {{
  new s: f32
  s = 0.0
  seq 2048 k {{ {body} }}
  C[i, j] = s
}} }} }}"""


def untiled(text: str) -> str:
    return re.sub(r" #tile\(\d+\)", "", text)


def reason(text: str) -> str:
    """Return why no reads of a program are staged; "" if some are."""
    module = build(parse(text, "f.te")).module
    found = remarks_on_loops(module, device("sm_90a"), Options())
    return next((each.message for each in found if each.pass_name == "stage-reads"), "")


@pytest.mark.parametrize("seed", _SEEDS)
def test_drawn_programs(seed: int) -> None:
    text = draw(seed)
    program, other = compiled(text), compiled(untiled(text))
    inputs = program.random_inputs(seed)
    expected = other.run(*inputs)
    for sanitize in (False, True):
        for output, wanted in zip(program.run(*inputs, sanitize=sanitize), expected, strict=True):
            np.testing.assert_array_equal(output, wanted, text)


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "s8", "u16", "s64", "c64"])
def test_types(dtype: str) -> None:
    """Sums are added in the order of the loop, so all bits are the same."""
    zero = "c64(0.0)" if dtype == "c64" else f"{dtype}(0)"
    text = f"""fn f(A: {dtype}[21, 37], B: {dtype}[13, 37], out C: {dtype}[21, 13]) {{
      par 21 i #tile(8) {{ par 13 j #tile(4) {{
        new s: {dtype}
        s = {zero}
        seq 37 k #tile(16) {{ s += A[i, k] * B[j, k] }}
        C[i, j] = s }} }} }}"""
    program, other = compiled(text), compiled(untiled(text))
    inputs = program.random_inputs(1)
    (output,), (wanted,) = program.run(*inputs, sanitize=True), other.run(*inputs)
    np.testing.assert_array_equal(output.view(np.uint8), wanted.view(np.uint8))


def test_numbers_that_are_not_finite_stay_where_they_are() -> None:
    """What is computed beyond loops' ends is computed from zeros, and is nobody's."""
    text = """fn f(A: f32[5, 9], B: f32[3, 9], out C: f32[5, 3]) { par 5 i #tile(4) { par 3 j #tile(2) {
      new s: f32
      s = 1.0
      seq 9 k #tile(4) { s *= A[i, k] / B[j, k] }
      C[i, j] = s } } }"""
    a, b = np.full((5, 9), 2, np.float32), np.full((3, 9), 0.5, np.float32)
    a[1, 3], b[2, 8], a[4, 0] = np.inf, 0, np.nan
    (output,) = compiled(text).run(a, b, sanitize=True)
    with np.errstate(all="ignore"):
        expected = (a[:, None] / b).prod(-1)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(
    "text",
    [
        product("s += A[i, k] * B[j, k]"),
        product("let d = A[i, k] - B[j, k]\ns += d * d"),
        product("s max= A[i, k] + B[j, k]"),
        product("if k <= i { s += A[i, k] * B[j, k] }"),
        product("s += A[i, k] * B[j, k]").replace("2048", "1999"),
    ],
    ids=["product", "distance", "maximum", "triangle", "odd"],
)
def test_where_rows_are_read_by_rows(text: str) -> None:
    assert not reason(text)
    (kernel,) = xgpu.compile(str(build(parse(text, "f.te")).module), target="sm_90a").kernels
    assert kernel.ptx.count("ld.shared") > 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (product("s += A[i, k] * B[k, j]"), "times as many passes without tiles"),
        (product("s += A[k, i] * B[k, j]"), "times as many passes without tiles"),
        (product("s += A[i, k] * A[j, 3]"), "no two reads"),
        (product("s += A[i, k] * B[j, k]").replace("2048", "256"), "too few for 132 multiprocessors"),
        (
            product("s += A[i, k] * B[j, k] + f32(j)").replace("2048", "1999"),
            "tiles do not divide 'par j', on which more than staged reads depend",
        ),
    ],
    ids=["columns", "both columns", "one read", "small", "odd and more"],
)
def test_where_they_are_not(text: str, expected: str) -> None:
    assert expected in reason(text)


_KEPT = """fn f(A: {0}[2048, 512], B: {0}[2048, 512], X: {0}[2048], Y: {0}[2048], out C: {0}[2048, 2048]) {{
  par 2048 i {{ par 2048 j {{
    let a = X[i]
    let b = Y[j]
    let c = X[i] * 2.0
    let d = Y[j] + 1.0
    new s: {0}
    s = 0.0
    seq 512 k {{ {1} }}
    C[i, j] = s * a + b * c + d
  }} }} }}"""
_LONG = "let e = A[i, k] * B[j, k]" + "\n s += tanh(e) * 3.0" * 40


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("body", ["s += A[i, k] * B[j, k]", _LONG], ids=["short", "long"])
def test_what_registers_have_no_room_for_is_no_error(dtype: str, body: str) -> None:
    """Values that are kept from before a loop to after it, and many statements: tiles are small, or there are none."""
    text = _KEPT.format(dtype, body)
    program = compiled(text)
    assert (len(program.ir("mapped").split("i_tile")) == 1) == bool(reason(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T[0] += A[i, k] * B[j, k] + 1 #atomic", "a loop changes more than an iteration's own buffers"),
        ("T[A[i, k]] += 1 #atomic\n s += B[j, k]", "a loop reads an element that a value decides"),
        ("s += T[A[i, k] - 1] * B[j, k]", "a loop reads an element that a value decides"),
    ],
)
def test_what_is_beyond_the_ends_of_loops_is_seen_nowhere(text: str, expected: str) -> None:
    plain = f"""fn f(A: s32[1300, 9], B: s32[1300, 9], inout T: s32[8], out D: s32[1300, 1300]) {{
      par 1300 i {{ par 1300 j {{
        new s: s32
        s = 0
        seq 9 k {{ {text} }}
        D[i, j] = s }} }} }}"""
    assert expected in reason(plain)
    with pytest.raises(InvalidInput, match=expected):
        compiled(plain.replace(" i {", " i #tile(7) {"))
    compiled(plain.replace(" i {", " i #tile(4) {").replace(" j {", " j #tile(4) {"))


def test_a_loop_of_one_iteration_has_one_in_a_tile() -> None:
    text = """fn f(A: s32[8, 9], B: s32[1, 9], inout D: s32[8]) { par 8 i #tile(4) { par 1 j #tile(2) {
      seq 9 k #tile(4) { D[i] += A[i, k] * B[j, k] + 1 } } } }"""
    program, other = compiled(text), compiled(untiled(text))
    inputs = program.random_inputs(1)
    np.testing.assert_array_equal(program.run(*inputs, sanitize=True)[0], other.run(*inputs)[0])


def test_each_loop_has_steps_of_its_own() -> None:
    text = """fn f(A: s32[8, 12], B: s32[4, 12], out C: s32[8, 4]) { par 8 i #tile(4) { par 4 j #tile(4) {
      new s: s32
      s = 0
      seq 12 k #tile(4) { s += (A[i, k] - B[j, k]) * (A[i, k] - B[j, k]) }
      seq 12 k #tile(6) { s ^= A[i, k] * B[j, k] }
      C[i, j] = s } } }"""
    program, other = compiled(text), compiled(untiled(text))
    inputs = program.random_inputs(1)
    np.testing.assert_array_equal(program.run(*inputs, sanitize=True)[0], other.run(*inputs)[0])
    mapped = program.ir("mapped")
    # An element that is read twice is in one tile.
    assert mapped.count("memref<4x4xi32>\n") == 3
    assert mapped.count("memref<6x4xi32>\n") == 2


def test_the_tiles_are_a_program_of_their_own() -> None:
    """As text it compiles again: it asks for no tiles."""
    text = """fn f(A: s32[8, 12], B: s32[4, 12], out C: s32[8, 4]) { par 8 i #tile(4) { par 4 j #tile(4) {
      new s: s32
      s = 0
      seq 12 k #tile(4) { seq 1 c { s += A[i, k] * B[j, k] } }
      C[i, j] = s } } }"""
    mapped = compiled(text).ir("mapped")
    assert "tile =" not in mapped
    assert xgpu.compile(mapped).ir("mapped") == mapped


def test_sums_in_the_result_are_held_while_steps_go_on() -> None:
    text = """fn f(A: f32[40, 48], B: f32[24, 48], inout C: f32[40, 24]) { par 40 i #tile(8) { par 24 j #tile(8) {
      seq 48 k #tile(16) { C[i, j] += A[i, k] * B[j, k] } } } }"""
    program, other = compiled(text), compiled(untiled(text))
    inputs = program.random_inputs(1)
    for output, wanted in zip(program.run(*inputs, sanitize=True), other.run(*inputs), strict=True):
        np.testing.assert_array_equal(output, wanted)
    steps = program.ir("mapped").split("k_step")[0].rsplit('"xgpu.seq"', 2)[1]
    assert "%arg2" not in steps, "no step reads or writes C"


def test_zero_leaves_reads_as_they_are() -> None:
    text = product("s += A[i, k] * B[j, k]").replace("seq 2048 k", "seq 2048 k #tile(0)")
    assert "the program leaves the reads of its loops as they are" in reason(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (product("s += A[i, k]", tiles=" #tile(8) #threads(64)"), "the program says itself who runs 'par i'"),
        (product("s += 1.0", tiles=" #tile(8)"), "no seq loop reads elements that several iterations around it share"),
        (
            product("s += A[i, k] * B[j, k]", tiles=" #tile(1000)"),
            "a thread would hold 3907 elements",
        ),
        (
            product("s += A[i, k] * B[j, k] * f32(i)", tiles=" #tile(7)"),
            "tiles do not divide 'par i', on which more than staged reads depend",
        ),
        (
            "fn f(A: f32[64], out B: f32[64]) { par 64 i #tile(8) { B[i] = A[63 - i] } }",
            "no seq loop reads elements that several",
        ),
        (
            product("s += A[i, k] * B[j, k]", tiles=" #tile(8)").replace(
                "s = 0.0", "new r: f32[9]\npar 9 c { r[c] = 0.0 }\ns = r[3]"
            ),
            "there are par loops inside of 'par j'",
        ),
    ],
    ids=["threads", "no reads", "large", "odd", "no loop", "par inside"],
)
def test_tiles_that_there_cannot_be(text: str, expected: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(expected)) as caught:
        compiled(text)
    assert caught.value.location is not None
    assert "'#tile(" in str(caught.value)


def test_the_program_as_text_has_the_tiles() -> None:
    text = product("s += A[i, k] * B[j, k]").replace("2048", "64").replace(" i {", " i #tile(16) {")
    program = compiled(text)
    loops = [cast(ParOp, op.opview) for op in walk(program.modules["mapped"].operation, PAR)]
    assert {"i_tile", "j_tile", "i", "j", "k"} == {loop.called for loop in loops}
