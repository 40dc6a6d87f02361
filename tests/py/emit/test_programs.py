"""Every test program on the host executor against XLA on the CPU."""

import os

import pytest

from xgpu.tools.gpu_check import check
from xgpu.tools.programs import all_programs
from xgpu.tools.programs.base import TestProgram

_PROGRAMS = list(all_programs())
# Their kernels differ in what is computed, not in what is accessed.
_SAME_ACCESSES = {"elementwise", "complex"}
# What kernels access does not depend on the version of the bindings either, of which the brief run tries another.
_IS_BRIEF = os.environ.get("XGPU_HYPOTHESIS") == "brief"


@pytest.mark.parametrize(("group", "program"), _PROGRAMS, ids=[f"{group}/{p}" for group, p in _PROGRAMS])
def test_program_agrees_with_xla_and_has_no_fault(group: str, program: TestProgram) -> None:
    assert check(program, "host", sanitize=not _IS_BRIEF and group not in _SAME_ACCESSES) is None
