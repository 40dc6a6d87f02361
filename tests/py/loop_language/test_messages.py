"""What is wrong in a program's text is said with its line and column."""

import re

import pytest

from xgpu.errors import InvalidInput
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse

_BODY = "fn f(A: f32[8, 4], n: s32[8], out B: f32[8, 4], inout C: u8[8]) {{\n{}\n}}"


def refused(text: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        build(parse(text, "f.te"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.te:1:1: expected 'fn' or 'size', got the end of the text"),
        ("fn f(A f32[8]) {}", "f.te:1:8: expected ':', got 'f32'"),
        ("fn f(A: f32[8)) {}", "f.te:1:14: expected ',' or ']', got ')'"),
        ("fn f(A: f33[8]) {}", "f.te:1:6: unknown element type 'f33'"),
        ("fn f(A: f32[8]) {\n", "f.te:2:1: expected '}', got the end of the text"),
        ("fn f(A: f32[8]) { ? }", "f.te:1:19: unexpected character '?'"),
        ("fn par(A: f32[8]) {}", "f.te:1:4: expected the name of the program, which no keyword is, got 'par'"),
        ("fn f(out A: f32[N]) {}", "expected sizes and whole numbers, got 'N'; declare it before 'fn': size N = 64"),
        ("size N\nfn f(out A: f32[N]) {}", "f.te:1:6: size 'N' has no default, and no argument says what it is"),
        ("size N = 0\nfn f(out A: f32[N]) {}", "f.te:2:17: the shape of 'A': expected a size of at least 1, got 0"),
        ("fn f(out A: f32[N]) {}", "f.te:1:17: the shape of 'A': expected sizes and whole numbers, got 'N'"),
        ("fn f(A: f32[8]) {}", "f.te:1:1: 'f' has no out or inout array: it does nothing"),
        ("fn f(out A: f32[8]) {}", "f.te:1:10: nothing is assigned to 'A'"),
        ("fn f(out A: s4[8]) {}", "f.te:1:10: 'A': elements of s4 share bytes, which several threads cannot write"),
        ("fn f(out A: f32[8]) { A[0] = " + "(" * 40, "expressions nest more than 32 deep"),
        ("fn f(out A: f32[8]) { A[0] = 1" + " + 1" * 300, "a statement has more than 200 operators"),
    ],
)
def test_of_the_whole(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("B[0] = 1.0", "f.te:2:1: 'B' has 2 dimensions, got 1 indices"),
        ("B[8, 0] = 1.0", "f.te:2:3: index 0 of 'B' may be from 8 to 8; expected 0 to 7"),
        ("par 8 i { B[i, i] = 1.0 }", "index 1 of 'B' may be from 0 to 7; expected 0 to 3"),
        ("par 8 i { par 4 j { B[i * j, 0] = 1.0 } }", "f.te:2:25: 'i * j' is not affine: one of the factors must be"),
        ("par 8 i { B[8 // i, 0] = 1.0 }", "f.te:2:15: '8 // i' is not affine: the divisor must be a"),
        ("par 8 i { B[i % 0, 0] = 1.0 }", "f.te:2:15: 'i % 0': expected a divisor of at least 1, got 0"),
        (
            "par 8 i { par i j { B[i, j] = 1.0 } }",
            "the extent of 'j': expected sizes and whole numbers, got the index 'i'",
        ),
        ("par 8 i { let m = i + 1\n seq m k { B[i, 0] = 1.0 } }", "f.te:3:6: the extent of 'k': expected sizes"),
        ("par 8 i { seq 4 + i k { B[i, 0] = 1.0 } }", "at most, and put what is done under 'if k < ...'"),
        ("par 8 i { if i < n[i] { B[i, 0] = 1.0 } }", "type s32; select(condition, a, b) chooses by values"),
        ("A[0, 0] = 1.0", "f.te:2:1: 'A' is an input; declare it out or inout to assign to it"),
        ("B[0, 0] += 1.0", "f.te:2:1: 'B' has no value yet to combine with: assign to it first"),
        ("B[0, 0] = B[0, 1]", "f.te:2:11: 'B' has no value yet; declare it inout to start from what it is given"),
        ("B[0, 0] = n[0]", "f.te:2:11: expected f32, got s32; f32(...) converts"),
        ("B[0, 0] = A[0, 0] + n[0]", "f.te:2:19: expected f32, got s32; f32(...) converts"),
        ("C[0] = 256", "f.te:2:8: 256 is no u8, which is from 0 to 255"),
        ("C[0] = 1.5", "f.te:2:8: 1.5 is no u8"),
        ("B[0, 0] = 1e999", "f.te:2:11: 1e999 is beyond the numbers of every type; infinity is 'inf'"),
        ("B[0, 0] = 1e39", "f.te:2:11: 1e+39 is no f32, which is from -3.4028234663852886e+38 to 3.4028234663852886e+"),
        ("B[0, 0] = -1e39", "f.te:2:11: -1e+39 is no f32"),
        ("B[0, 0] = f32(f16(65520.0))", "f.te:2:15: 65520.0 is no f16, which is from -65504.0 to 65504.0"),
        ("B[0, 0] = f32(f8e4m3fn(inf))", "f.te:2:15: inf is no f8e4m3fn, which is from -448.0 to 448.0"),
        ("B[0, 0] = f32(f4e2m1fn(8.0))", "f.te:2:15: 8.0 is no f4e2m1fn, which is from -6.0 to 6.0"),
        ("B[0, 0] = f32(f4e2m1fn(nan))", "f.te:2:15: nan is no f4e2m1fn, which is from -6.0 to 6.0"),
        ("B[0, 0] = 1e300 * 1e300", "f.te:2:17: 1e+300 * 1e+300 is beyond the numbers of every type"),
        ("B[0, 0] = sine(A[0, 0])", "f.te:2:11: there is no function 'sine'"),
        ("B[0, 0] = exp(1.0, 2.0)", "f.te:2:11: 'exp' takes 1 arguments, got 2"),
        ("C[0] = exp(C[1])", "f.te:2:8: stablehlo.exponential of u8"),
        ("B[0, 0] = x", "f.te:2:11: 'x' is not defined here; known are A, B, C, n"),
        ("let rows = 1.0 \n B[0, 0] = row", "'row' is not defined here (did you mean 'rows'?); known are"),
        ("B[0, 0] = expp(A[0, 0])", "f.te:2:11: there is no function 'expp' (did you mean 'exp'?); known are abs,"),
        ("paar 8 i { }", "f.te:2:1: 'paar' begins no statement (did you mean 'par'?); expected par, seq, static,"),
        ("for 8 i { }", "f.te:2:1: 'for' begins no statement; expected par, seq, static, fully, if, new, let, asm,"),
        ("par 8 i #thread(4) { }", "f.te:2:9: pragma '#thread' takes no numbers (did you mean 'threads'?)"),
        ("new x: f32[N]", "expected sizes and whole numbers, got 'N'"),
        ("let A = 1.0", "f.te:2:1: 'A' has a meaning here already"),
        ("B[0, 0] = 1.0 1.0", "f.te:2:15: expected the end of the statement, got '1.0'"),
        ("par 8 i #fast { B[i, 0] = 1.0 }", "f.te:2:9: 'par' has no pragma '#fast'"),
        ("par 8 i #threads(2000) { B[i, 0] = 1.0 }", "pragma '#threads': expected 1 to 1024, got 2000"),
        ("par 8 i #vector(3) { B[i, 0] = 1.0 }", "f.te:2:9: pragma '#vector': expected a power of two, got 3"),
        ("seq 4 k #stages(1) { B[k, 0] = 1.0 }", "f.te:2:9: pragma '#stages': expected 2 to 16, got 1"),
        ("seq 4 k #block { B[k, 0] = 1.0 }", "f.te:2:9: 'seq' has no pragma '#block'; it has #stages(n), #tile(n)"),
        ("par 4 i #mma #no_mma { B[i, 0] = 1.0 }", "pragma '#no_mma' says again what another one says"),
        ("fully 8 i { B[i, 0] = 1.0 }", "f.te:2:7: expected 'par', got '8'"),
        ("fully par 6 i { B[i, 0] = 1.0 }", "f.te:2:11: the extent of 'fully par': expected a power of two up to 1024"),
        ("fully par 2048 i { }", "the extent of 'fully par': expected a power of two up to 1024, got 2048"),
        ("fully par 8 i #align(12) { }", "f.te:2:15: pragma '#align': expected a power of two up to 1024, got 12"),
        ("fully par 8 i #grid { }", "f.te:2:15: 'fully par' has no pragma '#grid'; it has #align(n), #block"),
        ("fully par 8 i { seq 2 k { par 4 j { } } }", "f.te:2:27: no par loop stands inside of 'fully par i'"),
        ("fully par 8 i { fully par 4 j { } }", "f.te:2:17: no par loop stands inside of 'fully par i'"),
        ('asm("nop;")', "f.te:2:1: 'asm' stands inside of 'fully par', whose iterations run at once"),
        ('par 8 i { asm("nop;") }', "f.te:2:11: 'asm' stands inside of 'fully par'"),
        (
            'fully par 8 i { asm("bar.warp.sync 255;") }',
            "f.te:2:17: 'asm': 'bar' waits for threads that may never come",
        ),
        ('fully par 8 i { asm("bra there;") }', "'asm': 'bra' goes elsewhere: threads go on behind the text"),
        ('fully par 8 i { asm("@$0 ret;", u32(1)) }', "'asm': 'ret' goes elsewhere"),
        ('fully par 8 i { asm("there: nop;") }', "'asm': it has a label"),
        ('fully par 8 i { asm("nop") }', "'asm': expected instructions that end with ';'"),
        (
            'fully par 8 i { asm("add.u32 $0, $1, $2;", u32(1)) -> x: u32 }',
            "'asm': '$2': expected $0 to $1, results first",
        ),
        ('fully par 8 i { asm("mov.u32 $1, 1;", u32(1)) -> x: u32 }', "'asm': nothing is written to '$0', a result"),
        (
            'fully par 8 i { asm("st.global.u32 [$0], 1;", u64(1)) }',
            "'asm': it accesses memory, which only statements do",
        ),
        ('fully par 8 i { asm("nop;", true) }', "the type of True is not known here"),
        (
            'fully par 8 i { asm("mov.b32 $0, 1;") -> x: s8 }',
            "'asm' takes and gives u16, s16, f16, bf16, u32, s32, f32",
        ),
        ('fully par 8 i { asm("mov.b32 $0, 1;") -> A: u32 }', "f.te:2:17: 'A' has a meaning here already"),
        ("fully par 8 i { asm(1.0) }", "f.te:2:21: expected instructions in quotation marks, got '1.0'"),
        (
            'fully par 8 i { asm("shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", A[i, 0]) -> x: f32 }',
            "f.te:2:17: its instructions are those of a warp of 32 threads: expected a multiple of as many iterations"
            " of 'fully par i', got 8",
        ),
        (
            'fully par 8 i { if i < 4 { asm("nop;") } }',
            "f.te:2:28: 'asm' stands under a condition on 'i', by which not all iterations come",
        ),
        ("B[0, 0] = as_f32(n[0]) + as_f64(A[0, 0])", "f.te:2:26: 'as_f64' takes a value of 64 bits, got f32"),
        ("C[0] = pair(C[1], C[2])", "f.te:2:8: 'pair' takes values of 16 bits, got u8 and u8"),
        ("B[0, 0] = 1.0 #atomic", "f.te:2:15: '=' has no pragma '#atomic'"),
        ("par 8 i { if A[i, 0] > 0.0 { B[i, 0] = 1.0 } }", "expected an index, got a value of type f32"),
        ("par 8 i { if i != 0 { B[i, 0] = 1.0 } }", "f.te:2:16: '!=' is two conditions"),
        ("new t: s4[8]", "f.te:2:1: 't': elements of s4 share bytes; use s8 or u8"),
        ("static 99999999 s { }", "static loops make more than 10000 statements"),
    ],
)
def test_of_statements(statement: str, message: str) -> None:
    assert message in refused(_BODY.format(statement))


def test_numbers_at_the_ends_of_their_types() -> None:
    statements = "B[0, 0] = 3.4028235e38 B[0, 1] = -inf B[0, 2] = f32(f16(65519.0)) B[0, 3] = f32(f4e2m1fn(6.5))"
    module = build(parse(_BODY.format(statements.replace(" B", "\nB")), "f.te")).module
    constants = re.findall(r"dense<(\S+)> : tensor<f(?:32|16|4E2M1FN)>", str(module))
    assert constants == ["3.40282347E+38", "0xFF800000", "6.550400e+04", "6.000000e+00"]


def test_arguments_that_do_not_fit() -> None:
    function = parse("size N = 4\nfn f(A: f32[N], B: f32[N], out C: f32[N]) { par N i { C[i] = A[i] + B[i] } }", "f.te")
    f32 = build(function).arguments[0].dtype
    assert build(function, [(f32, (9,)), (f32, (9,))]).results[0].shape == (9,)
    with pytest.raises(InvalidInput, match="'B': expected size 'N' to be 9, got 8"):
        build(function, [(f32, (9,)), (f32, (8,))])
    with pytest.raises(InvalidInput, match="f: expected 2 arguments, got 1"):
        build(function, [(f32, (9,))])
    with pytest.raises(InvalidInput, match="'A' has 1 dimensions, got 2"):
        build(function, [(f32, (9, 9)), (f32, (9,))])
