"""The size of generated code, which compile time follows; ``python -m xgpu.tools.compile_time`` measures that."""

import re

import jax
import pytest

import xgpu
from xgpu.runtime.host_executor import HostKernel
from xgpu.target.host import linker
from xgpu.target.llvm.module import optimize, parse_llvm_ir
from xgpu.tools.compile_time import TimedProgram, lines, programs

# Lines of `lowered`, `llvm` and PTX, somewhat more than there were when this was written.
MOST = {
    "twenty operations": (260, 730, 590),
    "bessel_i1e bf16": (43, 150, 300),
    "bessel_i1e f32": (33, 120, 180),
    "bessel_i1e f64": (28, 180, 200),
    "digamma bf16": (43, 160, 380),
    "digamma f32": (33, 160, 320),
    "digamma f64": (28, 280, 330),
    "erf_inv bf16": (43, 130, 190),
    "erf_inv f32": (33, 150, 260),
    "erf_inv f64": (28, 300, 320),
    "lgamma bf16": (43, 160, 390),
    "lgamma f32": (33, 380, 530),
    "lgamma f64": (28, 530, 560),
    "polygamma bf16": (450, 1500, 6400),
    "polygamma f32": (450, 1500, 3400),
    "polygamma f64": (450, 1500, 2400),
    "pow bf16": (55, 460, 950),
    "pow f32": (40, 440, 690),
    "pow f64": (33, 290, 420),
    "zeta bf16": (260, 730, 2700),
    "zeta f32": (740, 1250, 1650),
    "zeta f64": (260, 730, 1800),
}


@pytest.mark.parametrize("program", list(programs()), ids=lambda program: program.name)
def test_lines_of_code(program: TimedProgram) -> None:
    found = lines(program.compile())
    assert all(count <= most for count, most in zip(found, MOST[program.name], strict=True)), found


def test_every_bound_is_of_a_program() -> None:
    assert set(MOST) == {program.name for program in programs()}


def test_twenty_operations_are_twenty() -> None:
    program = next(iter(programs()))
    text = program.compile().ir("stablehlo")
    counted = [name for name in re.findall(r"stablehlo\.(\w+)", text) if name not in ("constant", "broadcast_in_dim")]
    assert len(counted) == 20


def test_the_host_computes_with_vectors() -> None:
    (kernel,) = xgpu.compile(lambda x, y: jax.nn.gelu(x + y), *["f32[4096,4096]"] * 2).kernels
    module = parse_llvm_ir(HostKernel(kernel.host_module()).llvm_ir)
    optimize(module, linker.machine(), linker.OPT_LEVEL, vectorize=True)
    operations = re.findall(r"= f(?:add|mul|div).* (<\d+ x float>|float) %", str(module))
    assert operations.count("float") < len(operations) / 2
