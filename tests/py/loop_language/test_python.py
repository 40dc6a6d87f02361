"""The loop language in Python makes the programs that its text does, and names lines of the function."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu import loops
from xgpu.errors import InvalidInput
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse

M, N, T = loops.sizes(M=64, N=96, T=32)


@loops.program
def transpose(A: loops.f32[M, N], B: loops.out(loops.f32[N, M])) -> None:
    with loops.par(N // T, "bn") as bn, loops.par(M // T, "bm", block=True) as bm:
        tile = loops.new(loops.f32[T, T], "tile", pad=1)
        with loops.par(T, "i") as i, loops.par(T, "j") as j:
            tile[i, j] = A[bm * T + i, bn * T + j]
        with loops.par(T, "i") as i, loops.par(T, "j") as j:
            B[bn * T + i, bm * T + j] = tile[j, i]


_TRANSPOSE = """size M = 64, N = 96, T = 32
fn transpose(A: f32[M, N], out B: f32[N, M]) {
  par N // T bn { par M // T bm #block {
    new tile: f32[T, T] #pad(1)
    par T i { par T j { tile[i, j] = A[bm * T + i, bn * T + j] } }
    par T i { par T j { B[bn * T + i, bm * T + j] = tile[j, i] } }
  } }
}"""


@loops.program
def sums(A: loops.f32[M, N], n: loops.s32[N], B: loops.inout(loops.f32[M]), C: loops.inout(loops.s32[4])) -> None:
    with loops.par(M, "i") as i:
        total = loops.new(loops.f32, "total")
        total[()] = 0.0
        with loops.seq(N, "k") as k:
            with loops.when(k >= 2, k < N - 1):
                total[()] += loops.exp(A[i, k]) * loops.f32(n[k] % 3)
            with loops.otherwise():
                total.combine((), "max=", loops.select(A[i, k] > 0.0, A[i, k], -1.0))
        B[i] *= total[()]
        C.combine(0, "+=", 1, atomic=True)


_SUMS = """size M = 64, N = 96
fn sums(A: f32[M, N], n: s32[N], inout B: f32[M], inout C: s32[4]) {
  par M i {
    new total: f32
    total = 0.0
    seq N k {
      if k >= 2 and k < N - 1 {
        let a = A[i, k]
        let b = n[k]
        total += exp(a) * f32(b % 3)
      } else {
        let a = A[i, k]
        let b = A[i, k]
        total max= select(a > 0.0, b, -1.0)
      }
    }
    let before = total
    B[i] *= before
    C[0] += 1 #atomic
  }
}"""


@loops.program
def at_once(A: loops.f32[M, 8], B: loops.out(loops.f32[M, 8])) -> None:
    with loops.par(M, "w") as w, loops.fully_par(8, "l", align=32, block=True) as lane:
        B[w, lane] = A[w, lane] + 1.0


_AT_ONCE = """size M = 64
fn at_once(A: f32[M, 8], out B: f32[M, 8]) {
  par M w { fully par 8 l #align(32) #block { B[w, l] = A[w, l] + 1.0 } }
}"""


@loops.program
def turned(A: loops.bf16[64], B: loops.out(loops.bf16[64])) -> None:
    with loops.fully_par(32, "l") as lane:
        both = loops.asm("prmt.b32 $0, $1, 0, 0x1032;", loops.pair(A[2 * lane], A[2 * lane + 1]), results=[loops.u32])
        low, high = loops.asm("mov.b32 {$0, $1}, $2;", both, results=[loops.u16, loops.bf16])
        B[2 * lane] = loops.as_bf16(low)
        B[2 * lane + 1] = high


_TURNED = """fn turned(A: bf16[64], out B: bf16[64]) {
  fully par 32 l {
    let a = A[2 * l]
    let b = A[2 * l + 1]
    asm("prmt.b32 $0, $1, 0, 0x1032;", pair(a, b)) -> both: u32
    asm("mov.b32 {$0, $1}, $2;", both) -> (low: u16, high: bf16)
    B[2 * l] = as_bf16(low)
    B[2 * l + 1] = high
  }
}"""


@loops.program
def product(A: loops.bf16[M, 64], B: loops.bf16[64, N], C: loops.out(loops.f32[M, N])) -> None:
    with loops.par(M // 16, "bm") as bm, loops.par(N // 32, "bn") as bn:
        total = loops.new(loops.f32[16, 32], "total")
        with loops.par(16, "i") as i, loops.par(32, "j") as j:
            total[i, j] = 0.0
        with loops.seq(2, "k", stages=2) as k, loops.par(16, "i", mma=True) as i:  # noqa: SIM117
            with loops.par(32, "j") as j, loops.seq(32, "c") as c:
                total[i, j] += loops.f32(A[bm * 16 + i, k * 32 + c]) * loops.f32(B[k * 32 + c, bn * 32 + j])
        with loops.par(16, "i") as i, loops.par(32, "j") as j:
            C[bm * 16 + i, bn * 32 + j] = total[i, j]


_PRODUCT = """size M = 64, N = 96
fn product(A: bf16[M, 64], B: bf16[64, N], out C: f32[M, N]) {
  par M // 16 bm { par N // 32 bn {
    new total: f32[16, 32]
    par 16 i { par 32 j { total[i, j] = 0.0 } }
    seq 2 k #stages(2) { par 16 i #mma { par 32 j { seq 32 c {
      let a = A[bm * 16 + i, k * 32 + c]
      let b = B[k * 32 + c, bn * 32 + j]
      total[i, j] += f32(a) * f32(b)
    } } } }
    par 16 i { par 32 j { C[bm * 16 + i, bn * 32 + j] = total[i, j] } }
  } }
}"""
_PROGRAMS = [(transpose, _TRANSPOSE), (sums, _SUMS), (at_once, _AT_ONCE), (turned, _TURNED), (product, _PRODUCT)]


@pytest.mark.parametrize(("program", "text"), _PROGRAMS)
def test_is_the_program_of_the_text(program: Any, text: str) -> None:
    assert str(program.own_source(()).module) == str(build(parse(text)).module)
    assert str(build(parse(str(program))).module) == str(build(parse(text)).module)


def test_runs_with_sizes_of_arguments() -> None:
    program = xgpu.compile(transpose, "f32[32,64]")
    (values,) = program.random_inputs()
    np.testing.assert_array_equal(program.run(values)[0], values.T)


def line_of(function: Any, offset: int) -> int:
    return int(function.says.__code__.co_firstlineno) + offset


def test_errors_name_the_line() -> None:
    @loops.program
    def wrong(A: loops.f32[8], B: loops.out(loops.f32[8])) -> None:
        with loops.par(8) as i:
            B[i] = A[i + 1]

    with pytest.raises(InvalidInput, match="index 0 of 'A' may be from 1 to 8") as caught:
        xgpu.compile(wrong)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert caught.value.location.line == line_of(wrong, 3)


def test_loops_and_buffers_have_the_names_of_variables() -> None:
    def rows() -> Any:
        return loops.seq(2)

    @loops.program
    def named(A: loops.f32[8], B: loops.out(loops.f32[8])) -> None:
        with loops.par(8) as i:
            seq = loops.new(loops.f32)
            seq[()] = 1.0
            total = loops.new(loops.f32)
            total[()] = 1.0
            with loops.seq(4) as k:
                total[()] += A[k]
            before = k
            with loops.seq(2) as k, loops.seq(2, "k_2") as x, rows() as A_:
                total[()] += A[k + x] * loops.f32(A_)
            B[i] = total[()] + seq[()]
            assert before is not k

    lines = [line.strip() for line in str(named).splitlines()]
    heads = [line for line in lines if line.startswith(("par", "seq", "new"))]
    assert heads == [
        "par 8 |i| {",
        "new b1: f32",  # A keyword of the language
        "new total: f32",
        "seq 4 |k| {",
        "seq 2 |k_1| {",  # The first is another one, and may be meant still.
        "seq 2 |k_2| {",
        "seq 2 |i1| {",
    ]


def test_errors_say_what_was_written() -> None:
    @loops.program
    def wrong(A: loops.f32[64], B: loops.out(loops.f32[8, 8])) -> None:
        with loops.par(8) as row, loops.par(8) as column:
            B[row, column] = A[row * (column + 1)]

    with pytest.raises(InvalidInput, match=r"'row \* \(column \+ 1\)' is not affine: one of the factors"):
        xgpu.compile(wrong)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda A, B: B.__setitem__(0, "x"), "expected a value of the program or a number, got str"),
        (lambda A, B: bool(A[0] > 0.0), "it is not known yet whether this holds: use loops.when or loops.select"),
        (lambda A, B: A[0].nothing, "AttributeError"),
        (lambda A, B: B.combine(0, "-=", 1.0), "expected one of"),
        (lambda A, B: jnp.sin(A[0]), r"is no array of JAX's: its functions are loops\.exp"),
        (lambda A, B: jnp.asarray(A[0]), r"is no array of JAX's: its functions are loops\.exp"),
        (lambda A, B: list(loops.par(8)), r"expected 'with loops\.par\(\.\.\.\) as i:', got a loop of Python's"),
        (lambda A, B: loops.new(3), r"loops\.new: expected a type such as loops\.f32\[32\], got 3"),
        (lambda A, B: loops.par(8, fast=True).__enter__(), "nothing is assigned to 'B'"),
    ],
)
def test_what_is_wrong(body: Any, message: str) -> None:
    def wrong(A: Any, B: Any) -> None:
        body(A, B)

    wrong.__annotations__ = {"A": loops.f32[8], "B": loops.out(loops.f32[8])}
    with pytest.raises(InvalidInput, match=message):
        xgpu.compile(loops.program(wrong))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: loops.program(3), r"loops\.program: expected a function, got 3"),
        (lambda: loops.out(3), r"loops\.out: expected a type such as loops\.f32\[M, N\], got 3"),
        (lambda: loops.inout("f32"), r"loops\.inout: expected a type .*, got 'f32'"),
        (lambda: loops.sizes(M=-3), "size M: expected a whole number from 0, or None, got -3"),
        (lambda: loops.sizes(M="x"), "size M: expected a whole number from 0, or None, got 'x'"),
        (lambda: xgpu.compile(loops.program(lambda A: None)), "argument 'A': expected a type .*, got none"),
    ],
)
def test_declarations_that_are_none(make: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        make()
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_an_extent_that_is_no_size() -> None:
    @loops.program
    def wrong(A: loops.f32[8], B: loops.out(loops.f32[8])) -> None:
        with loops.par(2.5) as i:
            B[i] = A[i]

    with pytest.raises(InvalidInput, match=r"expected sizes and whole numbers, got 2\.5"):
        xgpu.compile(wrong)


def test_statements_outside_of_a_program() -> None:
    with pytest.raises(InvalidInput, match=r"stand in a function that loops\.program decorates"):
        loops.new(loops.f32)
    with pytest.raises(AttributeError, match=r"xgpu\.loops has no 'nothing'"):
        loops.nothing  # noqa: B018
    with pytest.raises(AttributeError, match=r"xgpu\.loops has no 'paar' \(did you mean 'par'\?\)"):
        loops.paar  # noqa: B018
