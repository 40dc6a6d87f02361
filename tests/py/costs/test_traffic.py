"""The bytes that memory moves for an element that a kernel computes."""

from typing import Any

import jax.numpy as jnp
import pytest

import xgpu
from xgpu.costs.traffic import bytes_touched
from xgpu.passes.framework.base import main_of
from xgpu.structure import body_of, terminator_of


@pytest.mark.parametrize(
    ("function", "specs", "expected"),
    [
        (lambda x: x + 1, ["f32[1000]"], 4),
        (lambda x, y: x * y, ["f32[1000]", "bf16[1000]"], 6),
        (lambda x: x[::-1] * 2, ["f32[1000]"], 4),
        (lambda x: x[::4], ["f32[4000]"], 16),
        (lambda x: x[::100], ["f32[100000]"], 32),
        (lambda x: jnp.broadcast_to(x[:, None], (1000, 100)), ["f32[1000]"], 4 / 100),
        (lambda x: jnp.arange(1000.0) * x[0], ["f32[10]"], 4 * 10 / 1000),
        (lambda x, i: x.at[i].get(mode="clip"), ["f32[100000]", "s32[1000]"], 32 + 4),
        (lambda x, i: x.at[i].get(mode="clip"), ["f32[10]", "s32[100000]"], 4 * 10 / 100000 + 4),
        (lambda x, i: x.at[i].get(mode="clip"), ["f32[1000, 64]", "s32[1000]"], 4 + 4 / 64),
    ],
)
def test_bytes_touched(function: Any, specs: list[str], expected: float) -> None:
    program = xgpu.compile(function, *specs)
    (result,) = terminator_of(body_of(main_of(program.modules["prepared"]).operation)).operands
    assert bytes_touched([result]) == pytest.approx(expected)
