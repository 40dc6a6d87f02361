"""Kernels of loops that are matrix products: tensor cores multiply them, or a reason says why not."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xgpu
from xgpu.errors import InvalidInput, KernelFault
from xgpu.interface.nest_explanation import explain_nests
from xgpu.loop_language.build import build
from xgpu.loop_language.load import print_loops
from xgpu.loop_language.parser import parse

from .te import compiled

_TEXT = """fn f(A: {dtype}[{a}], B: {dtype}[{b}], bias: f32[128], out C: f32[128, 128]{out}) {{
  par 2 bm {{ par 2 bn {{
    new sum: f32[64, 64]
    par 64 i {{ par 64 j {{ sum[i, j] = 0.0 }} }}
    seq 3 k{stages} {{
      {copies}
      par 64 i{mma} {{ par 64 j {{ seq 64 c {{ sum[i, j] += f32({left}) * f32({right}) }} }} }}
    }}
    par 64 i {{ par 64 j {{
      {result}
    }} }}
  }} }}
}}"""
_COPIES = """new a: {dtype}[64, 64]
      new b: {dtype}[64, 64]
      par 64 i {{ par 64 c {{ a[i, c] = A[bm * 64 + i, k * 64 + c] }} }}
      par 64 c {{ par 64 j {{ b[c, j] = B[k * 64 + c, bn * 64 + j] }} }}"""
_RESULT = "C[bm * 64 + i, bn * 64 + j] = sum[i, j] * 2.0 + bias[bn * 64 + j]"


def text(dtype: str = "bf16", **changes: str) -> str:
    given = {
        "a": "128, 192",
        "b": "192, 128",
        "out": "",
        "stages": "",
        "copies": _COPIES.format(dtype=dtype),
        "mma": "",
        "left": "a[i, c]",
        "right": "b[c, j]",
        "result": _RESULT,
    }
    return _TEXT.format(dtype=dtype, **(given | changes))


def run(program: Any, *arrays: Any) -> list[Any]:
    checked = program.run(*arrays, sanitize=True)
    for plain, other in zip(program.run(*arrays), checked, strict=True):
        np.testing.assert_array_equal(plain, other)
    return checked


def inputs(numpy: Any = ml_dtypes.bfloat16, a: Any = (128, 192), b: Any = (192, 128)) -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal(a).astype(numpy),
        rng.standard_normal(b).astype(numpy),
        rng.standard_normal(128).astype(np.float32),
    ]


def check(result: Any, product: Any, bias: Any) -> None:
    # Products of 16 bits are exact; 192 of them, of about 1, are added in f32 in any order.
    np.testing.assert_allclose(result, 2 * product + bias, rtol=1e-5, atol=2 * 192 * 2.0**-23 * 16)


@pytest.mark.parametrize(("dtype", "numpy"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
@pytest.mark.parametrize(("target", "emitter"), [("sm_90a", "product"), ("sm_80", "warp_product")])
def test_tensor_cores_multiply(dtype: str, numpy: Any, target: str, emitter: str) -> None:
    program = xgpu.compile(str(build(parse(text(dtype, stages=" #stages(2)"))).module), target=target)
    (kernel,) = program.kernels
    assert kernel.emitter == emitter
    assert re.search(rf'emitter = "{emitter}", schedule = .*tile_m = 64, tile_n = 64.*stages = 2', program.ir("mapped"))
    assert ("wgmma" if emitter == "product" else "mma.sync") in program.ir("ptx")
    a, b, bias = inputs(numpy)
    check(run(program, a, b, bias)[0], a.astype(np.float32) @ b.astype(np.float32), bias)


@pytest.mark.parametrize(
    ("changes", "axes"),
    [
        ({"left": "A[bm * 64 + i, k * 64 + c]", "right": "B[k * 64 + c, bn * 64 + j]", "copies": ""}, "mk,kn"),
        ({"left": "A[i + 64 * bm, c + 64 * k]", "copies": "", "right": "B[bn * 64 + j, k * 64 + c]"}, "mk,nk"),
        ({"left": "B[k * 64 + c, bn * 64 + j]", "right": "A[k * 64 + c, bm * 64 + i]", "copies": ""}, "km,kn"),
        ({"copies": _COPIES.format(dtype="bf16").replace("a[i, c]", "a[c, i]"), "left": "a[c, i]"}, "mk,kn"),
        (
            {
                "mma": " #mma",
                "copies": _COPIES.format(dtype="bf16").replace("par 64 i { par 64 c", "par 64 c { par 64 i"),
            },
            "mk,kn",
        ),
    ],
)
def test_operands_as_they_lie(changes: dict[str, str], axes: str) -> None:
    left, right = axes.split(",")
    sizes = {"m": 128, "n": 128, "k": 192}
    shapes = [tuple(sizes[axis] for axis in each) for each in (left, right)]
    a, b = (", ".join(map(str, shape)) for shape in shapes)
    program = compiled(text(a=a, b=b, **changes))
    assert program.kernels[0].emitter == "product"
    values = inputs(a=shapes[0], b=shapes[1])
    wide = [value.astype(np.float32) for value in values[:2]]
    check(run(program, *values)[0], np.einsum(f"{left},{right}->mn", *wide), values[2])


def test_a_result_that_is_turned() -> None:
    program = compiled(text(result="C[bn * 64 + j, bm * 64 + i] = sum[i, j] * 2.0 + bias[bn * 64 + j]"))
    assert program.kernels[0].emitter == "product"
    a, b, bias = inputs()
    check(run(program, a, b, bias)[0].T, a.astype(np.float32) @ b.astype(np.float32), bias)


def test_several_results_and_batches() -> None:
    program = compiled("""fn f(A: bf16[3, 64, 128], B: bf16[3, 128, 64], r: f32[3, 64],
        out C: f32[3, 64, 64], out D: bf16[3, 64, 64]) {
      par 3 z { par 1 bm {
        new sum: f32[64, 64]
        par 64 i { par 64 j { sum[i, j] = 0.0 } }
        seq 2 k { par 64 j { par 64 i { seq 64 c {
          sum[i, j] += f32(A[z, i, k * 64 + c]) * f32(B[z, k * 64 + c, j])
        } } } }
        par 64 i { par 64 j {
          let x = sum[i, j]
          C[z, i, j] = select(x > 0.0, x, x * 0.5)
          D[z, i, j] = bf16(x + r[z, i])
        } }
      } }
    }""")
    assert program.kernels[0].emitter == "product"
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((3, 64, 128), (3, 128, 64)))
    r = rng.standard_normal((3, 64)).astype(np.float32)
    product = a.astype(np.float32) @ b.astype(np.float32)
    c, d = run(program, a, b, r)
    np.testing.assert_allclose(c, np.where(product > 0, product, product * 0.5), rtol=1e-5, atol=2e-4)
    np.testing.assert_allclose(d.astype(np.float32), product + r[:, :, None], rtol=2.0**-8, atol=2e-3)


def test_a_kernel_between_others() -> None:
    body = text()[1:].partition("{\n")[2].rpartition("}")[0]
    program = compiled(
        "fn f(X: f32[128, 192], B: bf16[192, 128], bias: f32[128], out D: f32[128, 128]) {\n"
        "  new A: bf16[128, 192]\n  new C: f32[128, 128]\n"
        f"  par 128 i {{ par 192 j {{ A[i, j] = bf16(X[i, j]) }} }}\n{body}"
        "  par 128 i { par 128 j { D[i, j] = C[j, i] } }\n}"
    )
    assert [kernel.emitter for kernel in program.kernels] == ["nest", "product", "nest"]
    a, b, bias = inputs()
    check(run(program, a.astype(np.float32), b, bias)[0].T, a.astype(np.float32) @ b.astype(np.float32), bias)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"result": "if i < 9 { C[bm * 64 + i, bn * 64 + j] = sum[i, j] }"}, "does not write results of its sums"),
        ({"result": "C[bm * 64 + i, bn * 64 + j] = sum[j, i]"}, "accesses of one loop go through different tiles"),
        ({"result": "C[bn * 64 + j, bm * 64 + i] = sum[i, j] + f32(A[0, 0])"}, "an index is no tile's number"),
        ({"result": "C[127 - bm * 64 - i, bn * 64 + j] = sum[i, j]"}, "no sum of multiples of loops' variables"),
        (
            {"result": "C[bm * 64 + i, bn * 64 + j] = select(c64(sum[i, j]) == c64(0.0), 1.0, 2.0)"},
            "computed from complex numbers",
        ),
        ({"mma": " #mma #threads(256)"}, "'#threads' or '#vector' says how threads run its loops"),
        ({"mma": " #mma #thread"}, "a pragma says that threads run a loop inside of its blocks"),
        ({"copies": _COPIES.format(dtype="bf16").replace("64]", "64] #pad(8)", 1)}, "'#pad' says how a tile lies"),
        ({"left": "b[i, c]"}, "an index is no tile's number times its size"),
        ({"left": "a[i, c] * a[i, c]"}, "the last statement of a step is no sum of products of 16-bit elements"),
        ({"a": "128, 256"}, "its blocks and steps go through 192 of 256 elements of an array"),
        ({"copies": _COPIES.format(dtype="bf16").replace("= A[", "= A[0, 0] * A[")}, "expected a tile to be a copy"),
        ({"copies": _COPIES.format(dtype="bf16") + "\n par 64 i { a[i, i] = bf16(1.0) }"}, "written by one statement"),
    ],
)
def test_reasons(changes: dict[str, str], message: str) -> None:
    source = text(**({"mma": " #mma"} | changes))
    with pytest.raises(InvalidInput) as caught:
        compiled(source)
    assert message in str(caught.value)
    assert "'#mma': " in str(caught.value)


def test_no_tensor_cores_if_a_program_says_so() -> None:
    program = compiled(text(mma=" #no_mma"))
    assert program.kernels[0].emitter == "nest"
    a, b, bias = inputs()
    check(run(program, a, b, bias)[0], a.astype(np.float32) @ b.astype(np.float32), bias)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (text(stages=" #stages(16)", mma=" #mma"), "'#stages(16)' stands on the steps of a matrix product"),
        ("fn f(inout A: f32[8]) { seq 4 k #stages(2) { par 8 i { A[i] += 1.0 } } }", "'#stages(2)': expected a tile"),
    ],
)
def test_stages_that_cannot_be(source: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        compiled(source)
    assert message in str(caught.value)


def test_steps_run_ahead_without_tensor_cores_too() -> None:
    program = compiled(text(stages=" #stages(2)", mma=" #no_mma"))
    assert program.kernels[0].emitter == "nest"
    a, b, bias = inputs()
    check(run(program, a, b, bias)[0], a.astype(np.float32) @ b.astype(np.float32), bias)
    barriers = compiled(text(mma=" #no_mma")).ir("mapped").count("xgpu.barrier")
    assert program.ir("mapped").count("xgpu.barrier") == barriers - 1


def test_pragmas_are_printed() -> None:
    source = text(stages=" #stages(2)", mma=" #mma")
    module = build(parse(source)).module
    written = print_loops(module)
    assert "seq 3 |k| #stages(2) {" in written
    assert "par 64 |i| #mma {" in written
    assert str(build(parse(written)).module) == str(module)
    mapped = compiled(source).modules["mapped"]
    assert print_loops(mapped) == written


def test_what_was_decided_is_explained() -> None:
    told = explain_nests(compiled(text()))
    assert "a matrix product, which warp groups multiply (wgmma), sums in registers" in told
    assert "#xgpu.schedule<tile_m = 64, tile_n = 64, tile_k = 64" in told


def test_levels_are_accepted_back() -> None:
    program = compiled(text())
    for level in ("loops", "mapped", "tiles", "emitted"):
        assert xgpu.compile(program.ir(level)).ir("ptx") == program.ir("ptx")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("stages = 8", "stages = 1", "stages = 1: expected a number from 2 to 16"),
        ('emitter = "product"', 'emitter = "warp_product"', "unknown number 'groups' of its schedule"),
        ('combiner = "add"', 'combiner = "maximum"', "attribute 'emitter': expected a matrix product"),
        ('emitter = "product", ', "", "expected the attributes 'emitter' and 'schedule', or neither"),
    ],
)
def test_edited_decisions(old: str, new: str, message: str) -> None:
    mapped = compiled(text()).ir("mapped")
    assert old in mapped
    with pytest.raises(InvalidInput) as caught:
        xgpu.compile(mapped.replace(old, new))
    assert message in str(caught.value)


def test_a_wait_that_is_missing_is_reported() -> None:
    source = text(stages=" #stages(3)")
    program = xgpu.compile(str(build(parse(source)).module), target="sm_80")
    emitted = program.ir("emitted")
    waits = re.findall(r'.*"xgpu.async_wait"\(\).*\n', emitted)
    assert waits
    a, b, bias = inputs()
    without = xgpu.compile(emitted.replace(waits[-1], ""), target="sm_80")
    with pytest.raises(KernelFault):
        without.run(a, b, bias, sanitize=True)
