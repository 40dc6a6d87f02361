"""The process that others are forked from compiles a kernel first, so that they have all that this imports."""

import subprocess
import sys

import jax
import pytest

import xgpu
from xgpu import ir
from xgpu.driver.compile_worker import WARM_UP, warm_up
from xgpu.driver.parallel import _request
from xgpu.passes.framework.manager import verify

_ANSWERS = """
import sys
from xgpu.driver import compile_worker
compile_worker.warm_up()
before = set(sys.modules)
for line in sys.stdin.buffer:
    assert "error" not in compile_worker._answer(line)
print(sorted(set(sys.modules) - before))
"""


def test_its_kernel_is_of_level_emitted():
    verify(ir.Module.parse(WARM_UP, ir.make_context()))


@pytest.mark.parametrize("part", [".entry warm_up(", "ld.global.nc.v4.b16", "ex2.approx", "cvt.rn.bf16x2.f32"])
def test_its_kernel_has_vectors_functions_and_narrow_floats(part):
    assert part in warm_up().ptx


def test_what_kernels_need_is_imported_before():
    programs = [xgpu.compile(each, "f32[64,1000]") for each in (jax.nn.softmax, lambda x: x.sum(0), lambda x: x.T + 1)]
    requests = b"".join(_request(kernel, "ptx") for program in programs for kernel in program.kernels)
    result = subprocess.run([sys.executable, "-c", _ANSWERS], input=requests, capture_output=True, check=False)
    assert (result.returncode, result.stdout.strip()) == (0, b"[]"), result.stderr
