"""The program whose solution is the innermost dimension of each tile in shared memory, and the swizzled one.

Mirage's boolean program: of each tile exactly one dimension is innermost, and at most one other swizzled, which costs
something. A rule is an operation that works well if some dimensions of its tiles are innermost or swizzled, in one of
several ways; it costs a penalty where they are in none. All other costs are those of a tile alone: of copies that are
not wide, and of bytes. What is given has only one choice. It is solved exactly: by branch and bound, part by part of
what rules connect, or by CP-SAT of OR-tools where a part is too large for that and it is installed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xgpu.block_plan.cp_sat import cp_sat, solve
from xgpu.records import dataclass

MOST_NODES = 20_000
"""Choices that branch and bound looks at before CP-SAT is asked, if it is there."""


@dataclass(frozen=True)
class Option:
    """A choice for a tile: its innermost and its swizzled dimension, and what it costs by itself."""

    innermost: int
    swizzled: int | None
    cost: int

    def has(self, dimension: int) -> bool:
        """Whether threads can go along a dimension."""
        return dimension in (self.innermost, self.swizzled)


type Way = tuple[tuple[int, int], ...]
"""Dimensions of tiles, by tile and dimension, along which an operation goes."""


@dataclass(frozen=True)
class Rule:
    """An operation that goes along all dimensions of one of the ``ways``, or else costs a penalty."""

    ways: tuple[Way, ...]
    penalty: int

    @property
    def tiles(self) -> set[int]:
        """The tiles that it is about."""
        return {tile for way in self.ways for tile, _ in way}

    def cost(self, chosen: Mapping[int, Option]) -> int:
        """Return the cost for the tiles that are chosen; the others may be anything."""
        for way in self.ways:
            if all(tile not in chosen or chosen[tile].has(dimension) for tile, dimension in way):
                return 0
        return self.penalty


@dataclass(frozen=True)
class LayoutProgram:
    """The options of each tile, and the rules."""

    options: Mapping[int, Sequence[Option]]
    rules: Sequence[Rule]

    def cost(self, chosen: Mapping[int, Option]) -> int:
        """Return what choices for all tiles cost."""
        return sum(each.cost for each in chosen.values()) + sum(rule.cost(chosen) for rule in self.rules)


def best(program: LayoutProgram) -> dict[int, Option]:
    """Return choices that cost the least, of equal ones those that come first."""
    chosen: dict[int, Option] = {}
    for part in parts(program):
        found = by_branch_and_bound(part, MOST_NODES)
        if found is None and cp_sat() is not None:
            found = by_cp_sat(part)
        chosen |= found or by_branch_and_bound(part) or {}
    return chosen


def parts(program: LayoutProgram) -> Iterator[LayoutProgram]:
    """Yield the parts of a program that no rule connects."""
    group = {tile: tile for tile in program.options}

    def of(tile: int) -> int:
        while group[tile] != tile:
            tile = group[tile]
        return tile

    for rule in program.rules:
        first, *others = sorted(rule.tiles)
        for tile in others:
            one, other = sorted((of(first), of(tile)))
            group[other] = one
    for name in sorted({of(tile) for tile in program.options}):
        options = {tile: each for tile, each in program.options.items() if of(tile) == name}
        yield LayoutProgram(options, [rule for rule in program.rules if of(min(rule.tiles)) == name])


def by_branch_and_bound(program: LayoutProgram, most: int | None = None) -> dict[int, Option] | None:
    """Return the best choices, tile by tile, those of most rules first; None after so many nodes.

    What is not chosen yet costs at least its cheapest option, and rules what they cost if that is the best for them.
    """
    rules = {tile: [rule for rule in program.rules if tile in rule.tiles] for tile in program.options}
    order = sorted(program.options, key=lambda tile: (-len(rules[tile]), tile))
    least = [0] * (len(order) + 1)
    for place in reversed(range(len(order))):
        least[place] = least[place + 1] + min(option.cost for option in program.options[order[place]])
    bound, found, looked = math.inf, dict[int, Option](), 0
    chosen: dict[int, Option] = {}

    def follow(place: int, cost: int, broken: int) -> bool:
        nonlocal bound, found, looked
        looked += 1
        if most is not None and looked > most:
            return False
        if place == len(order):
            bound, found = cost + broken, dict(chosen)
            return True
        tile = order[place]
        for option in program.options[tile]:
            before = sum(rule.cost(chosen) for rule in rules[tile])
            chosen[tile] = option
            now = broken - before + sum(rule.cost(chosen) for rule in rules[tile])
            is_open = cost + option.cost + least[place + 1] + now < bound
            if is_open and not follow(place + 1, cost + option.cost, now):
                return False
            del chosen[tile]
        return True

    return found if follow(0, 0, 0) else None


def by_cp_sat(program: LayoutProgram) -> dict[int, Option]:
    """Return the best choices as CP-SAT finds them; those of branch and bound if it gives up."""
    model: Any = cp_sat().CpModel()
    chosen = {
        tile: [model.new_bool_var(f"tile{tile}_{number}") for number in range(len(options))]
        for tile, options in program.options.items()
    }
    costs = []
    for tile, options in program.options.items():
        model.add_exactly_one(chosen[tile])
        costs += [option.cost * taken for option, taken in zip(options, chosen[tile], strict=True)]
    for number, rule in enumerate(program.rules):
        ways = [model.new_bool_var(f"rule{number}_{place}") for place in range(len(rule.ways) + 1)]
        model.add_exactly_one(ways)
        costs.append(rule.penalty * ways[-1])
        for way, taken in zip(rule.ways, ways, strict=False):
            for tile, dimension in way:
                fitting = [
                    each
                    for option, each in zip(program.options[tile], chosen[tile], strict=True)
                    if option.has(dimension)
                ]
                model.add_bool_or([*fitting, taken.negated()])
    model.minimize(sum(costs))
    solver = solve(model)
    if solver is None:
        return by_branch_and_bound(program) or {}
    return {
        tile: next(option for option, taken in zip(options, chosen[tile], strict=True) if solver.value(taken))
        for tile, options in program.options.items()
    }
