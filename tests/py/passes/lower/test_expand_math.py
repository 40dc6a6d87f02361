"""Accuracy and special values of the functions that expand-math writes, run on the host through the real pipeline.

An error is counted in units in the last place of the exact result, which numpy's long double functions stand for. On
the GPU the same operations run, but for the functions that use approximate instructions in f32.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.levels import pipeline
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.passes.lower.expand_math import EXPANSIONS
from xgpu.runtime.host_executor import HostKernel, aligned_empty
from xgpu.target.llvm.export import export_llvm_ir
from xgpu.target.nvptx.cubin import assemble, find_ptxas
from xgpu.target.nvptx.ptx import compile_to_ptx
from xgpu.target_machine import HOST, NVVM, TargetMachine
from xgpu.tools.accuracy import exact
from xgpu.tools.accuracy.formats import FORMATS, errors
from xgpu.tools.accuracy.functions import FUNCTIONS as MEASURED

type Array = np.ndarray[Any, Any]

BLOCK = 128
SLOW = ("bessel_i0e", "bessel_i1e", "digamma", "erf", "erfc", "erf_inv", "lgamma")
"""Functions whose exact values take long."""
OWN = [name.removeprefix("xgpu.") for name in EXPANSIONS if name.startswith("xgpu.")]
TYPES: dict[str, np.dtype[Any]] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


@dataclass(frozen=True)
class Function:
    """The exact function, and where it is of interest."""

    exact: Any
    low: float = 0.0
    high: float = 0.0


UNARY = {
    "exp": Function(np.exp, -104, 89),
    "exp2": Function(np.exp2, -150, 128),
    "expm1": Function(np.expm1, -20, 89),
    "tanh": Function(np.tanh, -10, 10),
    "sinh": Function(np.sinh, -90, 90),
    "cosh": Function(np.cosh, -90, 90),
    "log": Function(np.log, 0, 4),
    "log2": Function(np.log2, 0, 4),
    "log1p": Function(np.log1p, -1, 4),
    "asinh": Function(np.arcsinh, -9, 9),
    "acosh": Function(np.arccosh, 1, 9),
    "atanh": Function(np.arctanh, -1, 1),
    "sin": Function(np.sin, -100000.0, 100000.0),
    "cos": Function(np.cos, -9, 9),
    "tan": Function(np.tan, -9, 9),
    "asin": Function(np.arcsin, -1, 1),
    "acos": Function(np.arccos, -1, 1),
    "atan": Function(np.arctan, -9, 9),
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), 0, 4),
    "cbrt": Function(np.cbrt, -9, 9),
    "erf": Function(exact.erf, -6, 6),
    "erfc": Function(exact.erfc, -6, 27),
    "erf_inv": Function(exact.erf_inv, -1, 1),
    "lgamma": Function(exact.lgamma, -9, 9),
    "digamma": Function(exact.digamma, -9, 9),
    "bessel_i0e": Function(exact.bessel_i0e, -20, 20),
    "bessel_i1e": Function(exact.bessel_i1e, -20, 20),
    "logistic": Function(exact.logistic, -20, 20),
}
BINARY = {"powf": Function(np.power), "atan2": Function(np.arctan2)}
FUNCTIONS = UNARY | BINARY
LIMITS = {"exp2": 1.1, "log2": 1.7}
"""Errors allowed to functions that JAX has no operation for, just above the largest known; the others are measured."""
needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="numpy's long double is no wider than f64 here"
)


def limit(operation: str, dtype: np.dtype[Any]) -> float:
    """The error allowed to an operation, in units in the last place."""
    if operation in LIMITS:
        return LIMITS[operation]
    measured = MEASURED[operation.removesuffix("f") if operation == "powf" else operation]
    return measured.bounds[list(FORMATS).index("f32" if dtype == np.float32 else "f64")] or 0.0


def floor(operation: str) -> float:
    """The number below which errors count in units of its last place."""
    return MEASURED[operation].floor if operation in MEASURED else 0.0


def kernel_text(operation: str, element: str, size: int, operands: int) -> str:
    """A kernel at the optimized level that computes ``operation`` of its inputs' elements, each by a thread."""
    tensor = f"tensor<{size}x{element}>"
    parameters = "".join(f"%p{n}: {tensor}, " for n in range(operands))
    loads = "\n".join(f"%x{n} = tensor.extract %p{n}[%at] : {tensor}" for n in range(operands))
    values = ", ".join(f"%x{n}" for n in range(operands))
    text = f"math.{operation} {values} : {element}"
    if operation in OWN:
        text = f'"xgpu.{operation}"({values}) : ({element}) -> {element}'
    return f"""
      module attributes {{xgpu.level = "optimized"}} {{
        func.func @k({parameters}%out: {tensor}) -> {tensor} attributes {{
            xgpu.kernel, xgpu.inputs = {operands} : i64, xgpu.index_bits = 32 : i64,
            xgpu.block = array<i64: {BLOCK}, 1, 1>, xgpu.grid = array<i64: {size // BLOCK}, 1, 1>}} {{
          %tid = gpu.thread_id x upper_bound {BLOCK}
          %bid = gpu.block_id x upper_bound {size // BLOCK}
          %threads = arith.constant {BLOCK} : index
          %first = arith.muli %bid, %threads : index
          %at = arith.addi %first, %tid : index
          {loads}
          %y = {text}
          %u = tensor.insert %y into %out[%at] : {tensor}
          return %u : {tensor}
        }}
      }}"""


def lowered(operation: str, element: str, size: int, machine: TargetMachine) -> ir.Module:
    """The kernel at the llvm level. A context is current."""
    module = ir.Module.parse(kernel_text(operation, element, size, 2 if operation in BINARY else 1))
    run(module, [*pipeline.lower(), *pipeline.to_llvm(machine, device(DEFAULT_DEVICE))])
    return module


def ptx_of(operation: str, element: str) -> str:
    with ir.make_context(), ir.Location.unknown():
        return compile_to_ptx(export_llvm_ir(lowered(operation, element, 64 * BLOCK, NVVM)))


def evaluate(operation: str, *inputs: Array) -> Array:
    """The function's values on the host."""
    count = inputs[0].size
    size = -(-count // BLOCK) * BLOCK
    buffers = [aligned_empty([size], inputs[0].dtype) for _ in range(len(inputs) + 1)]
    for buffer, values in zip(buffers, inputs, strict=False):
        buffer[:count], buffer[count:] = values, 1.0
    element = next(name for name, dtype in TYPES.items() if dtype == inputs[0].dtype)
    with ir.make_context(), ir.Location.unknown():
        kernel = HostKernel(lowered(operation, element, size, HOST))
    kernel.launch(buffers)
    return buffers[-1][:count]


def reference(operation: str, *inputs: Array) -> Array:
    """The exact values, in long double."""
    with np.errstate(all="ignore"):
        return FUNCTIONS[operation].exact(*(values.astype(np.longdouble) for values in inputs))


def check(operation: str, *inputs: Array) -> None:
    got, expected = evaluate(operation, *inputs), reference(operation, *inputs)
    dtype = inputs[0].dtype
    found = errors(got, expected, FORMATS["f32" if dtype == np.float32 else "f64"], floor(operation))
    if operation == "digamma":
        # Its exact function says nothing of the sign of zero.
        found = np.where(inputs[0] == 0, np.where(got == -np.inf, 0, np.inf), found)
    worst = int(np.argmax(found))
    arguments = ", ".join(repr(values[worst]) for values in inputs)
    message = f"{operation}({arguments}) = {expected[worst]!r}, got {got[worst]!r}"
    assert found[worst] <= limit(operation, dtype), message


def all_magnitudes(dtype: np.dtype[Any], strata: int, seed: int = 0) -> Array:
    """One number from each of ``strata`` equal parts of all bit patterns: of every sign and exponent."""
    bits = 8 * dtype.itemsize
    step = (1 << bits) // strata
    generator = np.random.default_rng(seed)
    codes = np.arange(strata, dtype=np.uint64) * np.uint64(step) + generator.integers(0, step, strata, dtype=np.uint64)
    return codes.astype(f"uint{bits}").view(dtype)


def inside(operation: str, dtype: np.dtype[Any], count: int) -> Array:
    function = UNARY[operation]
    return np.random.default_rng(1).uniform(function.low, function.high, count).astype(dtype)


def neighbours(values: Array, reach: int) -> Array:
    """The numbers and those up to ``reach`` steps from them."""
    found = [values]
    for direction in (-np.inf, np.inf):
        moved = values
        for _ in range(reach):
            moved = np.nextafter(moved, values.dtype.type(direction))
            found.append(moved)
    return np.concatenate(found)


def special_numbers(dtype: np.dtype[Any]) -> Array:
    info = np.finfo(dtype)
    odd = 2.0 ** (info.nmant + 1) - 1
    positive = [0, 0.5, 1, 1.5, 2, 3, 101, 1e-3, 1e3, odd, 2 * odd, np.inf, info.max, info.smallest_subnormal]
    values = np.array([*positive, info.smallest_normal, 1 + info.eps, 1 - info.epsneg], dtype)
    return np.concatenate([values, -values, np.array([np.nan], dtype)])


@pytest.mark.parametrize("operation", UNARY)
def test_f32(operation: str) -> None:
    dtype = TYPES["f32"]
    count = 1 << (12 if operation in SLOW else 16)
    check(operation, np.concatenate([all_magnitudes(dtype, count), inside(operation, dtype, count // 4)]))


@needs_long_double
@pytest.mark.parametrize("operation", UNARY)
def test_f64(operation: str) -> None:
    dtype = TYPES["f64"]
    count = 1 << (10 if operation in SLOW else 14)
    check(operation, np.concatenate([all_magnitudes(dtype, count), inside(operation, dtype, count // 4)]))


@needs_long_double
@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("operation", UNARY)
def test_edges(operation: str, element: str) -> None:
    """Special values, and a few numbers around each place where a result over- or underflows or a branch is taken."""
    dtype = TYPES[element]
    info = np.finfo(dtype)
    logs = [math.log(x) for x in (float(info.max), float(info.smallest_normal), float(info.smallest_subnormal))]
    edges = [*logs, *(x / math.log(2) for x in logs), logs[2] - math.log(2), logs[2] / math.log(2) - 1]
    edges += [logs[0] + math.log(2), 17.0, 0.5, 0.7, 1.0, 2 / 3, 4 / 3, math.log(2) / 2, math.pi / 4, math.pi / 2]
    edges += [math.tan(math.pi / 8), 1 / math.tan(math.pi / 8), 4.0, 6.0, 2.0**17, 2.0**30]
    near = neighbours(np.array(edges, dtype), 3)
    check(operation, np.concatenate([special_numbers(dtype), near, -near]))


@needs_long_double
@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("operation", sorted(BINARY))
def test_binary_at_special_values(operation: str, element: str) -> None:
    left, right = np.meshgrid(special_numbers(TYPES[element]), special_numbers(TYPES[element]))
    check(operation, left.ravel(), right.ravel())


@needs_long_double
@pytest.mark.parametrize("element", TYPES)
def test_powers(element: str) -> None:
    """All magnitudes of both arguments, powers near the largest and smallest ones, and roots of numbers near 1."""
    dtype, generator, count = TYPES[element], np.random.default_rng(2), 1 << 14
    base = all_magnitudes(dtype, count, 3)
    check("powf", base, generator.permutation(all_magnitudes(dtype, count, 4)))
    limit = math.log(float(np.finfo(dtype).max))
    base = np.concatenate([np.abs(base[np.isfinite(base) & (base != 0)]), 1 + generator.uniform(-1e-3, 1e-3, count)])
    base = base.astype(dtype)
    base = base[base != 1]
    exponent = generator.uniform(-1.1, 1.1, base.size) * limit / np.log(base.astype(np.float64))
    check("powf", base, exponent.astype(dtype))


@needs_long_double
@pytest.mark.parametrize("element", TYPES)
def test_angles_of_points(element: str) -> None:
    dtype, generator, count = TYPES[element], np.random.default_rng(5), 1 << 14
    check("atan2", all_magnitudes(dtype, count, 6), generator.permutation(all_magnitudes(dtype, count, 7)))
    check("atan2", *(generator.uniform(-9, 9, count).astype(dtype) for _ in range(2)))


@pytest.mark.parametrize("element", TYPES)
def test_straight_up_and_down_are_half_of_pi_from_both_sides(element: str) -> None:
    """To the bit: pi less a rounded pi/2 would be the number before pi/2."""
    dtype = TYPES[element]
    limits = np.finfo(dtype)
    sizes = [limits.smallest_subnormal, limits.tiny, 0.5, 1, limits.max, np.inf]
    y = np.array([*sizes, *(-size for size in sizes)], dtype)
    for x in (0.0, -0.0):
        np.testing.assert_array_equal(evaluate("atan2", y, np.full_like(y, x)), np.copysign(dtype.type(np.pi / 2), y))
    # Far from the axes' crossing, 1 is as good as straight up.
    y = y[np.abs(y) > 1]
    for x in (1.0, -1.0):
        np.testing.assert_array_equal(evaluate("atan2", y, np.full_like(y, x)), np.copysign(dtype.type(np.pi / 2), y))


@needs_long_double
@pytest.mark.parametrize("operation", ["sin", "cos", "tan"])
@pytest.mark.parametrize("element", TYPES)
def test_angles_near_multiples_of_a_quarter_turn(element: str, operation: str) -> None:
    """Angles of which most bits cancel in the reduction: near multiples of pi/2, small and large."""
    dtype = TYPES[element]
    turns = np.concatenate([np.arange(1, 1 << 15), np.random.default_rng(8).integers(1, 1 << 60, 1 << 14)])
    nearest = (turns * (np.arctan(np.longdouble(1)) * 2)).astype(dtype)
    check(operation, nearest)
    # The closest that numbers of the two formats come to a multiple of pi/2 (found by continued fractions).
    hardest = {"f32": [16367173 * 2.0**72, 16367173 * 2.0**73], "f64": [6381956970095103 * 2.0**797]}
    check(operation, np.array(hardest[element], dtype))


def test_functions_are_of_one_piece() -> None:
    """Helpers are private functions, made once, whatever number of operations needs them and from where."""
    text = """
      func.func @xgpu_tan_f32(%x: f32) -> f32 {
        %y = math.tan %x : f32
        return %y : f32
      }
      func.func @f(%x: f32, %y: f64) -> (f32, f32, f64) {
        %a = math.tan %x : f32
        %b = math.sin %a : f32
        %c = math.tan %y : f64
        return %a, %b, %c : f32, f32, f64
      }"""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run(module, parse_pipeline("expand-math{target=host}"))
        names = [ir.StringAttr(op.operation.attributes["sym_name"]).value for op in module.body.operations]
        once = str(module)
        run(module, parse_pipeline("expand-math{target=host}"))
        assert str(module) == once
    made = {"xgpu_tan_f32_", "xgpu_reduce_large_f32", "xgpu_tan_f64", "xgpu_reduce_large_f64"}
    assert sorted(names) == sorted({"f", "xgpu_tan_f32", *made})


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("operation", [name.partition(".")[2] for name in EXPANSIONS])
def test_gpu_code_is_complete(operation: str, element: str) -> None:
    """No library function is called, and registers suffice."""
    ptx = ptx_of(operation, element)
    if find_ptxas() is not None:
        kernel = assemble(ptx)
        assert kernel.spill_bytes == 0 and kernel.stack_bytes == 0


LENGTHS = {
    "exp": (8, 5), "exp2": (8, 10), "tanh": (18, 14), "rsqrt": (1, 3), "log": (25, 4), "log1p": (25, 13),
    "asinh": (37, 21), "acosh": (38, 22), "atanh": (32, 20), "asin": (32, 19), "acos": (29, 23), "atan": (22, 20),
    "sin": (33, 24), "cos": (33, 24), "tan": (26, 26), "erf": (24, 21), "erfc": (48, 26), "erf_inv": (19, 14),
    "expm1": (25, 27), "cbrt": (22, 24), "lgamma": (44, 33), "digamma": (43, 32), "bessel_i0e": (24, 22),
    "bessel_i1e": (27, 25), "logistic": (18, 20), "powf": (85, 61), "atan2": (35, 28),
}  # fmt: skip
"""PTX instructions of each function where nothing rare happens, for f32 and for results rounded to bf16.

An H200 moves 4.1 TB/s and has time for about 55 instructions of an f32 function of one argument meanwhile, and 27 of
bf16. Not all of them count: what two of PTX say is one of SASS where a sign is given to a number, and loading, storing
and finding out where takes about four.
"""
NOT_COUNTED = ("add.s64", "cvta", "mov", "ld.", "st.", "$", "bra", "ret", "mad.lo", "mul.wide", "shl.b64")


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("operation", LENGTHS)
def test_functions_are_short_on_the_gpu(operation: str, element: str) -> None:
    """Memory remains the limit, or as close to it as is known."""
    code = usual_instructions(ptx_of(operation, element))
    arithmetic = [name for name in code if not name.startswith(NOT_COUNTED)]
    assert len(arithmetic) <= LENGTHS[operation][element == "bf16"], arithmetic


def usual_instructions(ptx: str) -> list[str]:
    """The instructions of a kernel from its last load on if every branch that skips something is taken."""
    kernel = ptx[ptx.index(".entry k(") :]
    lines = [line.strip() for line in kernel.partition("\n}")[0].splitlines()]
    position = max(n for n, line in enumerate(lines) if line.startswith("ld.global"))
    found = []
    while position + 1 < len(lines):
        position += 1
        line = lines[position]
        branch = re.fullmatch(r"@!?%p\d+ bra\s+(\$\w+);", line)
        if branch:
            position = lines.index(branch[1] + ":")
        elif line and not line.startswith(("//", "{", "}", ".")):
            found.append(line.split()[0])
    return found


def test_instructions_of_the_gpu() -> None:
    assert "ex2.approx.ftz.f32" in ptx_of("exp", "f32")
    assert "rsqrt.approx.f32" in ptx_of("rsqrt", "f32")
    assert "rsqrt.approx.f64" in ptx_of("rsqrt", "f64")
    assert "approx" not in ptx_of("exp", "f64")
