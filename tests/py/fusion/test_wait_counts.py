"""Loops of one shape and level are counted as one kernel, however many kernels wait for each of them."""

import jax.numpy as jnp

from xgpu import ir
from xgpu.costs.evaluations import ONLY, Need
from xgpu.emit.family_table import FAMILIES
from xgpu.frontend.load import load_source
from xgpu.fusion.grouping.families import Families
from xgpu.fusion.grouping.groups import Group, WaitCounts
from xgpu.structure import walk

_KIND = Families(FAMILIES.values()).loop_of((4,))


def _loop(level: int) -> Group:
    return Group(_KIND, level)


def test_loops_that_differ_in_what_waits_for_them_are_members_of_one():
    counts = WaitCounts()
    kernel, first = counts.loop(_loop(0))
    assert counts.loop(_loop(0), 3) == (kernel, 2)
    assert counts.loop(_loop(1)) != (kernel, 4)
    assert first == ONLY


def test_the_longest_chain_is_that_of_the_members_that_need_a_value():
    counts = WaitCounts()
    kernel, first = counts.loop(_loop(0))
    _, second = counts.loop(_loop(0), 3)
    _, third = counts.loop(_loop(0), 2)
    assert counts.longest([Need(kernel, first, 1, 4)]) == 0
    assert counts.longest([Need(kernel, first | third, 2, 4)]) == 2
    assert counts.longest([Need(kernel, first | third, 2, 4), Need(kernel, second, 1, 4)]) == 3


def test_kernels_are_equal_if_as_many_wait_for_each():
    counts = WaitCounts()
    kernel, first = counts.loop(_loop(0), 2)
    _, second = counts.loop(_loop(0), 3)
    _, third = counts.loop(_loop(0), 2)
    other, only = counts.loop(_loop(1), 2)
    assert counts.are_equal([Need(kernel, first | third, 2, 4)])
    assert not counts.are_equal([Need(kernel, first | second, 2, 4)])
    assert not counts.are_equal([Need(kernel, first, 1, 4), Need(kernel, second, 1, 4)])
    assert not counts.are_equal([Need(kernel, first, 1, 4), Need(other, only, 1, 4)])


def test_members_are_split_by_what_waits_for_them():
    counts = WaitCounts()
    kernel, first = counts.loop(_loop(0), 2)
    _, second = counts.loop(_loop(0), 3)
    _, third = counts.loop(_loop(0), 2)
    assert counts.parts(kernel, second | third) == [(second, second), (third, first | third)]


def test_kernels_of_heroes_have_one_member_and_chains_that_grow():
    source = load_source(lambda x: jnp.sum(x), ("f32[4]",))
    heroes = tuple(op for op in walk(source.module.operation) if op.name == "stablehlo.reduce")
    counts, kernel = WaitCounts(), Group(_KIND, 0, heroes)
    assert isinstance(heroes[0], ir.Operation)
    assert counts.parts(kernel, ONLY) == [(ONLY, ONLY)]
    assert counts.longest([Need(kernel, ONLY, 1, 4)]) == 0
    counts.lengthen(kernel, 3)
    counts.lengthen(kernel, 1)
    assert counts.longest([Need(kernel, ONLY, 1, 4)]) == 4
    assert counts.are_equal([Need(kernel, ONLY, 1, 4)])
