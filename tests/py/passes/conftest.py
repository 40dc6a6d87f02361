"""A fixture that lowers a kernel computing scalar expressions, elementwise, and runs it on the host."""

import bisect
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xgpu import ir
from xgpu.device import device
from xgpu.dtypes import dtype_of_numpy
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.runtime.host_executor import HostKernel, aligned_empty
from xgpu.target.llvm.export import NVPTX_TRIPLE, export_llvm_ir
from xgpu.target.nvptx.ptx import compile_to_ptx

type Array = np.ndarray[Any, Any]

BLOCK = 128
LOWER = (
    "lower-tensors,canonicalize,cse,expand-floats{{target={0}{1}}},canonicalize,cse,"
    "lower-scf,lower-to-llvm{{target={0}}},cse"
)


def element(array: Array) -> str:
    """The signless MLIR type of an array's elements."""
    return dtype_of_numpy(array.dtype).signless


def kernel_text(body: str, inputs: Sequence[Array], outputs: Sequence[tuple[str, Array]], index_bits: int) -> str:
    """A kernel at the optimized level: ``%x0``... are the inputs' elements, each output is stored from its value."""
    arrays = [*inputs, *(array for _, array in outputs)]
    size = arrays[0].size
    types = [f"tensor<{size}x{element(array)}>" for array in arrays]
    parameters = ", ".join(f"%p{number}: {type_}" for number, type_ in enumerate(types))
    first = len(inputs)
    code = [f"%x{n} = tensor.extract %p{n}[%at] : {types[n]}" for n in range(first)]
    code.append(body)
    for n, (value, _) in enumerate(outputs, first):
        code.append(f"%u{n} = tensor.insert {value} into %p{n}[%at] : {types[n]}")
    returned = ", ".join(f"%u{n}" for n in range(first, len(arrays)))
    results = ", ".join(types[first:])
    lines = "\n".join(code)
    return f"""
      func.func @k({parameters}) -> ({results}) attributes {{xgpu.kernel, xgpu.inputs = {first} : i64,
          xgpu.index_bits = {index_bits} : i64, xgpu.block = array<i64: {BLOCK}, 1, 1>,
          xgpu.grid = array<i64: {size // BLOCK}, 1, 1>}} {{
        %tid = gpu.thread_id x upper_bound {BLOCK}
        %bid = gpu.block_id x upper_bound {size // BLOCK}
        %threads = arith.constant {BLOCK} : index
        %first = arith.muli %bid, %threads : index
        %at = arith.addi %first, %tid : index
        {lines}
        return {returned} : {results}
      }}"""


def lower(text: str, target: str, options: str = "") -> ir.Module:
    """Parse and lower a module from the optimized to the llvm level. A context is current."""
    module = ir.Module.parse(text)
    run(module, parse_pipeline(LOWER.format(target, options)))
    return module


def padded(array: Array) -> Array:
    """Repeat the last element up to a whole number of blocks, in memory aligned as kernels expect."""
    flat = array.reshape(-1)
    result = aligned_empty([-(-flat.size // BLOCK) * BLOCK], flat.dtype)
    result[: flat.size] = flat
    result[flat.size :] = flat[-1]
    return result


@pytest.fixture
def evaluate() -> Callable[..., list[Array]]:
    """Evaluate ``body`` for each element of the inputs; ``outputs`` lists (value, NumPy type) of what to return."""

    def call(
        body: str, inputs: Sequence[Array], outputs: Sequence[tuple[str, Any]], index_bits: int = 32
    ) -> list[Array]:
        size = inputs[0].size
        given = [padded(array) for array in inputs]
        made = [(value, aligned_empty([given[0].size], dtype)) for value, dtype in outputs]
        with ir.make_context(), ir.Location.unknown():
            module = lower(kernel_text(body, given, made, index_bits), "host")
            kernel = HostKernel(module)
        results = [array for _, array in made]
        kernel.launch([*given, *results])
        return [array[:size] for array in results]

    return call


@pytest.fixture
def lower_to_ptx() -> Callable[..., str]:
    """Compile a kernel's text at the optimized level to PTX."""

    def call(text: str, target: str = "sm_90a") -> str:
        with ir.make_context(), ir.Location.unknown():
            module = lower(text, "nvvm", f" capability={device(target).compute_capability}")
            return compile_to_ptx(export_llvm_ir(module, NVPTX_TRIPLE), target)

    return call


@pytest.fixture
def compile_ptx(lower_to_ptx: Callable[..., str]) -> Callable[..., str]:
    """Compile ``body`` over inputs of the given NumPy types to PTX; ``outputs`` as for `evaluate`."""

    def call(body: str, inputs: Sequence[Any], outputs: Sequence[tuple[str, Any]], target: str = "sm_90a") -> str:
        given = [np.zeros(32 * BLOCK, dtype) for dtype in inputs]
        made = [(value, np.zeros(32 * BLOCK, dtype)) for value, dtype in outputs]
        return lower_to_ptx(kernel_text(body, given, made, 32), target)

    return call


class ExactRounding:
    """Rounds exact numbers to a type of at most 16 bits: to nearest, ties to even, from the list of its values."""

    def __init__(self, dtype: Any):
        self.dtype = np.dtype(dtype)
        bits = 8 * self.dtype.itemsize
        self._unsigned = np.dtype(f"uint{bits}")
        codes = np.arange(1 << (bits - 1)).astype(self._unsigned)
        values = codes.view(self.dtype).astype(np.float64)
        self._values = [Fraction(value) for value in values[np.isfinite(values)].tolist()]
        # As if the next larger value existed: from its half on, numbers overflow.
        self._values.append(2 * self._values[-1] - self._values[-2])

    def __call__(self, number: Fraction | float | int) -> float:
        """Return the nearest value of the type as a Python float; infinity or NaN as the type has it."""
        if isinstance(number, float) and not math.isfinite(number):
            with np.errstate(all="ignore"):
                return float(np.array(number).astype(self.dtype).astype(np.float64))
        exact = Fraction(number)
        above = min(bisect.bisect_left(self._values, abs(exact)), len(self._values) - 1)
        below = max(above - 1, 0)
        distances = abs(exact) - self._values[below], self._values[above] - abs(exact)
        code = below if distances[0] < distances[1] or (distances[0] == distances[1] and below % 2 == 0) else above
        if code == len(self._values) - 1:
            with np.errstate(all="ignore"):
                magnitude = float(np.array(math.inf).astype(self.dtype).astype(np.float64))
        else:
            magnitude = float(self._values[code])
        return math.copysign(magnitude, -1.0 if exact < 0 else math.copysign(1.0, number if number == 0 else 1.0))


@pytest.fixture(scope="session")
def exact_rounding() -> Callable[[Any], ExactRounding]:
    return cache(ExactRounding)


def same_floats(result: Array, expected: Array, name: str = "", signed_zeros: bool = True) -> None:
    """Check that floats are equal, all NaNs being one and zeros having signs."""
    assert result.dtype == expected.dtype, f"{name}: {result.dtype} and {expected.dtype}"
    got, wanted = result.astype(np.float64), expected.astype(np.float64)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    if signed_zeros:
        same &= np.isnan(got) | (np.signbit(got) == np.signbit(wanted))
    wrong = np.flatnonzero(~same)
    shown = [f"element {at}: expected {wanted[at]!r}, got {got[at]!r}" for at in wrong[:5]]
    assert wrong.size == 0, f"{name}: {wrong.size} of {got.size} differ: {'; '.join(shown)}"


@pytest.fixture(scope="session")
def assert_same() -> Callable[..., None]:
    return same_floats


@pytest.fixture(scope="session")
def float_values() -> Callable[[Any, int], Array]:
    """Return the values of a type at which something changes, and random bit patterns up to ``count`` in all."""

    def make(dtype: Any, count: int) -> Array:
        info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        tiny, eps = float(info.tiny), float(info.eps)
        known = [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 0.5, 0.1, 100.0, 1 + eps, 1 - eps / 2, 7.0]
        known += [tiny, tiny * (1 - eps), tiny * eps, tiny * 3 * eps, float(info.max), math.inf, math.nan]
        edges = np.array([sign * value for value in known for sign in (1, -1)]).astype(dtype)
        bits = np.dtype(f"uint{8 * edges.itemsize}")
        patterns = np.random.default_rng(1).integers(0, np.iinfo(bits).max, count, bits, endpoint=True)
        return np.concatenate([edges, patterns.view(dtype)])[:count]

    return make
