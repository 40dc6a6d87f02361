"""ptxas takes the PTX of every test program, and none of them spills registers."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import xgpu
from xgpu.device import DEVICES
from xgpu.tools.programs import all_programs, fused

_PARTS = 6
"""The programs are assembled in so many parts, which may run side by side."""
_PROGRAMS = list(all_programs())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_program_fits_its_registers(spilling: Callable[..., list[str]], part: int) -> None:
    programs = [(f"{group}/{program}", program) for group, program in _PROGRAMS[part::_PARTS]]
    assert spilling([kernel for name, p in programs for kernel in _kernels(name, p.function, p.specs)], "sm_90a") == []


@pytest.mark.parametrize("target", DEVICES)
def test_every_target(target: str, spilling: Callable[..., list[str]]) -> None:
    kernels = [kernel for p in fused.programs() for kernel in _kernels(p.name, p.function, p.specs, target)]
    assert all(f".target {target}\n" in ptx for _, ptx in kernels)
    assert spilling(kernels, target) == []


def test_a_kernel_that_spills_is_named(spilling: Callable[..., list[str]]) -> None:
    (fits,) = _kernels("fits", lambda w, g, m, v: (w * g + m, w * v - g, m / v, w / m), ["f64[1000,1024]"] * 4)
    starved = ("starved", fits[1].replace(".reqntid", ".maxnreg 24\n.reqntid"))
    assert spilling([fits, starved], "sm_90a") == ["starved"]


def _kernels(
    name: str, function: Callable[..., Any], specs: Sequence[str], target: str = "sm_90a"
) -> list[tuple[str, str]]:
    compiled = xgpu.compile(function, *specs, target=target)
    return [(f"{name}/{kernel.name}", kernel.ptx) for kernel in compiled.kernels]
