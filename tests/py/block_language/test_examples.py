"""The programs of examples/blocks on this machine: right, clean under the sanitizer, and accepted by ptxas."""

from pathlib import Path

import numpy as np
import pytest

import xgpu
from xgpu.interface.api import Compiled
from xgpu.target.nvptx.cubin import assemble, find_ptxas

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "blocks").glob("*.py"))
NAMES = {"attention": "attention", "linear": "linear_silu", "norm_linear": "norm_linear", "stencil": "smoothed"}


def compiled(path: Path, target: str = "sm_90a") -> Compiled:
    return xgpu.compile(f"{path}:{NAMES[path.stem]}", target=target)


def test_all_are_here() -> None:
    assert [path.stem for path in EXAMPLES] == sorted(NAMES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_computes_what_xla_does(path: Path) -> None:
    program = compiled(path)
    inputs = program.random_inputs()
    (found,), (expected,) = program.run(*inputs, sanitize=True), program.reference(*inputs)
    wide = [np.asarray(each).astype(np.float64) for each in (found, expected)]
    # The same tiles are added up by other threads; results of bf16 are then off by one rounding, 2^-8, at most.
    errors = {"atol": 1e-6, "rtol": 1e-5} if found.dtype == np.float32 else {"atol": 0.01, "rtol": 2.0**-7}
    np.testing.assert_allclose(*wide, **errors)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_ptxas_takes_them(path: Path, target: str) -> None:
    (kernel,) = compiled(path, target).kernels
    assert assemble(kernel.ptx, target).cubin
