"""The maps of attention: each element of the result is written once, whatever the schedule and the mask."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.py.emit.emitters import emitter_of
from xgpu.emit.families.attention.attention import AttentionEmitter

from .attentions import causal, compiled, einsum_attention


@pytest.mark.parametrize("function", [einsum_attention, causal])
@pytest.mark.parametrize(("blocks", "rows"), [(1, 300), (2, 300), (7, 300), (3, 190), (1, 64)])
def test_every_element_is_written_once(function: Callable[..., Any], blocks: int, rows: int) -> None:
    schedule = {"tile_m": 64, "groups": 1, "tile_n": 64, "stages": 2, "blocks": blocks}
    program = compiled(function, *[f"bf16[2,{rows},1,40]"] * 3, **schedule)
    emitter = emitter_of(program)
    assert isinstance(emitter, AttentionEmitter)
    assert emitter.thread_to_output(0).coverage((2, rows, 1, 40)).is_exact
