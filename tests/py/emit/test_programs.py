"""Every test program on the host executor against XLA on the CPU."""

import pytest

from xgpu.tools.gpu_check import check
from xgpu.tools.programs import all_programs
from xgpu.tools.programs.base import TestProgram

_PROGRAMS = list(all_programs())
# Their kernels differ in what is computed, not in what is accessed.
_SAME_ACCESSES = {"elementwise", "complex"}


@pytest.mark.parametrize(("group", "program"), _PROGRAMS, ids=[f"{group}/{p}" for group, p in _PROGRAMS])
def test_program_agrees_with_xla_and_has_no_fault(group: str, program: TestProgram) -> None:
    assert check(program, "host", sanitize=group not in _SAME_ACCESSES) is None
