"""The program whose solution is the innermost dimension of each tile in shared memory, and the swizzled one.

Mirage's boolean program: of each tile exactly one dimension is innermost, and at most one other swizzled, which costs
something. A rule is an operation that works well if some dimensions of its tiles are innermost or swizzled, in one of
several ways; it costs a penalty where they are in none. All other costs are those of a tile alone: of copies that are
not wide, and of bytes. What is given has only one choice. It is solved exactly: by branch and bound, part by part of
what rules connect, or by CP-SAT of OR-tools where a part is too large for that and it is installed.
"""

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from xgpu.block_plan.cp_sat import cp_sat, solve
from xgpu.records import dataclass

MOST_NODES = 20_000
"""Choices that branch and bound looks at before the other ways are tried."""
LAST_NODES = 200_000
"""Choices that it looks at where these fail, too: a few seconds. Then the best one so far is taken."""
MOST_ENTRIES = 20_000
"""Choices of the tiles that share rules with one, which `by_elimination` looks at."""


@dataclass(frozen=True)
class Option:
    """A choice for a tile: its innermost and its swizzled dimension, and what it costs by itself."""

    innermost: int
    swizzled: int | None
    cost: int

    def has(self, dimension: int) -> bool:
        """Whether threads can go along a dimension."""
        return dimension in (self.innermost, self.swizzled)


type _Table = tuple[tuple[int, ...], dict[tuple[int, ...], int]]
"""Tiles, and what each choice of them costs, by the numbers of their options."""
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
        found = by_branch_and_bound(part, MOST_NODES) or by_elimination(part)
        if found is None and cp_sat() is not None:
            found = by_cp_sat(part)
        chosen |= found or by_branch_and_bound(part, LAST_NODES, is_exact=False) or {}
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


def by_branch_and_bound(
    program: LayoutProgram, most: int | None = None, is_exact: bool = True
) -> dict[int, Option] | None:
    """Return the best choices, tile by tile, those of most rules first; after so many nodes None, or the best so far.

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

    return found if follow(0, 0, 0) or not is_exact else None


def by_elimination(program: LayoutProgram, most: int = MOST_ENTRIES) -> dict[int, Option] | None:
    """Return the best choices by dynamic programming; None if more than ``most`` choices had to be looked at at once.

    Tile after tile is left out, with its best option for each choice of the tiles that share rules with it: what that
    costs then is a rule of these. The next tile is always one with the fewest such choices.
    """
    if any(_entries(program, rule.tiles) > most for rule in program.rules):
        return None
    tables = [_table_of(program, rule) for rule in program.rules]
    around = {tile: {tile} for tile in sorted(program.options)}
    for scope, _ in tables:
        for tile in scope:
            around[tile] |= set(scope)
    steps: list[tuple[int, tuple[int, ...], dict[tuple[int, ...], int]]] = []
    while around:
        tile = min(around, key=lambda each: _entries(program, around[each]))
        if _entries(program, around[tile]) > most:
            return None
        scope = tuple(sorted(around.pop(tile) - {tile}))
        costs, options = _left_out(program, tile, scope, [each for each in tables if tile in each[0]])
        tables = [each for each in tables if tile not in each[0]] + [(scope, costs)]
        for other in scope:
            around[other] = (around[other] | set(scope)) - {tile}
        steps.append((tile, scope, options))
    chosen: dict[int, int] = {}
    for tile, scope, options in reversed(steps):
        chosen[tile] = options[tuple(chosen[each] for each in scope)]
    return {tile: program.options[tile][chosen[tile]] for tile in program.options}


def _entries(program: LayoutProgram, tiles: Collection[int]) -> int:
    return math.prod(len(program.options[tile]) for tile in tiles)


def _choices(program: LayoutProgram, tiles: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the choices of some tiles, by the numbers of their options."""
    return itertools.product(*(range(len(program.options[tile])) for tile in tiles))


def _table_of(program: LayoutProgram, rule: Rule) -> _Table:
    """Return what a rule costs, for each choice of its tiles."""
    scope = tuple(sorted(rule.tiles))
    choices = _choices(program, scope)
    costs = {
        each: rule.cost({tile: program.options[tile][number] for tile, number in zip(scope, each, strict=True)})
        for each in choices
    }
    return scope, costs


def _left_out(
    program: LayoutProgram, tile: int, scope: tuple[int, ...], tables: Sequence[_Table]
) -> tuple[dict[tuple[int, ...], int], dict[tuple[int, ...], int]]:
    """Return what the best option of a tile costs for each choice of the tiles around it, and which it is."""
    costs: dict[tuple[int, ...], int] = {}
    options: dict[tuple[int, ...], int] = {}
    places = {each: place for place, each in enumerate((*scope, tile))}
    for choice in _choices(program, scope):
        for number, option in enumerate(program.options[tile]):
            both = (*choice, number)
            cost = option.cost + sum(found[tuple(both[places[each]] for each in of)] for of, found in tables)
            if choice not in costs or cost < costs[choice]:
                costs[choice], options[choice] = cost, number
    return costs, options


def by_cp_sat(program: LayoutProgram) -> dict[int, Option] | None:
    """Return the best choices as CP-SAT finds them; None if it gives up."""
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
        return None
    return {
        tile: next(option for option, taken in zip(options, chosen[tile], strict=True) if solver.value(taken))
        for tile, options in program.options.items()
    }
