"""What the checks find in products of rows in groups that lack one wait, arrival or fence."""

import functools
from typing import Any

import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py import effort
from tests.py.runtime.block.mutations import mutations
from xgpu.errors import KernelFault

from .products import compiled, whole_numbers

_SIZES = [70, 0, 20]
"""Rows of three groups of 100: a block computes two tiles, two with a part, one without rows, and one of no group."""


@functools.cache
def _emitted() -> str:
    schedule = {"tile_m": 64, "tile_n": 64, "groups": 1, "stages": 2, "blocks": 1, "band": 1}
    return compiled(lax.ragged_dot, "bf16[100,72]", "bf16[3,72,24]", "s32[3]", **schedule).ir("emitted")


def _run(text: str) -> None:
    program = xgpu.compile(text)
    x, w, _ = whole_numbers(program)
    (found,) = program.run(x, w, np.array(_SIZES, np.int32), sanitize=True)
    expected: Any = np.zeros((100, 24), np.float32)
    for group, (start, end) in enumerate(((0, 70), (70, 70), (70, 90))):
        expected[start:end] = x[start:end].astype(np.float32) @ w[group].astype(np.float32)
    np.testing.assert_array_equal(found, expected.astype(found.dtype))


def test_nothing_is_found() -> None:
    _run(_emitted())


@pytest.mark.parametrize(
    "which", effort.drawn([name for name, _ in mutations(_emitted())], effort.by_level(3, 8, 100)), ids=str
)
def test_one_is_missing(which: str) -> None:
    with pytest.raises(KernelFault) as caught:
        _run(dict(mutations(_emitted()))[which])
    assert caught.value.faults
