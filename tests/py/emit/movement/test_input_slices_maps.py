"""The maps of the input slices emitter: each element of each result once, whatever the threads walk."""

from collections.abc import Callable
from typing import Any

import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.emit.families.input_slices import InputSlicesEmitter
from xgpu.indexing.access import shape_of


@pytest.mark.parametrize(
    ("function", "spec", "walks_the_value"),
    [
        (lambda x: (x[:, :100], x[:, 100:300], x[:, 300:]), "f32[331,500]", False),
        (lambda x: (x[:, :96], x[:, 96:320], x[:, 320:]), "bf16[3331,512]", False),
        (lambda x: (x[:, :3], x[:, 5:]), "s8[33,31]", False),
        (lambda x: (x[:31], x[32:], x[31:32]), "f32[1023]", False),
        (lambda x: (x[:, :, 1:], x[:, :, :1], x[:1]), "f64[2,3,4,1,2,1,2,3]", True),
        (lambda x: (x[:-1], x[2:], x[1:-2]), "f32[300001]", True),
        (lambda x: (x[:, :-1], x[1:, 2:]), "bf16[1025,512]", True),
        (lambda x: (x[3:40], x[10:20]), "f32[300001]", True),
        # The box around them is mostly empty; they skip elements; one result is made of two.
        (lambda x: (x[:10], x[5:11], x[100000:]), "f32[100005]", False),
        (lambda x: (x[::2], x[1::3]), "f32[1025]", False),
        (lambda x: (x[:10] + x[5:15], x[:20]), "f32[1025]", False),
    ],
)
def test_every_element_is_written_once(function: Callable[[Any], Any], spec: str, walks_the_value: bool) -> None:
    emitter = emitter_of(xgpu.compile(function, spec))
    assert isinstance(emitter, InputSlicesEmitter)
    assert (emitter.box is not None) == walks_the_value
    for number, value in enumerate(emitter.fusion.results):
        assert emitter.thread_to_output(number).is_bijection(shape_of(value)) is True


def test_more_elements_than_32_bits_count() -> None:
    """Decided by reasoning; there are too many to count them."""
    emitter = emitter_of(xgpu.compile(lambda x: (x[:, :96], x[:, 96:]), "bf16[20000000,512]"))
    assert isinstance(emitter, InputSlicesEmitter)
    assert emitter.thread_to_output(0).is_bijection((20000000, 96)) is True
    assert emitter.thread_to_output(1).is_bijection((20000000, 416)) is True
