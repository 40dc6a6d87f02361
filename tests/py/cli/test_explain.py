"""What `xgpu explain` says of a program beside its kernels: remarks of passes, and decisions of the planner."""

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

double.example_args = ("f32[64]",)
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
