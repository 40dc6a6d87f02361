"""ptxas takes the PTX for every target, and no program spills registers; all programs are in emit/test_programs.py."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import xgpu
from xgpu.device import DEVICES
from xgpu.tools.programs import fused


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
