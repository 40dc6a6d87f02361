"""What docs/loops.md promises, on the host executor."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .te import compiled


def run(text: str, *arrays: Any) -> list[Any]:
    program = compiled(text)
    checked = program.run(*arrays, sanitize=True)
    for plain, other in zip(program.run(*arrays), checked, strict=True):
        np.testing.assert_array_equal(plain, other)
    return checked


def test_effects_of_a_par_are_seen_after_it() -> None:
    text = "fn f(A: f32[32], out B: f32[32]) {\n par 1 b {\n new t: f32[32]\n par 32 i { t[i] = A[i] }\n"
    (result,) = run(text + "par 32 i { B[i] = t[31 - i] }\n}\n}", np.arange(32, dtype=np.float32))
    np.testing.assert_array_equal(result, np.arange(32)[::-1])


def test_effects_of_a_kernel_are_seen_by_the_next() -> None:
    text = """fn f(A: s32[1000], out B: s32[1000]) {
      new t: s32[1000]
      par 1000 i { t[i] = A[i] * 2 }
      par 1000 i { B[i] = t[999 - i] + 1 }
      par 10 i { B[i] += t[i] }
    }"""
    values = np.arange(1000, dtype=np.int32)
    program = compiled(text)
    assert len(program.kernels) == 3
    expected = values[::-1] * 2 + 1
    expected[:10] += values[:10] * 2
    np.testing.assert_array_equal(run(text, values)[0], expected)


def test_inout_leaves_the_argument_as_it_is() -> None:
    values = np.arange(8, dtype=np.float32)
    (result,) = run("fn f(inout A: f32[8]) { par 4 i { A[i] *= 2.0 } }", values)
    np.testing.assert_array_equal(values, np.arange(8))
    np.testing.assert_array_equal(result, np.where(np.arange(8) < 4, 2, 1) * values)


def test_a_seq_outside_runs_in_one_block() -> None:
    text = "fn f(inout A: f32[40]) { seq 5 k { par 40 i { A[i] += A[i] } } }"
    (result,) = run(text, np.ones(40, np.float32))
    np.testing.assert_array_equal(result, np.full(40, 32))
    (kernel,) = compiled(text).kernels
    assert (kernel.grid[0], kernel.block[0]) == (1, 64)


def test_registers_of_a_thread_and_unrolled_loops() -> None:
    text = """fn f(A: f32[10, 4], out B: f32[10, 4]) {
      par 10 i {
        new r: f32[4]
        seq 4 k { r[k] = A[i, k] }
        seq 4 k { B[i, k] = r[3 - k] }
      }
    }"""
    values = np.arange(40, dtype=np.float32).reshape(10, 4)
    np.testing.assert_array_equal(run(text, values)[0], values[:, ::-1])


def test_conditions() -> None:
    text = """fn f(out B: s32[100]) {
      par 100 i {
        B[i] = 0
        if 10 <= i and i < 20 { B[i] = 1 } else { B[i] = 2 }
        if i % 3 == 1 { B[i] += 10 } else if i > 50 { B[i] += 100 }
      }
    }"""
    i = np.arange(100)
    expected = np.where((i >= 10) & (i < 20), 1, 2) + np.where(i % 3 == 1, 10, np.where(i > 50, 100, 0))
    np.testing.assert_array_equal(run(text)[0], expected)


def test_sums_under_conditions() -> None:
    """A row of a triangle is added in a register, and written once."""
    text = """fn f(A: f32[40, 40], out s: f32[40]) { par 40 i {
      s[i] = 0.0
      seq 40 k { if k <= i { s[i] += A[i, k] } }
    } }"""
    values = np.arange(1600, dtype=np.float32).reshape(40, 40)
    np.testing.assert_array_equal(run(text, values)[0], np.tril(values).sum(1))
    assert compiled(text).ir("ptx").count("st.global") == 1


def test_elements_that_have_no_value_are_not_read() -> None:
    text = """fn f(A: f32[4, 40, 8], out s: f32[4, 40]) { par 4 b {
      new t: f32[40]
      par 40 i { if i < 30 { t[i] = 0.0 } }
      par 40 i { seq 8 k { if i < 30 { t[i] += A[b, i, k] } } }
      par 40 i { if i < 30 { s[b, i] = t[29 - i] } else { s[b, i] = 0.0 } }
    } }"""
    values = np.arange(1280, dtype=np.float32).reshape(4, 40, 8)
    expected = np.zeros((4, 40), np.float32)
    expected[:, :30] = values[:, 29::-1].sum(2)
    np.testing.assert_array_equal(run(text, values)[0], expected)


def test_indices_are_values_where_values_are_wanted() -> None:
    text = "fn f(out B: f32[6, 7]) { par 6 i { par 7 j { B[i, j] = select(j <= i, f32(i * 7 + j), -1.0) } } }"
    i, j = np.mgrid[:6, :7]
    np.testing.assert_array_equal(run(text)[0], np.where(j <= i, i * 7 + j, -1))


@pytest.mark.parametrize(
    ("dtype", "numpy"),
    [
        ("s8", np.int8),
        ("u16", np.uint16),
        ("s64", np.int64),
        ("f16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("f64", np.float64),
        ("f8e4m3fn", ml_dtypes.float8_e4m3fn),
    ],
)
def test_types(dtype: str, numpy: Any) -> None:
    text = f"""fn f(A: {dtype}[50], out B: {dtype}[50], out M: {dtype}[50]) {{
      par 50 i {{
        B[i] = A[i]
        B[i] += A[i]
        M[i] = max(A[i], {dtype}(3))
      }}
    }}"""
    values = np.arange(50).astype(numpy)
    doubled, largest = run(text, values)
    np.testing.assert_array_equal(doubled.astype(np.float64), (values + values).astype(np.float64))
    np.testing.assert_array_equal(largest.astype(np.float64), np.maximum(values.astype(np.float64), 3))


def test_truth_values_and_complex_numbers() -> None:
    text = """fn f(A: pred[9], z: c64[9], out B: pred[9], out w: c64[9]) {
      par 9 i {
        B[i] = not A[i] and i % 2 == 0
        w[i] = z[i] * z[i]
      }
    }"""
    truth = np.arange(9) % 3 == 0
    z = (np.arange(9) + 1j).astype(np.complex64)
    both, squares = run(text.replace("i % 2 == 0", "s32(i % 2) == 0"), truth, z)
    np.testing.assert_array_equal(both, ~truth & (np.arange(9) % 2 == 0))
    np.testing.assert_allclose(squares, z * z)


def test_special_values() -> None:
    text = "fn f(A: f32[6], out B: f32[6]) { par 6 i { B[i] = max(A[i], 0.0) + -0.0 } }"
    values = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-45], np.float32)
    (result,) = run(text, values)
    expected = np.array([np.nan, 0.0, 0.0, np.inf, 0.0, 1e-45], np.float32)
    np.testing.assert_array_equal(result, expected)


def test_combiners() -> None:
    text = """fn f(A: s32[8], inout S: s32[5]) {
      seq 8 k {
        S[0] *= A[k]
        S[1] min= A[k]
        S[2] &= A[k]
        S[3] |= A[k]
        S[4] ^= A[k]
      }
    }"""
    a = np.array([3, 5, 7, 1, 9, 11, 13, 15], np.int32)
    (s,) = run(text, a, np.array([1, 100, -1, 0, 0], np.int32))
    reduced = [np.multiply, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor]
    np.testing.assert_array_equal(s, [operation.reduce(a) for operation in reduced])


@pytest.mark.parametrize("pragma", ["#block", "#grid", "#threads(32)", "#vector(2)", "#together(2)", "#thread"])
def test_pragmas_change_no_result(pragma: str) -> None:
    text = f"fn f(A: f32[6, 64], out B: f32[6, 64]) {{ par 6 i {pragma if 'vector' not in pragma else ''} "
    text += f"{{ par 64 j {pragma if 'vector' in pragma else ''} {{ B[i, j] = A[i, j] + 1.0 }} }} }}"
    values = np.arange(384, dtype=np.float32).reshape(6, 64)
    np.testing.assert_array_equal(run(text, values)[0], values + 1)


def test_a_product_at_positions_in_memory() -> None:
    text = """size M = 20, N = 33, K = 17
    fn gemm(A: f32[M * K], B: f32[K * N], inout C: f32[M * N]) {
      par M i { par N j { seq K k {
        C[i * N + j] += A[i * K + k] * B[k * N + j]
      } } }
    }"""
    a, b, c = (np.random.default_rng(0).random(size, np.float32) for size in (20 * 17, 17 * 33, 20 * 33))
    (result,) = run(text, a, b, c)
    expected = c.reshape(20, 33) + a.reshape(20, 17) @ b.reshape(17, 33)
    np.testing.assert_allclose(result.reshape(20, 33), expected, rtol=1e-5)


def test_runs_on_the_device_of_jax() -> None:
    program = compiled("fn f(A: f32[40], inout B: f32[40]) { par 40 i { B[i] += A[39 - i] } }")
    a, b = np.arange(40, dtype=np.float32), np.ones(40, np.float32)
    np.testing.assert_array_equal(np.asarray(program(a, b)), b + a[::-1])


_CONVOLUTION = """fn f(x: f32[40, 64], w: f32[4, 64], out y: f32[40, 64]) {
  par 40 t { par 64 c #vector(4) {
    new sum: f32
    sum = 0.0
    seq 4 k { if t - k >= 0 { sum += w[k, c] * x[t - k, c] } }
    y[t, c] = sum
  } }
}"""


def test_short_loops_of_a_thread_with_several_iterations_are_written_out() -> None:
    """So that what neighbouring iterations read is one access, whatever is read under conditions."""
    program = compiled(_CONVOLUTION)
    ptx = program.ir("ptx")
    assert "ld.global.nc.v4" in ptx
    assert "ld.global.nc.b32" not in ptx
    assert "st.global.v4" in ptx
    x, w = (np.random.default_rng(0).random(shape, np.float32) for shape in ((40, 64), (4, 64)))
    expected = sum(w[k] * np.pad(x, ((k, 0), (0, 0)))[:40] for k in range(4))
    np.testing.assert_allclose(run(_CONVOLUTION, x, w)[0], expected, rtol=1e-6)
    longer = compiled(_CONVOLUTION.replace("seq 4 k", "seq 9 k").replace("w: f32[4", "w: f32[9"))
    assert longer.ir("emitted").count("xgpu.loop") > program.ir("emitted").count("xgpu.loop")


def test_complex_literals() -> None:
    text = "fn f(A: c64[8], out B: c64[8], out C: c128[8]) { par 8 i { B[i] = A[i] * 2.0 + c64(3)\n C[i] = -inf } }"
    a = (np.arange(8) + 1j).astype(np.complex64)
    b, c = run(text, a)
    np.testing.assert_array_equal(b, a * 2 + 3)
    np.testing.assert_array_equal(c.real, np.full(8, -np.inf))
    np.testing.assert_array_equal(c.imag, np.zeros(8))


def test_buffers_made_between_statements_of_one_kernel() -> None:
    text = "fn f(inout A: s32[4]) {\n A[0] = 1\n new t: s32[4]\n t[2] = A[0] + 1\n A[1] = t[2]\n}"
    (result,) = run(text, np.zeros(4, np.int32))
    np.testing.assert_array_equal(result, [1, 2, 0, 0])


@pytest.mark.parametrize(
    "loops",
    [
        "par 10 w { fully par 16 l {",
        "par 10 w { fully par 16 l #align(32) {",
        "par 10 w #block { fully par 16 l #threads(64) {",
        "par 2 b #block { par 5 u { fully par 16 l #align(8) #block { let w = b * 5 + u",
    ],
)
def test_iterations_that_run_at_once(loops: str) -> None:
    closing = "}" * loops.count("{")
    text = f"fn f(A: f32[10, 16], out B: f32[10, 16]) {{ {loops}\n B[w, l] = A[9 - w, 15 - l] * 2.0 {closing} }}"
    a = np.random.default_rng(0).random((10, 16), np.float32)
    np.testing.assert_array_equal(run(text, a)[0], a[::-1, ::-1] * 2)


def test_a_par_inside_of_an_iteration_that_does_other_things() -> None:
    text = """fn f(A: f32[4, 16, 8], out B: f32[4, 16, 8]) { par 4 b {
      new tile: f32[16, 8]
      par 16 i { par 8 j { tile[i, j] = A[b, i, j] } }
      par 16 i {
        new sum: f32
        new kept: f32[8]
        sum = 0.0
        seq 8 k { sum += tile[i, k] }
        par 8 j { kept[j] = tile[i, j] * 2.0 }
        par 2 h { par 4 j { B[b, i, h * 4 + j] = kept[h * 4 + j] - sum } }
      }
    } }"""
    values = np.arange(512, dtype=np.float32).reshape(4, 16, 8)
    expected = values * 2 - values.sum(axis=2, keepdims=True)
    np.testing.assert_array_equal(run(text, values)[0], expected)


def test_random_arguments_that_are_indices_are_in_bounds() -> None:
    """What is out of bounds there is undefined, so that programs could not be tried out or checked."""
    program = compiled("""fn f(A: f32[40], I: s32[300], J: u8[300], N: s32[300], inout B: f32[300]) {
      par 300 i { B[i] += A[I[i]] + f32(N[i]) + A[s32(J[i])] }
    }""")
    a, i, j, n, b = program.random_inputs()
    assert i.min() >= 0 and i.max() == 39 and j.max() == 39
    assert n.min() < -1000
    np.testing.assert_array_equal(
        program.run(a, i, j, n, b, sanitize=True)[0], b + (a[i] + n.astype(np.float32) + a[j])
    )
