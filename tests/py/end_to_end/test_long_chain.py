"""A chain of pads, slices and concatenations whose every value is used twice compiles, and grows linearly."""

import pytest

import xgpu
from xgpu.driver.kernel import ProgramKernel
from xgpu.structure import walk
from xgpu.tools.programs.fused import pad_slice_chain

LEVELS = ("emitted", "optimized", "lowered", "llvm")


def kernels(links: int) -> tuple[ProgramKernel, ...]:
    return xgpu.compile(pad_slice_chain(links), "f32[97]").kernels


@pytest.mark.slow
def test_code_grows_with_the_chain_and_no_faster() -> None:
    shorter, longer = kernels(200), kernels(400)
    for level in LEVELS:
        counts = [sum(len(walk(one.module(level).operation)) for one in each) for each in (shorter, longer)]
        # At least an operation per link, and nothing computed twice as often for twice the links.
        assert 400 <= counts[1] <= 2.5 * counts[0], level
    lines = [sum(one.ptx.count("\n") for one in each) for each in (shorter, longer)]
    assert lines[1] <= 2.5 * lines[0]
