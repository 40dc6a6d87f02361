"""A block's computation on tiles as a graph, from which the decisions about a kernel follow.

Operations are numbered in an order in which each comes after those that it reads. What steps carry is one tile, under
several numbers: that of the argument of the step, of the result after the last one.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

from xgpu.indexing.dot_dimensions import OperandDimensions
from xgpu.records import dataclass

Kind = Literal[
    "read", "numbers", "constant", "elementwise", "spread", "move", "reduce", "product", "steps", "yield", "write"
]
"""The kinds of operations, as far as plans differ by them.

``read`` takes a tile of an array and ``write`` puts one there, ``numbers`` and ``constant`` follow from the position in
the tile, ``spread`` reads elements several times, ``move`` at other positions. Whatever is none of these is a
``reduce``: any element of the result may need any of the operands. ``yield`` ends a step, or the block.
"""


@dataclass(frozen=True)
class Tile:
    """A tile that an operation makes, or that steps take. ``bits`` are those of an element in memory."""

    shape: tuple[int, ...]
    bits: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element in shared memory, where none share a byte."""
        return max(1, self.bits // 8)


@dataclass(frozen=True)
class PlanNode:
    """An operation. ``operands`` and ``results`` are numbers of tiles, ``region`` that of the steps around it, or 0.

    ``body`` is the number of the steps that it is, ``count`` how many there are; ``instructions`` are those for an
    element of its result, about. ``after`` has nodes that it must follow though it reads no tile of theirs.
    ``dimensions`` are those of the operands of a product, and ``fragment`` says how its results lie in registers: only
    equal ones can lie alike; ``instruction`` is what multiplies, if that is decided. ``axes`` are the dimensions that a
    reduction reduces, those of its result to which a broadcast maps its operand's, or those of its operand in the order
    of its result's, of a transpose.
    """

    kind: Kind
    operands: tuple[int, ...]
    results: tuple[int, ...]
    region: int = 0
    body: int = 0
    count: int = 0
    instructions: int = 1
    after: tuple[int, ...] = ()
    dimensions: tuple[OperandDimensions, OperandDimensions] | None = None
    fragment: str = ""
    instruction: str = ""
    axes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Carried:
    """A tile that steps carry: what they take, what a step sees, what it yields, and what is there in the end."""

    steps: int
    init: int
    argument: int
    yielded: int
    result: int


@dataclass(frozen=True)
class Graph:
    """The operations of a block, and the tiles that they make."""

    nodes: tuple[PlanNode, ...]
    tiles: tuple[Tile, ...]
    carried: tuple[Carried, ...] = ()

    @cached_property
    def maker(self) -> Mapping[int, int]:
        """The node that makes each tile; of what a step sees, its steps."""
        made = {tile: number for number, node in enumerate(self.nodes) for tile in node.results}
        return made | {each.argument: each.steps for each in self.carried}

    @cached_property
    def readers(self) -> Mapping[int, Sequence[int]]:
        """The nodes that read each tile, each as often as it does."""
        found: dict[int, list[int]] = {number: [] for number in range(len(self.tiles))}
        for number, node in enumerate(self.nodes):
            for tile in node.operands:
                found[tile].append(number)
        return found

    @cached_property
    def kept(self) -> Mapping[int, int]:
        """For each tile the number of the tile whose memory it is: carried tiles share that of the steps' result."""
        same = {number: number for number in range(len(self.tiles))}
        for each in self.carried:
            same[each.argument] = each.result
        return same

    def sources(self, tile: int, is_computed: Callable[[int], bool]) -> frozenset[int]:
        """Return the tiles that are read where ``tile`` is read: itself, or if computed there, what it is made of."""
        found, pending, seen = set[int](), [tile], set[int]()
        while pending:
            each = pending.pop()
            if each in seen:
                continue
            seen.add(each)
            if is_computed(each):
                pending += self.nodes[self.maker[each]].operands
            else:
                found.add(each)
        return frozenset(found)

    def within(self, region: int) -> Iterator[int]:
        """Yield the nodes of a region, those of steps in it not among them."""
        return (number for number, node in enumerate(self.nodes) if node.region == region)

    def carried_by(self, steps: int) -> list[Carried]:
        """Return what steps carry, in order."""
        return [each for each in self.carried if each.steps == steps]
