"""Atomic updates of every type and kind, through the whole pipeline, on the host and to machine code."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.dtypes import dtype_of_numpy
from xgpu.errors import Unsupported
from xgpu.levels import pipeline
from xgpu.passes.framework.manager import run
from xgpu.runtime.host_executor import HostKernel, aligned_empty
from xgpu.runtime.packing import packed, unpacked
from xgpu.target.llvm.export import export_llvm_ir
from xgpu.target.nvptx.cubin import assemble, find_ptxas
from xgpu.target.nvptx.ptx import compile_to_ptx
from xgpu.target_machine import HOST

type Array = np.ndarray[Any, Any]

BLOCK = 128
UPDATES = 1 << 15
TARGETS = 37
"""Not a multiple of four: the last word of an array of small elements is not full."""


def kernel_text(element: str, body: str, updates: int, targets: int) -> str:
    """A kernel whose thread ``i`` updates element ``at[i]`` of the output by ``body``, of ``%old`` and ``%x``."""
    return f"""
      func.func @k(%at: tensor<{updates}xi32>, %xs: tensor<{updates}x{element}>, %out: tensor<{targets}x{element}>)
          -> tensor<{targets}x{element}> attributes {{xgpu.kernel, xgpu.inputs = 2 : i64,
          xgpu.block = array<i64: {BLOCK}, 1, 1>, xgpu.grid = array<i64: {updates // BLOCK}, 1, 1>}} {{
        %tid = gpu.thread_id x upper_bound {BLOCK}
        %bid = gpu.block_id x upper_bound {updates // BLOCK}
        %i = "xgpu.apply_indexing"(%tid, %bid) {{map = #xgpu.map<(d0, d1) -> (d1 * {BLOCK} + d0),
            d0 in [0, {BLOCK - 1}], d1 in [0, {updates // BLOCK - 1}]>}} : (index, index) -> index
        %n = tensor.extract %at[%i] : tensor<{updates}xi32>
        %k = arith.index_castui %n : i32 to index
        %x = tensor.extract %xs[%i] : tensor<{updates}x{element}>
        %u = "xgpu.atomic_rmw"(%out, %k) ({{
        ^bb0(%old: {element}):
          {body}
          "xgpu.yield"(%new) : ({element}) -> ()
        }}) : (tensor<{targets}x{element}>, index) -> tensor<{targets}x{element}>
        return %u : tensor<{targets}x{element}>
      }}"""


def launched(text: str, arrays: list[Array]) -> Array:
    """Run a kernel at the emitted level on copies of the arrays; return the last."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        gpu = device(DEFAULT_DEVICE)
        run(module, [*pipeline.optimize(gpu), *pipeline.lower(), *pipeline.to_llvm(HOST, gpu)])
        kernel = HostKernel(module)
    given = []
    for array in arrays:
        given.append(aligned_empty(array.shape, array.dtype))
        given[-1][...] = array
    kernel.launch(given)
    return given[-1]


def update(body: str, at: Array, xs: Array, old: Array) -> Array:
    """Return ``old`` after the updates."""
    dtype = dtype_of_numpy(old.dtype)
    at, xs = (np.resize(array, max(UPDATES, -(-array.size // BLOCK) * BLOCK)) for array in (at, xs))
    given = [at.astype(np.int32), *((packed(each, dtype) if dtype.is_packed else each) for each in (xs, old))]
    result = launched(kernel_text(dtype.signless, body, at.size, old.size), given)
    return unpacked(result, old.shape, dtype) if dtype.is_packed else result


INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.int64, ml_dtypes.int4, ml_dtypes.uint2]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTEGER_UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "addi": lambda old, x: old + x,
    "subi": lambda old, x: old - x,
    "muli": lambda old, x: old * x,
    "andi": lambda old, x: old & x,
    "ori": lambda old, x: old | x,
    "xori": lambda old, x: old ^ x,
    "maxsi": max,
    "minsi": min,
}


def wrapped(value: int, dtype: Any) -> int:
    """The value of an integer type that has the lower bits of ``value``."""
    info = dtype_of_numpy(dtype)
    code = value & ((1 << info.bits) - 1)
    return code - (1 << info.bits) if info.is_signed and code >> (info.bits - 1) else code


def expected_integers(combine: Callable[[Any, Any], Any], at: Array, xs: Array, old: Array) -> list[int]:
    result = [int(value) for value in old]
    for k, x in zip(at.tolist(), xs, strict=True):
        result[k] = wrapped(combine(result[k], int(x)), old.dtype)
    return result


@pytest.mark.parametrize("name", INTEGER_UPDATES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: np.dtype(dtype).name)
def test_integers(dtype: Any, name: str) -> None:
    random = np.random.default_rng(1)
    at = random.integers(0, TARGETS, UPDATES)
    # Few zeros for andi and few ones for ori, so that results depend on most updates.
    few = random.integers(-128, 128, UPDATES)
    codes = {"andi": ~(1 << random.integers(0, 40, UPDATES)), "ori": 1 << random.integers(0, 40, UPDATES)}.get(
        name, few
    )
    if name == "muli":
        codes = codes | 1
    xs, old = (np.array([wrapped(int(v), dtype) for v in each]).astype(dtype) for each in (codes, few[:TARGETS]))
    element = dtype_of_numpy(xs.dtype).signless
    if name in ("maxsi", "minsi") and not dtype_of_numpy(xs.dtype).is_signed:
        operation = name.replace("si", "ui")
    else:
        operation = name
    result = update(f"%new = arith.{operation} %old, %x : {element}", at, xs, old)
    assert [int(v) for v in result] == expected_integers(INTEGER_UPDATES[name], at, xs, old)


@pytest.mark.parametrize("name", ["andi", "ori", "xori"])
def test_flags(name: str) -> None:
    random = np.random.default_rng(2)
    at = np.arange(UPDATES) % TARGETS
    # Of each element only a few updates change something.
    xs = random.integers(0, 512, UPDATES) == 0
    if name == "andi":
        xs = ~xs
    old = random.integers(0, 2, TARGETS).astype(np.bool_)
    result = update(f"%new = arith.{name} %x, %old : i1", at, xs, old)
    expected = old.copy()
    {"andi": np.logical_and, "ori": np.logical_or, "xori": np.logical_xor}[name].at(expected, at, xs)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, np.bool_, np.complex64, np.complex128])
def test_overwriting(dtype: Any) -> None:
    at = np.arange(UPDATES) % TARGETS
    values = np.arange(TARGETS) % 4
    xs = np.array([values[k] for k in at]).astype(dtype)
    element = dtype_of_numpy(xs.dtype).signless
    result = update(
        f"%yes = arith.constant true\n%new = arith.select %yes, %x, %x : {element}", at, xs, (values == 0).astype(dtype)
    )
    np.testing.assert_array_equal(result.astype(np.complex128), xs[:TARGETS].astype(np.complex128))


@pytest.mark.parametrize("operation", ["addf", "subf", "mulf"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_floats(dtype: Any, operation: str) -> None:
    """Values for which the order of the updates makes no difference: small integers, and powers of two."""
    random = np.random.default_rng(3)
    at = np.concatenate([np.arange(UPDATES) % TARGETS])
    sign = np.where(np.arange(UPDATES) // TARGETS % 2, -1, 1)
    if operation == "mulf":
        xs = np.array(2.0 ** (sign * (np.arange(UPDATES) // TARGETS // 2 % 3 % 2))) * random.choice([-1, 1], UPDATES)
    else:
        xs = sign * (np.arange(UPDATES) // TARGETS // 2 % 2)
    xs, old = xs.astype(dtype), random.integers(-4, 5, TARGETS).astype(dtype)
    result = update(f"%new = arith.{operation} %old, %x : {dtype_of_numpy(xs.dtype).signless}", at, xs, old)
    expected = old.astype(np.float64)
    {"addf": np.add, "subf": np.subtract, "mulf": np.multiply}[operation].at(expected, at, xs.astype(np.float64))
    np.testing.assert_array_equal(result.astype(np.float64), expected)


@pytest.mark.parametrize("operation", ["maximumf", "minimumf"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_extremes_of_special_values(dtype: Any, operation: str, assert_same: Callable[..., None]) -> None:
    """NaN of either sign wins wherever it comes from, and -0 is less than +0."""
    negative_nan = np.copysign(np.array(np.nan), -1.0)
    special = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan, negative_nan, 1e-7, -1e-7])
    old, xs = (each.reshape(-1).astype(dtype) for each in np.meshgrid(special, special))
    result = update(
        f"%new = arith.{operation} %old, %x : {dtype_of_numpy(old.dtype).signless}", np.arange(old.size), xs, old
    )
    wide = [each.astype(np.float64) for each in (old, xs)]
    expected = (np.maximum if operation == "maximumf" else np.minimum)(*wide)
    zeros = (wide[0] == 0) & (wide[1] == 0)
    both = (
        np.signbit(wide[0]) & np.signbit(wide[1])
        if operation == "maximumf"
        else np.signbit(wide[0]) | np.signbit(wide[1])
    )
    expected = np.where(zeros, np.where(both, -0.0, 0.0), expected)
    assert_same(result, expected.astype(dtype), operation)


@pytest.mark.parametrize("operation", ["maximumf", "minimumf"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_extremes_of_many(dtype: Any, operation: str, assert_same: Callable[..., None]) -> None:
    random = np.random.default_rng(4)
    at = random.integers(0, TARGETS, UPDATES)
    xs = random.standard_normal(UPDATES).astype(dtype)
    xs[at == 5] = np.nan
    xs[at == 6] = np.abs(xs[at == 6])
    old = random.standard_normal(TARGETS).astype(dtype)
    result = update(f"%new = arith.{operation} %old, %x : {dtype_of_numpy(xs.dtype).signless}", at, xs, old)
    expected = old.astype(np.float64)
    with np.errstate(invalid="ignore"):
        (np.maximum if operation == "maximumf" else np.minimum).at(expected, at, xs.astype(np.float64))
    assert_same(result, expected.astype(dtype), operation)


def test_narrow_floats() -> None:
    at, dtype = np.arange(UPDATES) % TARGETS, ml_dtypes.float8_e4m3fn
    xs = np.where(np.arange(UPDATES) // TARGETS % 2, -1, 1).astype(dtype)
    old = (np.arange(TARGETS) % 8).astype(dtype)
    body = """%a = arith.extf %old : f8E4M3FN to f16
              %b = arith.extf %x : f8E4M3FN to f16
              %c = arith.addf %a, %b : f16
              %new = arith.truncf %c : f16 to f8E4M3FN"""
    expected = old.astype(np.float64)
    np.add.at(expected, at, xs.astype(np.float64))
    np.testing.assert_array_equal(update(body, at, xs, old).astype(np.float64), expected)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(dtype: Any) -> None:
    random = np.random.default_rng(5)
    at = random.integers(0, TARGETS, UPDATES)
    xs = (random.integers(-8, 8, UPDATES) + 1j * random.integers(-8, 8, UPDATES)).astype(dtype)
    old = np.arange(TARGETS).astype(dtype)
    part = dtype_of_numpy(xs.dtype).signless
    real = part.removeprefix("complex<").removesuffix(">")
    body = f"""%a = complex.re %old : {part}
               %b = complex.re %x : {part}
               %c = complex.im %old : {part}
               %d = complex.im %x : {part}
               %re = arith.addf %a, %b : {real}
               %im = arith.addf %c, %d : {real}
               %new = complex.create %re, %im : {part}"""
    expected = old.copy()
    np.add.at(expected, at, xs)
    np.testing.assert_array_equal(update(body, at, xs, old), expected)


def test_condition_on_the_old_element() -> None:
    """A region with control flow in it: counts up to a limit."""
    body = """%limit = arith.constant 100 : i32
              %below = arith.cmpi slt, %old, %limit : i32
              %new = scf.if %below -> (i32) {
                %more = arith.addi %old, %x : i32
                scf.yield %more : i32
              } else {
                scf.yield %old : i32
              }"""
    at = np.arange(UPDATES) % TARGETS
    result = update(body, at, np.ones(UPDATES, np.int32), np.arange(TARGETS).astype(np.int32) * 3)
    np.testing.assert_array_equal(result, np.maximum(100, np.arange(TARGETS) * 3))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_rows(dtype: Any) -> None:
    """Rows that are added to the rows an index names: the additions of a thread become those of vectors."""
    rows, columns, targets = 512, 256, 7
    element = dtype_of_numpy(np.dtype(dtype)).signless
    tensor = f"tensor<{targets}x{columns}x{element}>"
    text = f"""
      func.func @k(%at: tensor<{rows}xi32>, %xs: tensor<{rows}x{columns}x{element}>, %out: {tensor}) -> {tensor}
          attributes {{xgpu.kernel, xgpu.inputs = 2 : i64, xgpu.block = array<i64: 32, 1, 1>,
          xgpu.grid = array<i64: {rows}, 1, 1>}} {{
        %tid = gpu.thread_id x upper_bound 32
        %bid = gpu.block_id x upper_bound {rows}
        %n = tensor.extract %at[%bid] : tensor<{rows}xi32>
        %row = arith.index_castui %n : i32 to index
        %r = "xgpu.loop"(%tid, %bid, %out) ({{
        ^bb0(%s: index, %i: index, %j: index, %acc: {tensor}):
          %x = tensor.extract %xs[%i, %j] : tensor<{rows}x{columns}x{element}>
          %u = "xgpu.atomic_rmw"(%acc, %row, %j) ({{
          ^bb0(%old: {element}):
            %new = arith.subf %old, %x : {element}
            "xgpu.yield"(%new) : ({element}) -> ()
          }}) : ({tensor}, index, index) -> {tensor}
          "xgpu.yield"(%u) : ({tensor}) -> ()
        }}) {{map = #xgpu.map<(d0, d1)[s0] -> (d1, d0 * 8 + s0), d0 in [0, 31], d1 in [0, {rows - 1}], s0 in [0, 7]>}}
            : (index, index, {tensor}) -> {tensor}
        return %r : {tensor}
      }}"""
    random = np.random.default_rng(6)
    at = random.integers(0, targets, rows).astype(np.int32)
    xs = (random.integers(0, 2, (rows, columns)) * np.where(np.arange(rows) % 2, 1, -1)[:, None]).astype(dtype)
    old = random.integers(-8, 8, (targets, columns)).astype(dtype)
    expected = old.astype(np.float64)
    np.subtract.at(expected, at, xs.astype(np.float64))
    np.testing.assert_array_equal(launched(text, [at, xs, old]).astype(np.float64), expected)


@pytest.mark.parametrize(("dtype", "body"), [(np.int8, "addi"), (np.int32, "muli"), (np.int64, "muli")])
def test_updates_at_the_same_time(dtype: Any, body: str) -> None:
    """So many that threads of the host meet: without comparing before exchanging, updates are lost here."""
    updates, targets = 1 << 23, 5
    at, factor = np.arange(updates) % targets, 3
    element = dtype_of_numpy(np.dtype(dtype)).signless
    text = kernel_text(element, f"%new = arith.{body} %old, %x : {element}", updates, targets)
    given = [at.astype(np.int32), np.full(updates, factor, dtype), np.ones(targets, dtype)]
    counts = np.bincount(at).tolist()
    modulus = 1 << (8 * np.dtype(dtype).itemsize)
    expected = [1 + factor * n if body == "addi" else pow(factor, n, modulus) for n in counts]
    assert [int(value) for value in launched(text, given)] == [wrapped(value, dtype) for value in expected]


PATHS = {
    "sum": ("f32", "%new = arith.addf %old, %x : f32"),
    "sum of one of a pair": ("bf16", "%new = arith.addf %old, %x : bf16"),
    "maximum as integer": ("f64", "%new = arith.maximumf %old, %x : f64"),
    "bits of a word": ("i1", "%new = arith.ori %old, %x : i1"),
    "part of a word": ("i4", "%new = arith.addi %old, %x : i4"),
    "word": ("f32", "%new = arith.mulf %old, %x : f32"),
    "double word": ("i64", "%new = arith.muli %old, %x : i64"),
    "store": ("f16", "%c = arith.constant true\n%new = arith.select %c, %x, %x : f16"),
    "sum of two parts": (
        "complex<f64>",
        """%a = complex.re %old : complex<f64>
           %b = complex.im %old : complex<f64>
           %c = complex.re %x : complex<f64>
           %re = arith.addf %a, %c : f64
           %im = arith.addf %b, %c : f64
           %new = complex.create %re, %im : complex<f64>""",
    ),
    "two double words": (
        "complex<f64>",
        """%a = complex.re %old : complex<f64>
           %b = complex.im %old : complex<f64>
           %new = complex.create %b, %a : complex<f64>""",
    ),
    "store of two double words": (
        "complex<f64>",
        "%c = arith.constant true\n%new = arith.select %c, %x, %x : complex<f64>",
    ),
}


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("path", PATHS)
def test_machine_code(path: str, target: str) -> None:
    """ptxas takes the instructions."""
    element, body = PATHS[path]
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(kernel_text(element, body, 256, 8))
        gpu = device(target)
        steps = [*pipeline.optimize(gpu), *pipeline.lower(), *pipeline.to_llvm(gpu.machine, gpu)]
        if target == "sm_80" and "two double words" in path:
            with pytest.raises(Unsupported, match=r"compute capability 9\.0"):
                run(module, steps)
            return
        run(module, steps)
        assembled = assemble(compile_to_ptx(export_llvm_ir(module), target), target)
    assert assembled.cubin and assembled.spill_bytes == 0
