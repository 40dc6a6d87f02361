"""Transposes that kernels without tiles would read or write across are moved by a kernel that has one."""

from collections.abc import Callable
from typing import Any

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
    assert "kernels would read 390,128,896 bytes more to read it across, without a tile" in found


@pytest.mark.parametrize("name", [*TWO_KERNELS, *ONE_KERNEL])
def test_results(name: str) -> None:
    """Arrays of 3 MB have the kernels of larger ones. Sums of positive numbers lose no digits."""
    function = (TWO_KERNELS | ONE_KERNEL)[name][0]
    program = xgpu.compile(function, "f32[1031,777]", "f32[777,1031]")
    inputs = [np.abs(each) % 1 for each in program.random_inputs()]
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))
    assert np.shape(found[0]) == np.shape(expected[0])
