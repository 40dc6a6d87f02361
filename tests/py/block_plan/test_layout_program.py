"""The best layouts of drawn programs: by branch and bound, by CP-SAT, and by trying all choices."""

import itertools
import random

import pytest

from xgpu.block_plan.cp_sat import cp_sat
from xgpu.block_plan.memory import layout_program
from xgpu.block_plan.memory.layout_program import (
    LayoutProgram,
    Option,
    Rule,
    best,
    by_branch_and_bound,
    by_cp_sat,
    by_elimination,
    parts,
)

needs_cp_sat = pytest.mark.skipif(cp_sat() is None, reason="OR-tools is not installed (pip install xgpu[plan])")


def drawn(rng: random.Random, count: int, rules: int) -> LayoutProgram:
    """Draw tiles of two or three dimensions, of which a few are given, and rules about one to three of them."""
    options, ranks = {}, {}
    for tile in range(count):
        ranks[tile] = rng.randrange(2, 4)
        every = [
            Option(inner, swizzled, rng.randrange(0, 6) * 1000 + (swizzled is not None) * 1000)
            for inner in range(ranks[tile])
            for swizzled in (None, *range(ranks[tile]))
            if inner != swizzled
        ]
        options[tile] = [rng.choice(every)] if rng.random() < 0.15 else every
    found = []
    for _ in range(rules):
        tiles = rng.sample(range(count), min(count, rng.randrange(1, 4)))
        ways = tuple(tuple((tile, rng.randrange(ranks[tile])) for tile in tiles) for _ in range(rng.randrange(1, 4)))
        found.append(Rule(ways, rng.choice((4000, 10000))))
    return LayoutProgram(options, found)


def least_of_all(program: LayoutProgram) -> int:
    tiles = list(program.options)
    return min(
        program.cost(dict(zip(tiles, choice, strict=True)))
        for choice in itertools.product(*(program.options[tile] for tile in tiles))
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_best_choices_are_found(seed: int) -> None:
    rng = random.Random(seed)
    program = drawn(rng, rng.randrange(1, 5), rng.randrange(0, 8))
    found = by_branch_and_bound(program)
    assert found is not None
    eliminated = by_elimination(program)
    assert eliminated is not None
    assert program.cost(found) == program.cost(eliminated) == program.cost(best(program)) == least_of_all(program)


@needs_cp_sat
@pytest.mark.parametrize("seed", range(30))
def test_both_solvers_agree(seed: int) -> None:
    program = drawn(random.Random(1000 + seed), 8, 12)
    found = by_branch_and_bound(program)
    assert found is not None
    solved = by_cp_sat(program)
    assert solved is not None
    assert program.cost(solved) == program.cost(found)


@needs_cp_sat
def test_large_parts_are_left_to_cp_sat(monkeypatch: pytest.MonkeyPatch) -> None:
    program = drawn(random.Random(3), 10, 20)
    exact = by_branch_and_bound(program)
    assert exact is not None
    assert by_branch_and_bound(program, 10) is None
    monkeypatch.setattr(layout_program, "MOST_NODES", 10)
    assert program.cost(best(program)) == program.cost(exact)


def test_long_chains_are_solved_tile_by_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains have a few choices for each tile and its neighbours, where branch and bound has some for all together."""
    options = [
        Option(inner, other, 1000 * (other is not None)) for inner, other in ((1, None), (1, 0), (0, None), (0, 1))
    ]
    rules = [Rule((((tile, side), (tile + 1, side)),), 4000) for tile in range(199) for side in (0, 1) if tile % 3 < 2]
    program = LayoutProgram(dict.fromkeys(range(200), options), rules)
    assert by_branch_and_bound(program, layout_program.MOST_NODES) is None
    monkeypatch.setattr(layout_program, "by_cp_sat", lambda _: pytest.fail("asked"))
    # Of each three tiles that rules connect, all are swizzled, which costs less than a rule of theirs that is broken.
    assert program.cost(best(program)) == 200 * 1000


def test_what_is_too_large_for_all_has_the_best_choices_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    program = drawn(random.Random(3), 10, 20)
    monkeypatch.setattr(layout_program, "cp_sat", lambda: None)
    monkeypatch.setattr(layout_program, "by_elimination", lambda _: None)
    monkeypatch.setattr(layout_program, "MOST_NODES", 10)
    monkeypatch.setattr(layout_program, "LAST_NODES", 20)
    assert best(program).keys() == program.options.keys()


def test_without_cp_sat_branch_and_bound_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    program = drawn(random.Random(3), 10, 20)
    expected = by_branch_and_bound(program)
    monkeypatch.setattr(layout_program, "cp_sat", lambda: None)
    monkeypatch.setattr(layout_program, "MOST_NODES", 10)
    assert expected is not None
    assert program.cost(best(program)) == program.cost(expected)


def test_parts_are_what_no_rule_connects() -> None:
    options = {tile: [Option(0, None, tile), Option(1, None, 0)] for tile in range(5)}
    rules = [Rule((((0, 0), (2, 0)),), 10), Rule((((2, 1),), ((4, 1),)), 10), Rule((((3, 1),),), 10)]
    found = [(sorted(part.options), len(part.rules)) for part in parts(LayoutProgram(options, rules))]
    assert found == [([0, 2, 4], 2), ([1], 0), ([3], 1)]


def test_a_rule_is_kept_where_that_is_worth_it() -> None:
    rule = Rule((((0, 0), (1, 0)),), 100)
    cheap = {tile: [Option(1, None, 0), Option(1, 0, 40)] for tile in range(2)}
    dear = {tile: [Option(1, None, 0), Option(1, 0, 60)] for tile in range(2)}
    assert [each.swizzled for each in best(LayoutProgram(cheap, [rule])).values()] == [0, 0]
    assert [each.swizzled for each in best(LayoutProgram(dear, [rule])).values()] == [None, None]
