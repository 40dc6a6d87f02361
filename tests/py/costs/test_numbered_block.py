"""Blocks by numbers: values have one number each, those that operations make the lowest."""

from math import prod

import jax
import jax.numpy as jnp

from xgpu.frontend.load import load_source
from xgpu.indexing.access import shape_of
from xgpu.numbered_block import NumberedBlock
from xgpu.passes.framework.base import main_of
from xgpu.structure import captured


def _branching(x, y):
    """Branches that read values from around them."""
    scale = jnp.sum(y)
    return jax.lax.cond(scale > 0, lambda: x * scale, lambda: jnp.sin(x)) + y


def test_numbers_stand_for_the_values_that_operations_have():
    module = load_source(_branching, ("f32[4,8]", "f32[8]")).module
    *operations, _ = (op.operation for op in main_of(module).entry_block.operations)
    block = NumberedBlock(operations)
    assert any(block.captured)
    assert sorted(block.numbers.values()) == list(range(len(block.values)))
    for number, op in enumerate(operations):
        assert block.names[number] == op.name
        assert [block.values[each] for each in block.results[number]] == list(op.results)
        assert [block.values[each] for each in block.operands[number]] == list(op.operands)
        assert [block.values[each] for each in block.captured[number]] == captured(op)
        assert set(block.reads[number]) == {*block.operands[number], *block.captured[number]}
        assert all(block.makers[each] == number for each in block.results[number])
    made = sum(len(op.results) for op in operations)
    assert [maker is None for maker in block.makers] == [number >= made for number in range(len(block.values))]
    for number, value in enumerate(block.values):
        assert block.shape(number) == shape_of(value)
        assert block.elements(number) == prod(shape_of(value))
