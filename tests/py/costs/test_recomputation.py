"""The cost to compute a value again: the bytes and loads of what it is computed from, and its instructions."""

import jax.numpy as jnp
import pytest

from xgpu.costs.recomputation import LOAD, Costs
from xgpu.device import DEFAULT_DEVICE
from xgpu.frontend.load import load_source
from xgpu.numbered_block import NumberedBlock
from xgpu.passes.framework.base import main_of

_SIZE = 64 * 32


def _cost(function, *specs):
    """Return the cost of what a function returns, of arguments that are stored."""
    module = load_source(function, specs).module
    *operations, last = (op.operation for op in main_of(module).entry_block.operations)
    block = NumberedBlock(operations)
    stored = {number: 0 for number, maker in enumerate(block.makers) if maker is None}
    return Costs(block).of(block.numbers[last.operands[0]], stored, 1)


@pytest.mark.parametrize(
    ("function", "arrays", "instructions"),
    [
        (lambda x, y: x + y, 2, 1),
        # An array that several operations read at the same places is loaded once.
        (lambda x, y: x * y + x, 2, 2),
        (lambda x, y: jnp.negative(x), 1, 1),
    ],
    ids=["sum", "read twice", "one array"],
)
def test_each_array_is_a_load(function, arrays, instructions):
    cost = _cost(function, "f32[64,32]", "f32[64,32]")
    assert cost.bytes == arrays * 4 * _SIZE
    assert cost.instructions == arrays * LOAD + instructions


def test_what_is_broadcast_is_loaded_for_few():
    cost = _cost(lambda x, y: x + y, "f32[64,32]", "f32[32]")
    assert LOAD < cost.instructions < 2 * LOAD


def test_the_load_of_the_value_itself_is_saved():
    device = DEFAULT_DEVICE.device
    plain, more = (_cost(f, "f32[64,32]", "f32[64,32]") for f in (lambda x, y: -x, lambda x, y: x + y))
    assert more.instruction_bytes(1, device) == pytest.approx((LOAD + 1) * plain.instruction_bytes(1, device))
