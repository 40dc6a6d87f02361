"""Remainders as GPUs compute them: with an inverse of the divisor that is off by as much as the instruction may be."""

import re
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

type Array = np.ndarray[Any, Any]

_INSTRUCTION = re.compile(r'%(\w+) = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"\((%\w+)\) : \(f32\) -> f32')
_KERNEL = """
  module attributes {{xgpu.level = "optimized"}} {{
    func.func @k(%x: tensor<{size}xf32>, %y: tensor<{size}xf32>, %out: tensor<{size}xf32>) -> tensor<{size}xf32>
        attributes {{xgpu.kernel, xgpu.inputs = 2 : i64, xgpu.index_bits = 32 : i64,
                     xgpu.block = array<i64: 128, 1, 1>, xgpu.grid = array<i64: {blocks}, 1, 1>}} {{
      %tid = gpu.thread_id x upper_bound 128
      %bid = gpu.block_id x upper_bound {blocks}
      %threads = arith.constant 128 : index
      %first = arith.muli %bid, %threads : index
      %at = arith.addi %first, %tid : index
      %a = tensor.extract %x[%at] : tensor<{size}xf32>
      %b = tensor.extract %y[%at] : tensor<{size}xf32>
      %r = arith.remf %a, %b : f32
      %u = tensor.insert %r into %out[%at] : tensor<{size}xf32>
      return %u : tensor<{size}xf32>
    }}
  }}"""


def remainders(x: Array, y: Array, factor: float) -> Array:
    """The remainders that the GPU's functions give on the host, where an inverse is that times ``factor``."""
    size = -(-x.size // 128) * 128
    buffers = [aligned_empty([size], np.dtype(np.float32)) for _ in range(3)]
    for buffer, values in zip(buffers, (x, y), strict=False):
        buffer[: x.size], buffer[x.size :] = values, 1.0
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(_KERNEL.format(size=size, blocks=size // 128))
        run(module, [*pipeline.lower(), *parse_pipeline("expand-floats")])
        inexact = (
            rf"%one_ = arith.constant 1.0 : f32\n%factor = arith.constant {factor!r} : f32\n"
            r"%exact = arith.divf %one_, \2 : f32\n%\1 = arith.mulf %exact, %factor : f32"
        )
        text, count = _INSTRUCTION.subn(inexact, str(module))
        assert count == 1
        module = ir.Module.parse(text)
        run(module, pipeline.to_llvm(HOST, device(DEFAULT_DEVICE)))
        kernel = HostKernel(module)
    kernel.launch(buffers)
    return buffers[-1][: x.size]


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
