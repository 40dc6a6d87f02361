"""Output of `xgpu explain` besides a program's kernels: remarks of passes, and decisions of the planner."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = """\
import jax
import jax.numpy as jnp

def inner(x):
    return x[1:, 1:] * 2

inner.example_args = ("f32[1024,1025]",)

def double(x):
    return x + x

def both(x):
    return jnp.sin(x)[1:], jnp.sin(x)[:9]

double.example_args = ("f32[64]",)
both.example_args = ("f32[64]",)
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of the file above, from the current folder."""
    (tmp_path / "programs.py").write_text(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    return "programs.py"


def test_remarks_name_the_line_that_was_not_vectorized(xgpu: Callable[..., Any], programs: str) -> None:
    outcome = xgpu("explain", f"{programs}:inner", "--remarks")
    assert (outcome.code, outcome.err) == (0, "")
    _, _, remarks = outcome.out.partition("\n\nremarks:\n")
    (line,) = remarks.splitlines()
    assert line.startswith("  inner_fusion_0: ")
    assert "programs.py:5:" in line
    assert "vectorize-accesses: load of %arg0: 4 scalars, its index is a multiple of 1 only (" in line


def test_nothing_is_said_of_what_is_vectorized(xgpu: Callable[..., Any], programs: str) -> None:
    plain = xgpu("explain", f"{programs}:double")
    assert xgpu("explain", f"{programs}:double", "--remarks") == plain
    assert "remarks" not in xgpu("explain", f"{programs}:inner").out


def test_stored_values_and_the_whole_plan(xgpu: Callable[..., Any], programs: str) -> None:
    stored = xgpu("explain", f"{programs}:both", "--stored").out.partition("\n\nstored:\n")[2].splitlines()
    plan = xgpu("explain", f"{programs}:both", "--plan").out.partition("\n\nplan:\n")[2].splitlines()
    assert [line.partition(" of type ")[0] for line in stored] == ["  stablehlo.slice", "  stablehlo.slice"]
    assert all("stored by both_fusion_0: a result of the program" in line and ".py:13)" in line for line in stored)
    assert plan[:2] == stored
    assert "stablehlo.sine" in plan[2]
    assert "one kernel: both are slices of one value" in plan[3]


def test_a_plan_that_was_given_has_no_reasons(xgpu: Callable[..., Any], programs: str) -> None:
    assert xgpu("compile", f"{programs}:both", "--emit", "fusions", "-o", "plan.mlir").code == 0
    outcome = xgpu("explain", "plan.mlir", "--stored")
    assert (outcome.code, outcome.out) == (1, "")
    assert (
        outcome.err
        == "xgpu: error: the program was given at level 'fusions', already planned: its text has no reasons\n"
    )


def test_a_program_without_kernels(xgpu: Callable[..., Any], programs: str) -> None:
    with open(programs, "a") as file:
        file.write("\ndef same(x):\n    return x\n")
    outcome = xgpu("explain", f"{programs}:same", "--arg", "f32[8]", "--stored")
    assert (outcome.code, outcome.out) == (0, "no kernels\n\nstored:\n  nothing\n")
