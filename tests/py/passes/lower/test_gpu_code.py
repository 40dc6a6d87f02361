"""What GPUs compute without a library and the host otherwise, run on the host all the same.

Remainders have an inverse of the divisor that is off by as much as the instruction may be; exponentials of f64 have
rare results in a branch.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.levels import pipeline
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.runtime.host_executor import HostKernel, aligned_empty
from xgpu.target_machine import HOST
from xgpu.tools.accuracy.formats import FORMATS, errors
from xgpu.tools.accuracy.functions import FUNCTIONS
from xgpu.tools.accuracy.samples import arguments

type Array = np.ndarray[Any, Any]

_INSTRUCTION = re.compile(r'%(\w+) = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"\((%\w+)\) : \(f32\) -> f32')
_KERNEL = """
  module attributes {{xgpu.level = "optimized"}} {{
    func.func @k(%x: tensor<{size}x{t}>, %y: tensor<{size}x{t}>, %out: tensor<{size}x{t}>) -> tensor<{size}x{t}>
        attributes {{xgpu.kernel, xgpu.inputs = 2 : i64, xgpu.index_bits = 32 : i64,
                     xgpu.block = array<i64: 128, 1, 1>, xgpu.grid = array<i64: {blocks}, 1, 1>}} {{
      %tid = gpu.thread_id x upper_bound 128
      %bid = gpu.block_id x upper_bound {blocks}
      %threads = arith.constant 128 : index
      %first = arith.muli %bid, %threads : index
      %at = arith.addi %first, %tid : index
      %a = tensor.extract %x[%at] : tensor<{size}x{t}>
      %b = tensor.extract %y[%at] : tensor<{size}x{t}>
      %r = {operation} : {t}
      %u = tensor.insert %r into %out[%at] : tensor<{size}x{t}>
      return %u : tensor<{size}x{t}>
    }}
  }}"""


def computed(operation: str, passes: str, x: Array, y: Array, change: Callable[[str], str] = str) -> Array:
    """What an operation gives on the host after the GPU's ``passes`` and a ``change`` of the text."""
    size, type_ = -(-x.size // 128) * 128, "f32" if x.dtype == np.float32 else "f64"
    buffers = [aligned_empty([size], x.dtype) for _ in range(3)]
    for buffer, values in zip(buffers, (x, y), strict=False):
        buffer[: x.size], buffer[x.size :] = values, 1.0
    with ir.make_context(), ir.Location.unknown():
        text = _KERNEL.format(size=size, blocks=size // 128, t=type_, operation=operation)
        module = ir.Module.parse(text)
        run(module, [*pipeline.lower(), *parse_pipeline(passes)])
        module = ir.Module.parse(change(str(module)))
        run(module, pipeline.to_llvm(HOST, device(DEFAULT_DEVICE)))
        kernel = HostKernel(module)
    kernel.launch(buffers)
    return buffers[-1][: x.size]


def remainders(x: Array, y: Array, factor: float) -> Array:
    """The remainders, where an inverse is that times ``factor``."""

    def inexact(text: str) -> str:
        times = (
            rf"%one_ = arith.constant 1.0 : f32\n%factor = arith.constant {factor!r} : f32\n"
            r"%exact = arith.divf %one_, \2 : f32\n%\1 = arith.mulf %exact, %factor : f32"
        )
        changed, count = _INSTRUCTION.subn(times, text)
        assert count == 1
        return changed

    return computed("arith.remf %a, %b", "expand-floats", x, y, inexact)


def pairs() -> tuple[Array, Array]:
    """Dividends and divisors: random ones, multiples and their neighbours, all pairs of special values."""
    drawn = np.random.default_rng(0)
    codes = drawn.integers(0, 1 << 32, (2, 1 << 13), dtype=np.uint32).view(np.float32)
    divisors = drawn.uniform(0.5, 9, 1 << 12).astype(np.float32)
    divisors = np.float32(1 / 256) * np.round(divisors * 256)
    multiples = divisors * drawn.integers(0, 4000, divisors.size).astype(np.float32)
    around = [multiples, *(np.nextafter(multiples, np.float32(end)) for end in (-np.inf, np.inf))]
    positive = [0, 2.0**-149, 2.0**-126, 0.5, 1, 3, 6, 2.0**21 + 1, 2.0**23, 2.0**24, 1e30, 2.0**126, 3e38, np.inf]
    special = np.float32([*positive, *(-each for each in positive), np.nan])
    lefts, rights = (each.ravel() for each in np.meshgrid(special, special))
    return np.concatenate([codes[0], *around, lefts]), np.concatenate([codes[1], *[divisors] * 3, rights])


@pytest.mark.parametrize("factor", [1.0, 1 + 2.0**-22, 1 - 2.0**-22])
def test_remainders_are_exact(factor: float) -> None:
    x, y = pairs()
    got = remainders(x, y, factor)
    with np.errstate(all="ignore"):
        exact = np.fmod(x, y)
    np.testing.assert_array_equal(got, exact)
    is_number = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(exact)[is_number])


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="numpy's long double is no wider than f64 here")
def test_exponentials_of_f64() -> None:
    """All magnitudes, and where results over- and underflow."""
    function, form = FUNCTIONS["exp"], FORMATS["f64"]
    (values,) = arguments(form, 1, function.inside, 1 << 14)
    drawn = np.random.default_rng(0)
    values = np.concatenate([values, drawn.uniform(-750, 712, 1 << 14), drawn.uniform(-709, -707, 1 << 10)])
    got = computed("math.exp %a", "expand-math", values, values)
    with np.errstate(all="ignore"):
        found = errors(got, np.exp(values.astype(np.longdouble)), form, 0.0)
    worst = int(np.argmax(found))
    assert found[worst] <= (function.bounds[3] or 0.0), (values[worst], got[worst])
