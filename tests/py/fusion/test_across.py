"""Transposes that kernels without tiles would read or write across are moved by a kernel that has one."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.device import device
from xgpu.interface.api import compile_to
from xgpu.interface.explanation import plan_reasons
from xgpu.options import Options
from xgpu.runtime.compare import compare

X, Y = "f32[4096,2048]", "f32[2048,4096]"
SMALL_X, SMALL_Y = "f32[48,40]", "f32[40,48]"

TWO_KERNELS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "tiles": (lambda x, y: jnp.tile(x.T, (2, 1)), ["transpose", "loop"]),
    "repeated rows": (lambda x, y: jnp.repeat(x.T, 2, 0), ["transpose", "loop"]),
    "repeated columns": (lambda x, y: jnp.repeat(x.T, 2, 1), ["transpose", "loop"]),
    "a part of a concatenation": (lambda x, y: jnp.concatenate([x.T, y]), ["transpose", "loop"]),
    "broadcast": (lambda x, y: x.T[None] + jnp.arange(3.0)[:, None, None], ["transpose", "loop"]),
    "windows": (
        lambda x, y: lax.reduce_window(x.T + y, 0.0, lax.add, (2, 2), (2, 2), "VALID"),
        ["transpose", "loop"],
    ),
    "scanned rows": (lambda x, y: jnp.cumsum(x.T * y, 1), ["transpose", "scan_row"]),
    "read after a scan": (lambda x, y: jnp.cumsum(y, 1) * x.T, ["scan_row", "transpose"]),
    "after a scan": (lambda x, y: jnp.cumsum(x, 1).T * 2, ["scan_row", "transpose"]),
    "several after a scan": (
        lambda x, y: (jnp.sqrt(jnp.cumsum(x, 1).T), jnp.cumsum(x, 1).T / 2),
        ["scan_row", "transpose"],
    ),
}

ONE_KERNEL: dict[str, tuple[Callable[..., Any], str]] = {
    "beside a tile": (lambda x, y: (x.T + y, jnp.roll(x.T, 1, 0)), "transpose"),
    "scanned columns": (lambda x, y: jnp.cumsum(x.T * y, 0), "scan_column"),
    "after scanned columns": (lambda x, y: jnp.cumsum(x, 0).T, "scan_column"),
    "of few rows": (lambda x, y: jnp.tile(x[:, :3].T, (2, 1)), "loop"),
    "of a row": (lambda x, y: jnp.tile(jnp.broadcast_to(x[0], x.shape).T, (2, 1)), "loop"),
}


@pytest.mark.parametrize("name", TWO_KERNELS)
def test_moved_by_a_tile(name: str) -> None:
    function, emitters = TWO_KERNELS[name]
    program = xgpu.compile(function, X, Y, target="sm_90a")
    assert [kernel.emitter for kernel in program.kernels] == emitters


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_read_as_well_without(name: str) -> None:
    """By blocks that compute tiles, or walk down columns; or nothing is read across."""
    function, emitter = ONE_KERNEL[name]
    assert [kernel.emitter for kernel in xgpu.compile(function, X, Y, target="sm_90a").kernels] == [emitter]


def test_blocks_of_column_scans_go_down_columns() -> None:
    """So what follows them transposed is written apart, unless its neighbours are those of the scan."""
    function = lambda x: jnp.cumsum(x, 1).transpose(2, 1, 0)  # noqa: E731
    program = xgpu.compile(function, "f32[512,7,1024]", target="sm_90a")
    assert [kernel.emitter for kernel in program.kernels] == ["scan_column", "transpose"]
    program = xgpu.compile(lambda x: jnp.cumsum(x, 1).transpose(0, 2, 1), "f32[7,512,1024]", target="sm_90a")
    assert [kernel.emitter for kernel in program.kernels] == ["scan_column"]


@pytest.mark.parametrize("name", TWO_KERNELS)
def test_small_arrays_are_read_across(name: str) -> None:
    function, emitters = TWO_KERNELS[name]
    program = xgpu.compile(function, SMALL_X, SMALL_Y, target="sm_90a")
    assert [kernel.emitter for kernel in program.kernels] == [each for each in emitters if each != "transpose"]


def test_the_plan_says_why() -> None:
    function, _ = TWO_KERNELS["tiles"]
    target = device("sm_90a")
    found = plan_reasons(compile_to("prepared", function, [X, Y], target, Options()), target, only_stored=True)
    more = re.search(r"kernels would read ([\d,]+) bytes more to read it across, without a tile", found)
    # 32 bytes for each of 16.8 million elements, less twice their four, to read 8.4 million and to store them.
    assert more is not None and 370e6 < int(more[1].replace(",", "")) < 400e6


@pytest.mark.parametrize("name", [*TWO_KERNELS, *ONE_KERNEL])
def test_results(name: str) -> None:
    """Arrays of 3 MB have the kernels of larger ones. Sums of positive numbers lose no digits."""
    function = (TWO_KERNELS | ONE_KERNEL)[name][0]
    program = xgpu.compile(function, "f32[1031,777]", "f32[777,1031]")
    inputs = [np.abs(each) % 1 for each in program.random_inputs()]
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))
    assert np.shape(found[0]) == np.shape(expected[0])


def _windows(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), ((1, 0), (0, 0)))


PLANNED: dict[str, Callable[..., Any]] = {
    "a scalar": lambda x, y: jnp.ravel(x.T)[0],
    "a scalar in a branch": lambda x, y: lax.cond(x[0, 0] > 0, lambda x: x.T[0, 5], lambda x: x.T[1, 7], x),
    "a scalar's gradient": jax.grad(lambda x, y: jnp.ravel(x.T)[9] ** 2),
    "another piece": lambda x, y: (jnp.pad(x.T, ((1, 1), (2, 3))), lax.rev(jnp.concatenate([x.T, y]) * 2, (0,))[:100]),
    "no elements": lambda x, y: (
        jnp.repeat(x.T, 3, axis=0),
        jnp.repeat(jnp.concatenate([x.T, y[:, :0]], 1), 2, axis=0),
    ),
}


@pytest.mark.parametrize("name", PLANNED)
def test_what_reads_few_elements_or_none_is_planned(name: str) -> None:
    function = PLANNED[name]
    assert xgpu.compile(function, "f32[2048,1024]", "f32[1024,2048]", target="sm_90a").kernels
    program = xgpu.compile(function, "f32[803,1024]", "f32[1024,803]")
    inputs = program.random_inputs()
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


@pytest.mark.parametrize("place", range(3))
def test_where_a_piece_is_does_not_matter(place: int) -> None:
    def rows(x: Any, y: Any, z: Any) -> Any:
        parts = [y, z]
        parts.insert(place, x.T)
        return _windows(jnp.concatenate(parts))

    program = xgpu.compile(rows, *["f32[2048,2048]"] * 3, target="sm_90a")
    assert [kernel.emitter for kernel in program.kernels] == ["transpose", "loop"]


@pytest.mark.parametrize("place", [0, 3, 7])
def test_periods_of_what_is_read_do_not_matter(place: int) -> None:
    def columns(x: Any, *others: Any) -> Any:
        parts = list(others)
        parts.insert(place, x.T)
        return jnp.flip(jnp.concatenate(parts, 1).reshape(-1, 512), 0)

    program = xgpu.compile(columns, *["f32[2048,2048]"] * 8, target="sm_90a")
    assert [kernel.emitter for kernel in program.kernels] == ["transpose", "loop"]


def test_what_several_transposes_are_computed_from_counts_once() -> None:
    """Eight arrays would be stored, and read again, to read one along its rows."""

    def repeated(x: Any, k: int) -> Any:
        return jnp.repeat(jnp.sin(x + k).T, 2, axis=0)

    def several(x: Any) -> Any:
        return sum(repeated(x, k).reshape(-1, 512) for k in range(8))

    program = xgpu.compile(several, "f32[4096,4096]", target="sm_90a")
    assert [kernel.emitter for kernel in program.kernels] == ["loop"]
    # If no reshape is in the way, all is computed in the order of the array, and transposed once.
    program = xgpu.compile(lambda x: sum(repeated(x, k) for k in range(8)), "f32[4096,4096]", target="sm_90a")
    assert [kernel.emitter for kernel in program.kernels] == ["transpose"]


def routed(pose: Any, w: Any, *, rounds: int) -> Any:
    """Dynamic routing of capsules, which reads votes twice a round, in the layout that they have as a transpose."""
    (b, i), o = pose.shape[:2], w.shape[1]
    votes = jnp.einsum("bixy,ioyz->bioxz", pose, w).reshape(b, i, o, 16)
    logits, found = jnp.zeros((b, i, o)), None
    for _ in range(rounds):
        weights = jax.nn.softmax(logits, axis=2)
        found = (weights[..., None] * votes).sum(1)
        logits = logits + (votes * found[:, None]).sum(-1)
    return found


@pytest.mark.parametrize(("rounds", "is_moved"), [(1, False), (4, True)])
def test_dimensions_too_short_for_tiles_are_moved_if_many_kernels_read_them(rounds: int, is_moved: bool) -> None:
    """Reductions read neighbours along their last dimension. One reads across, or a kernel does it for several."""
    function = partial(routed, rounds=rounds)
    specs = ["f32[64,288,4,8]", "f32[288,10,8,4]"]
    target = device("sm_90a")
    found = plan_reasons(compile_to("prepared", function, specs, target, Options()), target, only_stored=True)
    assert ("to read it across, without a tile" in found) == is_moved
    program = xgpu.compile(function, "f32[3,20,4,4]", "f32[20,10,4,4]")
    (result,), (wanted,) = program.run(*program.random_inputs()), program.reference(*program.random_inputs())
    assert compare(result, wanted).agrees
