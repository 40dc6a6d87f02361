"""A chain of pads, slices and concatenations whose every value is used twice compiles, and grows linearly."""

import pytest

import xgpu
from xgpu.compiler import Kernel
from xgpu.passes.base import walk
from xgpu.tools.programs.fused import pad_slice_chain

LEVELS = ("emitted", "optimized", "lowered", "llvm")


def kernel(links: int) -> Kernel:
    (only,) = xgpu.compile(pad_slice_chain(links), "f32[97]").kernels
    return only


@pytest.mark.slow
def test_code_grows_with_the_chain_and_no_faster() -> None:
    shorter, longer = kernel(200), kernel(400)
    for level in LEVELS:
        counts = [len(walk(each.module(level).operation)) for each in (shorter, longer)]
        # At least an operation per link, and nothing computed twice as often for twice the links.
        assert 400 <= counts[1] <= 2.5 * counts[0], level
    lines = [each.ptx.count("\n") for each in (shorter, longer)]
    assert lines[1] <= 2.5 * lines[0]
