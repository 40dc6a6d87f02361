"""Programs that are too large in some way end soon, in a diagnostic with a place or in a program."""

import numpy as np
import pytest

import xgpu
from xgpu import loops
from xgpu.errors import InvalidInput, Unsupported

from .te import compiled


@pytest.mark.parametrize(
    ("index", "column"),
    [
        ("(i * 4611686018427387904 * 4) % 8", 25),
        ("((i - 5) // 4611686018427387904 // 4611686018427387904 + 1) * 3", 31),
        ("(i - 5) * 4503599627370496 // 4503599627370496 + 5", 30),
        ("i + 999999999999999999999999999999 - 999999999999999999999999999999", 24),
    ],
)
def test_indices_fit_in_64_bits(index: str, column: int) -> None:
    with pytest.raises(InvalidInput, match="beyond 4503599627370496") as caught:
        compiled(f"fn f(A: f32[64], out B: f32[8]) {{\n  par 8 i {{ B[i] = A[{index}] }}\n}}")
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (2, column)


def test_positions_fit_in_64_bits() -> None:
    text = "fn f(A: s32[8, 1000000000], out B: s32[8]) {\n par 8 i { par 8 j { if i == j {"
    with pytest.raises(InvalidInput, match="beyond 4503599627370496"):
        compiled(f"{text} B[i] = A[(i - j) * 1000000000000, 5] }} }} }}\n}}")


def test_conditions_fit_in_64_bits() -> None:
    with pytest.raises(InvalidInput, match="beyond 4503599627370496"):
        compiled("fn f(A: f32[8], out B: f32[8]) { par 8 i { if i < 99999999999999999999 { B[i] = A[i] } } }")


def test_numbers_that_simplification_multiplies_fit_in_64_bits() -> None:
    large = 2**50
    text = f"fn f(out B: s32[8]) {{ par 8 i {{ B[i] = s32((i - 5) // {large} // {large} + 2 * i) }} }}"
    (result,) = compiled(text).run()
    np.testing.assert_array_equal(result, [(i - 5) // large // large + 2 * i for i in range(8)])


@pytest.mark.parametrize("level", ["loops", "mapped"])
@pytest.mark.parametrize("index", ["(d0 * 9007199254740992) mod 8", "d0 floordiv 9007199254740992"])
def test_maps_of_text_fit_in_64_bits(level: str, index: str) -> None:
    text = compiled("fn f(A: f32[8], out B: f32[8]) { par 8 i { B[i] = A[i] } }").ir(level)
    assert "(d0) -> (d0), d0 in [0, 7]" in text
    with pytest.raises(InvalidInput, match="no number beyond 4503599627370496"):
        xgpu.compile(text.replace("(d0) -> (d0), d0 in [0, 7]", f"(d0) -> ({index}), d0 in [0, 7]"))


def test_an_extent_of_another_type() -> None:
    text = compiled("fn f(A: f32[8], out B: f32[8]) { par 8 i { B[i] = A[i] } }").ir("loops")
    with pytest.raises(InvalidInput, match="extent"):
        xgpu.compile(text.replace("extent = 8 : i64", 'extent = "8"'))


@pytest.mark.parametrize("step", ["a{k} // 2 + a{k} % 3", "(a{k} + 1) % (1000 + {k})", "a{k} + a{k}"])
def test_names_of_names_of_indices(step: str) -> None:
    lets = "\n".join(f"let a{k + 1} = {step.format(k=k)}" for k in range(300))
    with pytest.raises(InvalidInput) as caught:
        compiled(f"fn f(A: f32[8], out B: f32[8]) {{ par 8 i {{ let a0 = i\n{lets}\n B[i] = A[a300 % 8] }} }}")
    assert caught.value.location is not None
    assert caught.value.location.line > 1


def test_expressions_of_python_are_limited_like_those_of_text() -> None:
    @loops.program
    def f(A: loops.f32[8], B: loops.out(loops.f32[8])):  # type: ignore[no-untyped-def, valid-type]
        with loops.par(8) as i:
            for _ in range(60):
                i = i + i
            B[i] = A[i]

    with pytest.raises(InvalidInput, match="more than 200 operators"):
        xgpu.compile(f)


def test_unrolled_loops() -> None:
    text = """fn f(A: f32[32], out B: f32[32]) {
      par 32 i {
        new r: f32[4]
        seq 4 k { r[k] = 0.0 }
        seq 1000 q { seq 1000 p { seq 4 k { r[k] += A[i] } }
          r[q % 4] += A[i] }
        B[i] = r[0]
      }
    }"""
    with pytest.raises(Unsupported, match="seq 'q' says which registers are meant"):
        compiled(text).ir("emitted")
    with pytest.raises(Unsupported, match="at most 1024 iterations"):
        compiled(text.replace("seq 1000 q", "seq 100000 q"))


def test_a_buffer_of_a_block_whose_loop_is_long_is_in_shared_memory() -> None:
    text = "fn f(A: f32[64], out B: f32[64]) { par 1 b { new s: f32[4]\n seq EXTENT k { s[k % 4] = 1.0 }\n"
    text += "par 64 i { B[i] = A[i] + s[3] } } }"
    assert 'memory = "register"' in compiled(text.replace("EXTENT", "100")).ir("mapped")
    assert 'memory = "shared"' in compiled(text.replace("EXTENT", "100000")).ir("mapped")


def test_a_buffer_larger_than_any_shared_memory() -> None:
    text = "fn f(A: s32[4], out B: s32[4]) {\n par 4 p {\n  new h: s32[2147483647, 51]\n"
    text += "  par 51 i { h[0, i] = A[p] }\n  B[p] = h[0, 3]\n }\n}"
    with pytest.raises(Unsupported, match="at most 1048576 elements, this one 109521665997") as caught:
        _ = compiled(text).kernels[0].ptx
    assert caught.value.location is not None
