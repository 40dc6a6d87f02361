"""The elements that a thread computes: an access, or fewer where loads would take longer than memory."""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import xgpu

LARGE = "f32[2048,2048]"


def numbers(function: Callable[..., Any], *specs: str) -> list[tuple[str, int]]:
    """The emitter of each kernel, and the elements that a thread of it takes at once."""
    module = xgpu.compile(function, *specs).planned
    assert module is not None
    found = []
    for view in module.body.operations:
        attributes = view.operation.attributes
        if "xgpu.schedule" in attributes:
            schedule = str(attributes["xgpu.schedule"])
            vector = next(int(each.split("=")[1]) for each in schedule.split(",") if "vector" in each)
            found.append((str(attributes["xgpu.emitter"]).strip('"'), vector))
    return found


def least_of_neighbours(x: Any) -> Any:
    moved = [x[i : i + 2048, j : j + 2048] for i in range(5) for j in range(5)]
    return functools.reduce(jnp.minimum, moved)


def distances_of_bits(a: Any, b: Any) -> Any:
    return jnp.bitwise_count(a[:, None] ^ b[None]).sum(-1)


@pytest.mark.parametrize(
    ("function", "specs", "vector"),
    [
        # One access, of each array.
        (lambda x: jnp.sin(x) + 1, [LARGE], 4),
        (lambda x, y: x + y[None], [LARGE, "f32[2048]"], 4),
        # Three neighbours of each point, which a thread reads as three accesses for four points.
        (lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1), ["f32[1024,3]", "f32[4096,3]"], 4),
        # Rows of 32 bytes of neighbouring results: four of them a lane, and each request has 32 lines.
        (distances_of_bits, ["u32[1024,8]", "u32[4096,8]"], 2),
        # Code with branches, of which there is so much that threads with one element do not wait for memory.
        (lambda x: jnp.sin(jnp.sin(jnp.sin(jnp.sin(x)))), [LARGE], 1),
        (lambda x: jnp.sin(jnp.cos(x)), [LARGE], 2),
        # As much without branches.
        (lambda x: jnp.log(jnp.log(jnp.log(jnp.log(jnp.log(jnp.log(jnp.log(jnp.log(x)))))))), [LARGE], 4),
        # Unaligned neighbours, none of which is an access.
        (least_of_neighbours, ["f32[2052,2052]"], 2),
    ],
)
def test_runs_of_loops(function: Callable[..., Any], specs: list[str], vector: int) -> None:
    assert numbers(function, *specs) == [("loop", vector)]


@pytest.mark.parametrize(
    ("function", "spec", "vector"),
    [
        (lambda x: x.sum(1), LARGE, 4),
        # A column of an array, by one block, which memory would give more: each element in a sector of its own.
        (lambda x: x[:, 3].sum(), "f32[16384,16]", 1),
        (lambda x: x.sum(1).sum(), "f32[16384,8]", 1),
    ],
)
def test_runs_of_reductions(function: Callable[..., Any], spec: str, vector: int) -> None:
    assert numbers(function, spec)[0] == ("reduce_row", vector)


def test_what_reads_nothing_takes_an_access() -> None:
    assert numbers(lambda: jnp.zeros((2048, 2048)), *[]) == [("loop", 4)]


def test_variables_without_values_are_no_loads() -> None:
    """A sum of no elements reads none."""
    assert numbers(lambda x, y: x + y.sum(1)[:, None], LARGE, "f32[2048,0]") == [("loop", 4)]


def waves(x: Any) -> Any:
    """A function that takes several hundred instructions and has branches."""
    for _ in range(3):
        x = jnp.sin(x) + jnp.cos(x)
    return x


def test_what_is_alike_for_a_run_is_computed_once_for_it() -> None:
    """Branches of it keep no elements apart, as those of a function of each element do."""
    images, numbers_ = "f32[64,256,256]", "f32[64]"
    assert numbers(lambda x, s: x * waves(s)[:, None, None], images, numbers_) == [("loop", 4)]
    assert numbers(lambda x, s: waves(x) * s[:, None, None], images, numbers_) == [("loop", 1)]


def test_rows_shorter_than_a_run_are_not_alike() -> None:
    """Neighbours of a thread are of several rows there."""
    assert numbers(lambda x, s: x * waves(s)[:, None], "f32[500000,2]", "f32[500000]") == [("loop", 1)]
