"""Instructions of PTX in programs of loops: those that the host knows mean there what they mean on a GPU."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xgpu
from xgpu.errors import InvalidInput, Unsupported
from xgpu.target.nvptx.cubin import find_ptxas

from .te import compiled

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")


def run(text: str, *arrays: Any) -> list[Any]:
    program = compiled(text)
    checked = program.run(*arrays, sanitize=True)
    for plain, other in zip(program.run(*arrays), checked, strict=True):
        np.testing.assert_array_equal(plain, other)
    return checked


_PRODUCT = """fn f(A: {dtype}[16, 16], B: {dtype}[16, 8], C: f32[16, 8], out D: f32[16, 8]) {{
  fully par 32 l #align(32) #block {{
    let r = l / 4
    let c = l % 4 * 2
    asm("mma.sync.aligned.m16n8k16.row.col.f32.{dtype}.{dtype}.f32"
        " {{$0, $1, $2, $3}}, {{$4, $5, $6, $7}}, {{$8, $9}}, {{$10, $11, $12, $13}};",
      pair(A[r, c], A[r, c + 1]), pair(A[r + 8, c], A[r + 8, c + 1]),
      pair(A[r, c + 8], A[r, c + 9]), pair(A[r + 8, c + 8], A[r + 8, c + 9]),
      pair(B[c, r], B[c + 1, r]), pair(B[c + 8, r], B[c + 9, r]),
      C[r, c], C[r, c + 1], C[r + 8, c], C[r + 8, c + 1]) -> (d0: f32, d1: f32, d2: f32, d3: f32)
    D[r, c] = d0
    D[r, c + 1] = d1
    D[r + 8, c] = d2
    D[r + 8, c + 1] = d3
  }}
}}"""


@pytest.mark.parametrize(("dtype", "numpy"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_a_product_of_a_warp(dtype: str, numpy: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(numpy) for shape in ((16, 16), (16, 8)))
    c = rng.standard_normal((16, 8)).astype(np.float32)
    (d,) = run(_PRODUCT.format(dtype=dtype), a, b, c)
    # Products of 16 bits are exact in f32; sums of 17 numbers are rounded up to 17 times.
    np.testing.assert_allclose(d, c + a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5, atol=17 * 2.0**-23 * 8)


@needs_ptxas
def test_a_product_of_a_warp_is_assembled() -> None:
    program = compiled(_PRODUCT.format(dtype="bf16"))
    assert "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" in program.ir("ptx")
    (kernel,) = program.kernels
    assert kernel.assembled.cubin


def _lanes(mode: str, by: int) -> Any:
    lane = np.arange(32)
    other = {"bfly": lane ^ by, "idx": np.full(32, by), "up": lane - by, "down": lane + by}[mode]
    return np.where((other < 0) | (other > 31), lane, other)


@pytest.mark.parametrize("mode", ["bfly", "idx", "up", "down"])
@pytest.mark.parametrize("by", [1, 5, 31])
@pytest.mark.parametrize("is_operand", [False, True])
def test_shuffles(mode: str, by: int, is_operand: bool) -> None:
    clamp = 0 if mode == "up" else 31
    number, operand = ("$2", f", u32({by})") if is_operand else (by, "")
    text = f"""fn f(A: f32[3, 32], out B: f32[3, 32]) {{ par 3 w {{ fully par 32 l {{
      asm("shfl.sync.{mode}.b32 $0, $1, {number}, {clamp}, 0xffffffff;", A[w, l]{operand}) -> x: f32
      B[w, l] = x
    }} }} }}"""
    a = np.random.default_rng(0).random((3, 32), np.float32)
    np.testing.assert_array_equal(run(text, a)[0], a[:, _lanes(mode, by)])


def test_a_sum_of_a_warp_in_a_loop() -> None:
    text = """fn f(A: f32[5, 32], out B: f32[5]) { par 5 w { fully par 32 l {
      new sum: f32
      sum = A[w, l]
      static 5 k {
        let before = sum
        asm("shfl.sync.bfly.b32 $0, $1, $2, 31, 0xffffffff;", before, u32(16 >> k)) -> other: f32
        sum += other
      }
      if l == 0 { B[w] = sum }
    } } }"""
    a = np.random.default_rng(0).integers(0, 100, (5, 32)).astype(np.float32)
    np.testing.assert_array_equal(run(text, a)[0], a.sum(axis=1))


_OTHERS = """fn f(A: f32[40, 8], out B: f32[40, 8], out H: bf16[40, 8], out D: f64[40, 8], out U: u64[40, 8]) {
  par 40 w { fully par 8 l {
    asm("{ .reg .f32 t; add.f32 t, $2, $2; mov.f32 $0, t; ex2.approx.f32 $1, t; }", A[w, l]) -> (x: f32, y: f32)
    asm("cvt.rn.bf16.f32 $0, $1;", x + y) -> h: bf16
    asm("mov.b64 {$0, $1}, $2;", f64(A[w, l])) -> (low: u32, high: s32)
    asm("mov.b64 $0, {$1, $2};", low, high) -> d: f64
    asm("mov.u64 $0, %clock64;") -> u: u64
    B[w, l] = x
    H[w, l] = h
    D[w, l] = d
    U[w, l] = u
  } }
}"""


@needs_ptxas
def test_other_instructions_are_for_gpus() -> None:
    program = compiled(_OTHERS)
    ptx = program.ir("ptx")
    for words in ("ex2.approx.f32", "cvt.rn.bf16.f32", "mov.b64", "%clock64"):
        assert words in ptx
    (kernel,) = program.kernels
    assert kernel.assembled.cubin
    with pytest.raises(Unsupported, match=r"the host does not know the instructions .*; a GPU runs them"):
        program.run(np.zeros((40, 8), np.float32))


def test_what_is_given_as_text_is_checked() -> None:
    loops = compiled(_OTHERS).ir("loops")
    for old, new, message in (
        ("mov.u64 $0, %clock64;", "bar.sync $0;", "'bar' waits for threads that may never come"),
        ("align = 8 : i64, ", "", "'asm' stands inside of 'fully par'"),
        ("mov.u64 $0, %clock64;", "mov.sync.u64 $0, 1;", "its instructions are those of a warp of 32 threads"),
    ):
        assert old in loops
        with pytest.raises(InvalidInput) as caught:
            xgpu.compile(loops.replace(old, new))
        assert message in str(caught.value)


def test_a_condition_of_the_block_keeps_threads_together() -> None:
    text = """fn f(A: f32[4, 32], out B: f32[4, 32]) { par 4 w #block {
      par 32 l { B[w, l] = 0.0 }
      if w < 2 { fully par 32 l { seq 3 k { if w + k < 3 {
        asm("shfl.sync.up.b32 $0, $1, 1, 0, -1;", A[w, l]) -> x: f32
        B[w, l] += x
      } } } }
    } }"""
    a = np.random.default_rng(0).random((4, 32), np.float32)
    times = np.array([3, 2, 0, 0], np.float32)[:, None]
    expected = np.zeros_like(a)
    for w in range(2):
        for _ in range(int(times[w, 0])):
            expected[w] += a[w, _lanes("up", 1)]
    np.testing.assert_array_equal(run(text, a)[0], expected)
