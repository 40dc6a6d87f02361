"""What is not proved runs with checks in loops and branches too: every kernel, and no loop for ever."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.dtypes import parse_spec
from xgpu.frontend.signature import ArgumentSpec
from xgpu.packaging.checks.running import MOST_TRIPS, run_checked
from xgpu.packaging.flow import Branching, Flow, Move, Node, Repeating, Run


class FakeLaunches:
    """Kernels that are functions of numbers; ``ran`` has the arguments of each run."""

    ran: list[tuple[str, tuple[int, ...]]]

    def __init__(self, sanitize: bool = False):
        assert sanitize

    def get(self, kernel: Any, outputs: Any) -> "FakeLaunch":
        return FakeLaunch(kernel)


class FakeLaunch:
    def __init__(self, kernel: Any):
        self._kernel = kernel

    def run(self, inputs: list[Any]) -> list[Any]:
        numbers = [int(each) for each in inputs]
        FakeLaunches.ran.append((self._kernel.__name__, tuple(numbers)))
        return [np.int32(self._kernel(*numbers))]


@pytest.fixture(autouse=True)
def launches(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    FakeLaunches.ran = []
    if "real" not in request.node.name:
        monkeypatch.setattr("xgpu.packaging.checks.running.HostLaunches", FakeLaunches)


def more(x: int) -> int:
    return x + 1


def less(x: int) -> int:
    return x - 1


def same(x: int) -> int:
    return x


def run(kernel: Any, *numbers: int) -> Run:
    return Run(kernel, numbers[:-1], numbers[-1:])


def ran(argument: int, *nodes: Node, values: int = 8) -> tuple[list[tuple[str, tuple[int, ...]]], bool]:
    """What runs of a program of one argument, and whether a loop was cut short."""
    dtype, shape = parse_spec("s32[]")
    specs = tuple(ArgumentSpec(f"v{number}", shape, dtype) for number in range(values))
    is_cut = run_checked(Flow((), 1, specs, nodes, ()), [np.array(argument, np.int32)])
    return FakeLaunches.ran, is_cut


def test_all_branches_run_and_one_goes_on() -> None:
    branches = tuple((run(kernel, 0, 1), Move(((2, 1),))) for kernel in (more, less))
    choice = Branching(branches, 0, is_truth=False)
    assert ran(0, choice, run(same, 2, 3)) == ([("less", (0,)), ("more", (0,)), ("same", (1,))], False)


def test_a_loop_that_ends_at_once_runs_once_without_a_trace() -> None:
    loop = Repeating((run(more, 1, 2), Move(((1, 2),))), None, 1)
    assert ran(0, Move(((1, 0),)), loop, run(same, 1, 3)) == ([("more", (0,)), ("same", (0,))], False)


def test_a_branch_that_is_not_chosen_runs_once_in_a_loop() -> None:
    branches = (run(more, 1, 2), Move(((3, 2),))), (run(less, 1, 2), Move(((3, 2),)))
    loop = Repeating((Branching(branches, 1, is_truth=True), Move(((1, 3),))), 3, None)
    found, _ = ran(4, Move(((1, 0),)), loop)
    assert found == [("less", (4,)), ("more", (4,)), ("more", (5,)), ("more", (6,))]


def test_a_loop_runs_as_often_as_a_value_says() -> None:
    loop = Repeating((run(more, 1, 2), Move(((1, 2),))), None, None, 0)
    assert [kernel for kernel, _ in ran(3, Move(((1, 0),)), loop)[0]] == ["more"] * 3


@pytest.mark.parametrize("trips", [None, MOST_TRIPS + 1])
def test_long_loops_are_cut(trips: int | None) -> None:
    loop = Repeating((run(more, 1, 2), Move(((1, 2),))), trips, 1 if trips is None else None)
    found, is_cut = ran(1, Move(((1, 0),)), loop)
    assert (len(found), is_cut) == (MOST_TRIPS, True)
    FakeLaunches.ran = []
    found, is_cut = ran(1, Move(((1, 0),)), Repeating(loop.body, MOST_TRIPS, None))
    assert (len(found), is_cut) == (MOST_TRIPS, False)


def test_real_programs(tmp_path: Path) -> None:
    def endless(x: jax.Array) -> jax.Array:
        """On most numbers it never ends; its update in place is not proved."""
        return lax.while_loop(lambda x: jnp.sum(x) != 0.5, lambda x: x.at[jnp.argmax(x)].add(1), x)

    made = xgpu.export(endless, "f32[100]", to=tmp_path, check=True, host=False)
    assert f"with every access checked, {MOST_TRIPS} iterations of longer loops: no fault" in str(made)
    assert "waits: a call reads values to go on, and cannot be captured" in str(made)
    assert f'"of_longer_loops": {MOST_TRIPS}' in (tmp_path / "manifest.json").read_text()
