"""Programs are printed as text that parses back to the same program, from their text and from any level of loops."""

from pathlib import Path

import pytest

import xgpu
from xgpu.errors import InvalidInput
from xgpu.loop_language.build import build
from xgpu.loop_language.load import print_loops
from xgpu.loop_language.parser import parse
from xgpu.loop_language.printer import print_function

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "loops"
_FILES = sorted(FOLDER.rglob("*.te"))


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_programs(path: Path) -> None:
    function = parse(path.read_text())
    text = print_function(function)
    assert print_function(parse(text)) == text
    module = build(function).module
    assert str(build(parse(text)).module) == str(module)
    written = print_loops(module)
    assert str(build(parse(written)).module) == str(module)
    assert print_loops(build(parse(written)).module) == written


@pytest.mark.parametrize(
    "statement",
    [
        "B[i] = -A[i] * (A[i] - 1.0) / (2.0 * A[i])",
        "B[i] = select(not (A[i] > 0.0 and A[i] < 2.0), -0.0, 1e-20)",
        "B[i] = f32(n[i] >> 1 & 3 | 4 ^ 1)",
        "B[i] = f32(s32(i) + n[n[i]])",
        "B[i] = max(A[7 - i], min(A[(i + 3) % 8], inf)) + nan",
        "n[i] = s32(A[i])",
        "n[i] += 2 #atomic",
        "n[0] max= -3 #atomic",
        "if 2 * i + 1 >= 4 and i <= 6 { B[i] = 1.0 } else { B[i] = A[i] }",
        "new t: f32[2] #register\n t[0] = A[i]\n t[1] = t[0]\n B[i] = t[1]",
        "seq 3 |k| { B[i] *= f32(bf16(A[i])) }",
        "let x = A[i]\n B[i] = 0.0\n B[i] = x + x",
        "anchor A[i]",
    ],
)
def test_statements(statement: str) -> None:
    text = f"fn f(A: f32[8], inout B: f32[8], inout n: s32[8]) {{ par 8 i #threads(64) {{\n{statement}\n}} }}"
    module = build(parse(text)).module
    written = print_loops(module)
    assert str(build(parse(written)).module) == str(module)


@pytest.mark.parametrize("pragmas", ["", " #align(32)", " #align(4) #threads(64)", " #block"])
def test_iterations_that_run_at_once(pragmas: str) -> None:
    text = f"fn f(A: f32[3, 8], out B: f32[3, 8]) {{ par 3 w {{ fully par 8 i{pragmas} {{ B[w, i] = A[w, i] }} }} }}"
    module = build(parse(text)).module
    written = print_loops(module)
    assert "fully par 8 |i| #align(" in written
    assert str(build(parse(written)).module) == str(module)
    assert str(build(parse(print_function(parse(text)))).module) == str(module)


@pytest.mark.parametrize(
    "statement",
    [
        'asm("add.f32 $0, $1, $2;", A[i], A[0] * 2.0) -> x: f32\n B[i] = x',
        'let y = A[i]\n asm("{ .reg .f32 t; add.f32 t, $2, 0f3F800000; mov.f32 $0, t;"\n " mov.f32 $1, $2; }", y)'
        " -> (a: f32, b: f32)\n B[i] = a + b * y",
        'asm("nanosleep.u32 $0;", u32(7))\n B[i] = A[i]',
        'asm("cvt.rn.bf16x2.f32 $0, $1, $2;", A[i], B[i]) -> p: u32\n B[i] = f32(as_bf16(u16(p & 65535)))',
        "B[i] = as_f32(pair(bf16(A[i]), as_u16(bf16(1.0)))) + as_f32(n[i])",
    ],
)
def test_instructions(statement: str) -> None:
    text = f"fn f(A: f32[8], inout B: f32[8], n: s32[8]) {{ fully par 8 i {{\n{statement}\n}} }}"
    module = build(parse(text)).module
    written = print_loops(module)
    assert str(build(parse(written)).module) == str(module)
    assert print_loops(build(parse(written)).module) == written
    assert print_function(parse(print_function(parse(text)))) == print_function(parse(text))


def test_decisions_become_pragmas() -> None:
    program = xgpu.compile(FOLDER / "transpose.te")
    mapped = xgpu.compile(str(program.modules["mapped"]))
    text = mapped.ir("te")
    assert "par 6 |bn| #block {" in text
    assert "new tile: f32[32, 32] #shared #pad(1)" in text
    again = xgpu.compile(str(build(parse(text)).module))
    assert again.ir("ptx") == program.ir("ptx")


def test_only_programs_of_loops_have_text() -> None:
    program = xgpu.compile(lambda x: x + 1, "f32[8]")
    with pytest.raises(InvalidInput, match="given at level 'stablehlo', from which level 'te' cannot be made"):
        program.ir("te")
    loops = xgpu.compile(FOLDER / "copy.te")
    with pytest.raises(InvalidInput, match="given at level 'loops', from which level 'fusions' cannot be made"):
        loops.ir("fusions")
