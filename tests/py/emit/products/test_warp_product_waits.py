"""What the checks find in products of warps that lack one wait, barrier or end of a group of copies."""

import functools
import re

import numpy as np
import pytest

import xgpu
from tests.py import effort
from xgpu.errors import KernelFault

from .products import whole_numbers

_NEEDED = re.compile(r'"xgpu\.(async_commit|async_wait|sync_threads|named_barrier)"\([^)]*\)[^\n]*\n')
_TEXT = """
module attributes {xgpu.level = "fusions"} {
  func.func @main(%x: tensor<64xKxbf16>, %w: tensor<Kx24xbf16>) -> tensor<64x24xf32> {
    %0 = call @product(%x, %w) : (tensor<64xKxbf16>, tensor<Kx24xbf16>) -> tensor<64x24xf32>
    return %0 : tensor<64x24xf32>
  }
  func.func private @product(%x: tensor<64xKxbf16>, %w: tensor<Kx24xbf16>) -> tensor<64x24xf32>
      attributes {xgpu.emitter = "warp_product", xgpu.schedule = #xgpu.schedule<tile_m = 32, tile_n = 32, tile_k = 16,
      stages = 3, down = 1, across = 1, resident = 1, blocks = 1, ahead = AHEAD, band = 1>} {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {xgpu.hero}
        : (tensor<64xKxbf16>, tensor<Kx24xbf16>) -> tensor<64x24xf32>
    return %0 : tensor<64x24xf32>
  }
}
"""
"""One block computes two tiles, so that what it keeps for one is needed for the next."""


_CASES = {"in turn": (120, "false"), "ahead": (120, "true"), "through registers": (91, "false")}
"""The contracted elements, and whether fragments are read ahead, by how threads do it."""


@functools.cache
def _emitted(case: str) -> str:
    k, ahead = _CASES[case]
    text: str = xgpu.compile(_TEXT.replace("K", str(k)).replace("AHEAD", ahead), target="sm_80").ir("emitted")
    return text


def _mutations(case: str) -> list[tuple[str, int]]:
    """Return the operations that can be left out: each with its number in the text."""
    return [(match[1], number) for number, match in enumerate(_NEEDED.finditer(_emitted(case)))]


def _run(text: str) -> None:
    program = xgpu.compile(text, target="sm_80")
    arguments = whole_numbers(program)
    (found,) = program.run(*arguments, sanitize=True)
    x, w = (each.astype(np.float32) for each in arguments)
    np.testing.assert_array_equal(found, x @ w)


@pytest.mark.parametrize("case", _CASES)
def test_nothing_is_found(case: str) -> None:
    _run(_emitted(case))


@pytest.mark.parametrize(
    ("case", "name", "number"),
    effort.drawn([(case, *each) for case in _CASES for each in _mutations(case)], effort.by_level(4, 12, 100)),
    ids=str,
)
def test_one_is_missing(case: str, name: str, number: int) -> None:
    match = list(_NEEDED.finditer(_emitted(case)))[number]
    assert match[1] == name
    with pytest.raises(KernelFault) as caught:
        _run(_emitted(case)[: match.start()] + _emitted(case)[match.end() :])
    assert caught.value.faults
