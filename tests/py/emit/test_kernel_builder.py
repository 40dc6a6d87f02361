"""The builder of kernels: what loops and conditions carry, and the order in which values are taken in turn."""

from collections.abc import Iterator

import pytest

from xgpu import ir
from xgpu.emit.kernel_builder import Rotation, Variable, loop, values_of, when
from xgpu.emit.scalar.op import constant
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

TIMES = IndexingMap((), (Interval(0, 3),), ())


@pytest.fixture
def module() -> Iterator[ir.Module]:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            yield module


def numbers(*values: int) -> list[ir.Value]:
    return [constant(ir.IntegerType.get_signless(32), value) for value in values]


def test_a_loop_hands_on_what_it_changes(module: ir.Module) -> None:
    (start, step) = numbers(0, 5)
    total, other = Variable(start), Variable(step)
    with loop(TIMES, [], [total]) as outer:
        assert total.value == outer.carried_arguments[0]
        with loop(TIMES, [], [total]) as inner:
            total.value = ir.arith.addi(total.value, other.value)
        assert total.value == inner.operation.results[0]
    assert module.operation.verify()
    assert [total.value, other.value] == [outer.operation.results[0], step]
    (yielded,) = [op.operation for op in outer.body.operations if op.operation.name == "xgpu.yield"]
    assert list(yielded.operands) == list(inner.operation.results)
    assert list(inner.inits) == outer.carried_arguments


def test_what_a_loop_changes_and_does_not_hand_on_is_refused(module: ir.Module) -> None:
    (start,) = numbers(1)
    total = Variable(start)
    with loop(TIMES, [], []):
        total.value = ir.arith.addi(total.value, start)
    ir.arith.addi(total.value, start)
    with pytest.raises(ir.MLIRError, match="does not dominate"):
        module.operation.verify()


def test_a_condition_leaves_what_there_was_otherwise(module: ir.Module) -> None:
    condition = constant(ir.IntegerType.get_signless(1), 1)
    (before, after) = numbers(1, 2)
    variable = Variable(before)
    with when(condition, [variable]):
        variable.value = after
    assert module.operation.verify()
    made = variable.value.owner
    yielded = [list(region.blocks[0].operations)[-1].operation.operands[0] for region in made.regions]
    assert (made.name, yielded) == ("scf.if", [after, before])


def test_no_condition_is_no_test(module: ir.Module) -> None:
    (before, after) = numbers(1, 2)
    variable = Variable(before)
    with when(None, [variable]):
        variable.value = after
    assert variable.value == after
    assert {op.operation.name for op in module.body.operations} == {"arith.constant"}


def test_values_in_turn_are_in_order_again_after_all_turns(module: ir.Module) -> None:
    values = numbers(*range(6))
    rotation = Rotation(values)
    assert [rotation.take(2) for _ in range(3)] == [values[:2], values[2:4], values[4:]]
    assert rotation.values == values
    new = numbers(*range(10, 16))
    for i in range(0, 6, 2):
        assert rotation.first(2) == values[i : i + 2]
        rotation.turn(new[i : i + 2])
    assert values_of(rotation.variables) == new
