"""Declared traits of operations agree with their operands and results."""

import pytest

from xgpu.dialects.base import TENSOR
from xgpu.dialects.traits import Traits, traits_of
from xgpu.dialects.xgpu import OPS


@pytest.mark.parametrize("name", OPS)
def test_the_tensor_that_is_read_or_updated_is_an_operand_of_that_type(name):
    declared, traits = OPS[name], traits_of(name)
    assert traits == declared.TRAITS
    if traits.tensor is not None:
        assert declared.OPERANDS[traits.tensor].type is TENSOR
    if traits.updates is not None:
        assert declared.RESULTS[0].type is TENSOR
    if traits.at_element:
        assert declared.OPERANDS[traits.tensor + 1].name == "indices"


@pytest.mark.parametrize("name", OPS)
def test_who_takes_or_makes_tensors_says_what_it_does_with_them(name):
    # Operations on whole arrays are at level fusions, those on blocks of them at level tiles: before there are threads.
    declared, traits = OPS[name], traits_of(name)
    takes = any(values.type is TENSOR for values in (*declared.OPERANDS, *declared.RESULTS))
    assert (
        not takes
        or traits.tensor is not None
        or traits.collective
        or traits.allocates
        or name in ("xgpu.scan", "xgpu.chain", "xgpu.blocks", "xgpu.steps", "xgpu.index_tile")
    )


@pytest.mark.parametrize("name", OPS)
def test_what_is_pure_has_no_effects(name):
    assert not (traits_of(name).pure and traits_of(name).has_effects)


def test_an_operation_in_no_table_has_no_trait():
    assert traits_of("arith.addf") == Traits()
    assert str(traits_of("arith.addf")) == ""
    assert str(traits_of("xgpu.atomic_rmw")) == "at element, updates operand 0"
