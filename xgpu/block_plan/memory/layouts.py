"""The layouts of tiles in shared memory: the program of a block's operations, and strides from its solution.

What operations ask for, and what it costs where they do not get it, is Mirage's (its transpiler's notes, "layout
resolution"), and so are the costs; none of them has been fitted by measurement. An operand of a product is read along
its contracted and its own dimension, so one is innermost and the other swizzled. Elementwise operations and reductions
go along one dimension, not a reduced one, which is innermost or swizzled in all of their tiles.
"""

from collections.abc import Iterator, Mapping, Sequence

from xgpu.block_plan.graph import PlanNode, Tile
from xgpu.block_plan.memory.layout_program import LayoutProgram, Option, Rule, Way, best
from xgpu.block_plan.memory.strides import strides_of, tile_bytes
from xgpu.block_plan.order.events import StagedGraph

NOT_WIDE = 4000
"""A copy to or from an array by single elements; by units of 8 or 4 bytes as much less as these are of 16."""
NOT_ASYNCHRONOUS = 20000
"""A copy in steps that threads have to wait for."""
NO_MATRIX = 10000
"""An operand of a product that matrix instructions cannot read by rows of 16 bytes."""
ACROSS = 4000
"""An operation whose neighbours in the block are no neighbours in memory."""
SWIZZLED = 1000
"""A tile that is swizzled."""

type Where = Mapping[int, int]
"""For each dimension of a tile that another is read at, the dimension of that one."""


def innermost(plan: StagedGraph, copies: Mapping[int, Sequence[int]], given: Mapping[int, int]) -> dict[int, int]:
    """Return the innermost dimension of each memory.

    ``copies`` are the costs of copies between a tile and arrays, for each innermost dimension; ``given`` are innermost
    dimensions that are not to be chosen.
    """
    return {memory: option.innermost for memory, option in best(program_of(plan, copies, given)).items()}


def program_of(plan: StagedGraph, copies: Mapping[int, Sequence[int]], given: Mapping[int, int]) -> LayoutProgram:
    """Return the program of a block's tiles in shared memory; tiles of no dimension are none of it."""
    tiles = plan.graph.tiles
    memories = sorted({memory for memory in plan.memory.values() if tiles[memory].shape})
    options = {memory: list(_options(tiles[memory], copies.get(memory, ()), given.get(memory))) for memory in memories}
    rules = [rule for number in range(len(plan.graph.nodes)) for rule in _rules(plan, number)]
    return LayoutProgram(options, rules)


def _options(tile: Tile, copies: Sequence[int], given: int | None) -> Iterator[Option]:
    """Yield the choices for a tile, those in the order of its dimensions, and without a swizzle, first."""
    rank = len(tile.shape)
    large = [number for number in range(rank) if tile.shape[number] > 1] or [rank - 1]
    for inner in reversed(large) if given is None else (given,):
        cost = tile_bytes(tile.shape, strides_of(tile, inner), tile.element_bytes) + (copies[inner] if copies else 0)
        yield Option(inner, None, cost)
        for other in reversed(large):
            if other != inner:
                yield Option(inner, other, cost + SWIZZLED)


def _rules(plan: StagedGraph, number: int) -> Iterator[Rule]:
    node = plan.graph.nodes[number]
    if node.kind == "product" and node.dimensions is not None:
        for tile, dimensions in zip(node.operands, node.dimensions, strict=True):
            pair = [_last(plan.graph.tiles[tile], each) for each in (dimensions.own, dimensions.contracting)]
            yield from _rule(plan, [[(tile, each) for each in pair if each is not None]], NO_MATRIX)
        (result,) = node.results
        rank = len(plan.graph.tiles[result].shape)
        yield from _rule(plan, [[(result, rank - 1)]] if rank else [], ACROSS)
    elif node.kind in ("elementwise", "reduce", "move") and plan.acts(number) and len(node.results) == 1:
        yield from _rule(plan, list(_iterations(plan, node)), ACROSS)
    elif node.kind == "write":
        (tile, *_) = node.operands
        shape = plan.graph.tiles[tile].shape
        reads = _roots(plan, tile, {number: number for number in range(len(shape))})
        yield from _rule(plan, [_at(reads, dimension) for dimension in range(len(shape))], ACROSS)


def _rule(plan: StagedGraph, ways: Sequence[Sequence[tuple[int, int]]], penalty: int) -> Iterator[Rule]:
    """Yield the rule of an operation, unless it says nothing: about tiles in registers, or of one element."""
    found = []
    for way in ways:
        kept: Way = tuple(
            (plan.memory[tile], dimension)
            for tile, dimension in way
            if tile in plan.memory and plan.graph.tiles[tile].shape[dimension] > 1
        )
        found.append(kept)
    if found and all(found):
        yield Rule(tuple(found), penalty)


def _iterations(plan: StagedGraph, node: PlanNode) -> Iterator[list[tuple[int, int]]]:
    """Yield the dimensions of all tiles for each dimension that an operation may go along."""
    (result,) = node.results
    shape = plan.graph.tiles[node.operands[0] if node.kind == "reduce" else result].shape
    reduced = set(node.axes or ()) if node.kind == "reduce" else set()
    kept = [number for number in range(len(shape)) if number not in reduced]
    reads: list[tuple[int, Where]] = []
    for tile in node.operands[:1] if node.kind == "reduce" else node.operands:
        at = _into(plan, node, tile)
        reads += _roots(plan, tile, at)
    for place, dimension in enumerate(kept):
        if shape[dimension] > 1:
            own = [(result, place if node.kind == "reduce" else dimension)]
            yield [*own, *_at(reads, dimension)]


def _at(reads: Sequence[tuple[int, Where]], dimension: int) -> list[tuple[int, int]]:
    return [(root, where[dimension]) for root, where in reads if dimension in where]


def _roots(plan: StagedGraph, tile: int, where: Where) -> list[tuple[int, Where]]:
    """Return the kept tiles that are read for a tile, with their dimensions for those of what reads it."""
    found: list[tuple[int, Where]] = []
    pending, seen = [(tile, where)], set[tuple[int, frozenset[tuple[int, int]]]]()
    while pending:
        tile, where = pending.pop()
        key = tile, frozenset(where.items())
        if key in seen:
            continue
        seen.add(key)
        if plan.where[tile] != "computed":
            found.append((tile, where))
            continue
        node = plan.graph.nodes[plan.graph.maker[tile]]
        for operand in reversed(node.operands):
            own = _into(plan, node, operand)
            pending.append((operand, {outer: own[inner] for outer, inner in where.items() if inner in own}))
    return found


def _into(plan: StagedGraph, node: PlanNode, operand: int) -> Where:
    """Return the operand's dimension for each dimension of a node's result or reduction; none for a mixed one."""
    rank = len(plan.graph.tiles[operand].shape)
    if node.kind == "spread" and node.axes is not None:
        return {axis: number for number, axis in enumerate(node.axes)}
    if node.kind == "move" and node.axes is not None:
        return dict(enumerate(node.axes))
    results = plan.graph.tiles[node.results[0]].shape
    if node.kind in ("elementwise", "reduce") or len(results) == rank:
        return {number: number for number in range(rank)}
    return {}


def _last(tile: Tile, dimensions: Sequence[int]) -> int | None:
    """Return the last of some dimensions that has more than one index."""
    return next((number for number in reversed(dimensions) if tile.shape[number] > 1), None)
