"""Every test program on the host executor against XLA on the CPU, and its machine code for the GPU."""

from dataclasses import dataclass
from functools import cached_property

import pytest

import xgpu
from tests.py import effort
from tests.py.emit.joined import joined
from xgpu.driver.compiler import plan_program
from xgpu.target.nvptx.cubin import assemble, find_ptxas
from xgpu.tools.gpu_check import check
from xgpu.tools.programs import GROUPS, all_programs
from xgpu.tools.programs.base import TestProgram
from xgpu.tools.work import work_of

# Their kernels differ in what is computed, not in what is accessed.
_SAME_ACCESSES = {"elementwise", "complex"}
_ON_THE_STACK = {"scans/gradient-logsumexp": 32, "products/km-nk": 32, "products/transposed": 32, "scans/s4": 8}
"""Bytes that a program's kernels have on the stack; all others have none.

Those are registers that functions keep for their callers, the neighbours beside the edge of a product, which a loop
stores one by one, and two numbers of four bits, which LLVM takes apart in memory.
"""


@dataclass(frozen=True)
class _Case:
    """A program of a group, compiled once for all tests."""

    group: str
    program: TestProgram

    @cached_property
    def compiled(self) -> xgpu.Compiled:
        return self.program.compile()


def _programs() -> list[tuple[str, TestProgram]]:
    """Return what is to be run: programs of one operation and type each together, where there is no time for each."""
    programs = list(all_programs())
    if effort.by_level(True, True, False):
        programs = [each for each in programs if each[0] != "elementwise"]
        programs += [("elementwise", program) for program in joined(GROUPS["elementwise"].programs())]
    return effort.drawn(programs, effort.by_level(len(programs) // 8, len(programs), len(programs)))


_PROGRAMS = _programs()


@pytest.fixture(scope="module", params=_PROGRAMS, ids=[f"{group}/{program}" for group, program in _PROGRAMS])
def case(request: pytest.FixtureRequest) -> _Case:
    return _Case(*request.param)


def test_program_agrees_with_xla_and_has_no_fault(case: _Case) -> None:
    # What kernels access does not depend on the version of the bindings, of which the brief run tries another.
    sanitize = effort.by_level(False, True, True) and case.group not in _SAME_ACCESSES
    assert check(case.program, "host", sanitize, case.compiled) is None


@pytest.mark.slow
def test_the_work_of_its_plan_is_bounded(case: _Case) -> None:
    """That of the plan which is made where nobody asks for another; see tests/py/fusion/test_bounded_work.py."""
    program = case.compiled.source.module
    planned = case.compiled.planned if case.program.options is None else plan_program(program)["fusions"]
    assert planned is not None
    work = work_of(program, planned)
    assert work.planned <= work.bound


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_machine_code_keeps_values_in_registers(case: _Case) -> None:
    assembled = [assemble(each.ptx, "sm_90a") for each in case.compiled.kernels]
    kept = sum(max(each.spill_bytes, each.stack_bytes) for each in assembled)
    assert kept <= _ON_THE_STACK.get(f"{case.group}/{case.program}", 0)
