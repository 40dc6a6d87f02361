"""Every test program on the host executor against XLA on the CPU."""

import pytest

from xgpu.tools.gpu_check import check
from xgpu.tools.programs import all_programs
from xgpu.tools.programs.base import TestProgram

_PROGRAMS = list(all_programs())


@pytest.mark.parametrize("program", [p for _, p in _PROGRAMS], ids=[f"{group}/{p}" for group, p in _PROGRAMS])
def test_program_agrees_with_xla(program: TestProgram) -> None:
    assert check(program, "host") is None
