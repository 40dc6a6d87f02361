"""Programs of every kind, restarted from the text of each level, give the LLVM IR of the direct way."""

import pytest

import xgpu
from xgpu.pipeline import MLIR_LEVELS
from xgpu.tools.programs import fused, movement, reductions
from xgpu.tools.programs.base import TestProgram

_PROGRAMS = [program for group in (movement, reductions, fused) for program in group.programs()]


def _llvm_ir(program: xgpu.Compiled) -> list[str]:
    """The kernels without their names: the text of level ``stablehlo`` does not say the user's functions."""
    return [kernel.llvmir.replace(kernel.name, f"kernel{number}") for number, kernel in enumerate(program.kernels)]


@pytest.mark.parametrize("program", _PROGRAMS, ids=str)
def test_llvm_ir_is_the_same_from_every_level(program: TestProgram) -> None:
    direct = xgpu.compile(program.function, *program.specs)
    if not direct.kernels:
        pytest.skip("a program whose results have no elements has no kernels, and no text at later levels")
    for level in MLIR_LEVELS:
        assert _llvm_ir(xgpu.compile(direct.ir(level))) == _llvm_ir(direct), level
