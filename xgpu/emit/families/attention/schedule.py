"""Schedules of attention: the division of work among blocks and threads."""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple, Self

from xgpu.costs.attention import kernel_seconds
from xgpu.device import Device
from xgpu.dialects.block.copies import TENSOR_MAP_BYTES
from xgpu.emit.families.attention.facts import AttentionFacts, sizes_of
from xgpu.emit.families.attention.tiles import panel_of
from xgpu.emit.families.products.schedule import device_problem
from xgpu.emit.schedule import Schedule, flag, whole_number
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS, Holders
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_BARRIER_BYTES = 16
"""The two mbarriers of a buffer."""
_DECIDING_BYTES = 64
"""The bytes that tell whether tiles are to be computed again: an mbarrier, and a word for each warp."""
_FORMS = tuple(itertools.product((128, 64), (2, 1)))
"""Keys and stages, the fastest that fits first."""
_WIDE_FORMS = ((128, 2), (64, 2), (32, 2), (64, 1), (32, 1))
"""The same for elements of 32 bits."""
_LONG_ROW, _LONG_FORMS = 256, ((32, 2), (32, 1), (64, 1))
"""The elements of rows of queries for which there is room in memory for fewer keys; products that overlap would need
more registers for places in memory than there are."""
_MOST_FEW = 64
"""Keys for which no step has more."""
_MOST_GROUPS, _LEAST_WAVES, _MOST_PADDED = 3, 4, 1.1
"""Warp groups for short rows, and when: tiles for so many waves of blocks, and with them so many times the rows."""
_SHORT_ROW, _NARROW_BYTES = 64, 2
"""The elements of a short row, and the bytes of one of them."""
_ARRAYS = 3
"""Those of attention without masks and biases: queries, keys and values."""
_CONTRACTED = 16
"""Elements of 16 bits that one instruction contracts."""


def _has_short_rows(facts: AttentionFacts) -> bool:
    """Whether attention has rows of few elements and nothing between its products but a softmax, for many tiles.

    Then three warp groups, of which each thread has fewer registers, are faster than two; masks would not leave enough.
    """
    attention = facts.attention
    tiles = facts.tiles(_MOST_GROUPS * WARPGROUP_ROWS, _FORMS[0][0])
    rows = -(-attention.rows // tiles.rows) * tiles.rows
    is_plain = facts.visible is None and len(facts.chain.operands) == _ARRAYS and len(facts.chain.results) == 1
    is_short = max(tiles.width, tiles.columns) <= _SHORT_ROW and tiles.element_bytes == _NARROW_BYTES
    is_large = math.prod(tiles.grid) >= _LEAST_WAVES * facts.fusion.device.sm_count
    return is_plain and is_short and is_large and rows <= _MOST_PADDED * attention.rows


class ChainSizes(NamedTuple):
    """The elements of rows of tiles: of those that all steps of a block share, of those of each step, of results.

    ``started`` products of a step are of arrays; each result is the sum of others, whose left operands are computed.
    Of what lies between a step also writes so many tiles of ``elements``.
    """

    fixed: tuple[int, ...]
    fed: tuple[int, ...]
    results: tuple[int, ...]
    started: int
    element_bytes: int = _NARROW_BYTES
    elements: int = 0


@dataclass(frozen=True)
class ChainSchedule(Schedule):
    """The division of a chain's rows among blocks, and among the threads of a block."""

    tile_m: int = whole_number("Rows of a block's tile, a multiple of 64 for each warp group.", least=64, most=192)
    tile_n: int = whole_number("Keys of a step, a multiple of 16, or of 32 without a softmax.", least=16, most=256)
    stages: int = whole_number("Steps whose tiles shared memory has room for.", least=1, most=8)
    groups: int = whole_number("Warp groups that multiply; each has 64 of the rows.", most=3)
    blocks: int = whole_number("Blocks of the launch, each of which computes tiles in turn.", most=1 << 20)
    band: ClassVar[int] = 1
    cluster: ClassVar[int] = 1
    """Blocks work alone."""
    key_multiple: ClassVar[int] = _CONTRACTED
    """Of what the keys of a step are a multiple."""

    @property
    def most_held(self) -> int:
        """The registers that a thread has for products, weights and sums, beside addresses."""
        return 200

    @property
    def threads(self) -> int:
        """The threads of a block: the warp groups that multiply, and one that copies."""
        return (self.groups + 1) * WARPGROUP_SIZE

    def holders(self, columns: int) -> Holders:
        """The threads that hold the rows of a matrix of so many columns."""
        return Holders(self.groups, WARPGROUP_SIZE // WARP_SIZE, 1, 1, columns)

    def shared_bytes(self, sizes: ChainSizes) -> int:
        """The shared memory of a block: tiles, results that are handed on, tensor maps and mbarriers."""
        rows = sum(sizes.fixed) + self.staged(sizes)
        elements = self.tile_m * rows + self.stages * self.tile_n * sum(sizes.fed)
        arrays = len(sizes.fixed) + len(sizes.fed) + len(sizes.results)
        barriers = (len(sizes.fixed) + self.stages * len(sizes.fed)) * _BARRIER_BYTES
        return elements * sizes.element_bytes + arrays * TENSOR_MAP_BYTES + barriers + _DECIDING_BYTES

    def staged(self, sizes: ChainSizes) -> int:
        """The elements of a row of results for which there is memory of their own: lanes write sectors of f32."""
        return max(sizes.results) if sizes.element_bytes == _NARROW_BYTES else 0

    def held(self, sizes: ChainSizes) -> int:
        """The registers of a thread that hold products of arrays, sums, and weights as they are rounded.

        Elements that are written are held beside weights of f32: ptxas spills 248 to 368 bytes of 128 keys otherwise.
        Those of 16 bits leave room as soon as they are rounded.
        """
        rounded = len(sizes.results) * self.tile_n * sizes.element_bytes // 4
        written = sizes.elements * self.tile_n if sizes.element_bytes > _NARROW_BYTES else 0
        return (sizes.started * self.tile_n + rounded + written + sum(sizes.results)) // 2

    def kernel_problems(self, sizes: ChainSizes, target: Device) -> Iterator[str]:
        """Yield why no kernel of these sizes has these numbers."""
        if missing := device_problem(target):
            yield missing
        yield from self.size_problems(sizes, target.shared_bytes_optin)

    def size_problems(self, sizes: ChainSizes, most: int) -> Iterator[str]:
        """Yield the same of numbers and sizes alone, for so many bytes of shared memory."""
        if self.tile_m != self.groups * WARPGROUP_ROWS:
            yield self.wrong("tile_m", f"{WARPGROUP_ROWS} rows for each of {self.groups} warp groups")
        if self.tile_n % self.key_multiple:
            yield self.wrong("tile_n", f"a multiple of {self.key_multiple}")
        if (held := self.held(sizes)) > self.most_held:
            yield self.wrong("tile_n", f"so few keys that a thread holds at most {self.most_held} numbers, not {held}")
        if (used := self.shared_bytes(sizes)) > most:
            yield self.wrong("stages", f"so few that {most} bytes of shared memory suffice, not {used}")


@dataclass(frozen=True)
class AttentionSchedule(ChainSchedule):
    """The division of attention's rows among blocks, and among the threads of a block."""

    folded: bool = flag("Whether a factor of logits, or a divisor, is left to the exponential.")
    branched: bool = flag("Whether masks by numbers are asked only in steps where they hide something.")
    overlap: bool = flag("Whether the second product of a step runs beside the first one of the next.")
    turns: bool = flag("Whether warp groups start their products in turn; for products that overlap.")
    reuse: bool = flag("Whether results are handed on in the memory of the queries.")
    computed: int = whole_number("Of 8 weights so many are computed by multiplications.", least=0, most=8)
    steady: bool = flag("Whether sums stay relative to a row's largest logit until another is far above it.")

    def staged(self, sizes: ChainSizes) -> int:
        """None if they have that of the queries."""
        return 0 if self.reuse else super().staged(sizes)

    def seconds(self, facts: AttentionFacts) -> float:
        """Return how long the kernel takes, about."""
        return kernel_seconds(sizes_of(facts.attention), facts.fusion.device)

    @classmethod
    def of(cls, facts: AttentionFacts) -> Self:
        """Choose as many rows as two warp groups have, and the most keys for which there are registers and memory.

        Results have memory of their own unless that of the queries is what leaves room for another stage: queries of
        the next rows are copied meanwhile.
        """
        attention = facts.attention
        groups = 1 if attention.rows <= WARPGROUP_ROWS else 2
        of_element = _FORMS if attention.element_bytes == _NARROW_BYTES else _WIDE_FORMS
        # Where 64 rows are those of a head of a group, more of them may be no box.
        several = dict.fromkeys((groups, 1))
        numbers = [(count, *each, reuse) for count in several for each in of_element for reuse in (False, True)]
        if attention.width > _LONG_ROW:
            numbers = [(each, *form, True) for each in (groups, 1) for form in _LONG_FORMS]
        forms = [(_MOST_GROUPS, *_FORMS[0], True), *numbers] if _has_short_rows(facts) else numbers
        candidates = [cls._of_form(facts, *each) for each in forms]
        if attention.keys <= _MOST_FEW:
            candidates = [each for each in candidates if each.tile_n <= _MOST_FEW]
        fitting = [each for each in candidates if each.fits(facts)]
        return (fitting or candidates)[0]

    @classmethod
    def _of_form(cls, facts: AttentionFacts, groups: int, keys: int, stages: int, reuse: bool) -> Self:
        """Return the schedule of these numbers. The others made every attention faster that was measured."""
        rows = groups * WARPGROUP_ROWS
        blocks = min(math.prod(facts.tiles(rows, keys).grid), facts.fusion.device.sm_count)
        overlap = facts.attention.width <= _LONG_ROW
        flags = {**dict.fromkeys(("folded", "branched", "steady"), True), "overlap": overlap, "reuse": reuse}
        return cls(rows, keys, stages, groups, blocks, **flags, turns=overlap and groups > 1, computed=0)

    @classmethod
    def beside(cls, given: Mapping[str, int], facts: AttentionFacts) -> Self:
        """The same; warp groups take turns only if there are several, and if their products overlap."""
        chosen = cls.of(facts)
        overlap, groups = given.get("overlap", chosen.overlap), given.get("groups", chosen.groups)
        return replace(chosen, turns=bool(overlap) and groups > 1)

    def problems(self, facts: AttentionFacts) -> Iterator[str]:
        """The tiles are ones that warp groups multiply, and fit the memory of a block."""
        tiles = facts.tiles(self.tile_m, self.tile_n)
        sizes = ChainSizes((tiles.width,), (tiles.width, tiles.columns), (tiles.columns,), 1, tiles.element_bytes)
        yield from self.kernel_problems(sizes, facts.fusion.device)
        if self.reuse and tiles.columns > tiles.width:
            yield self.wrong("reuse", f"rows of results as long as those of queries, {tiles.width} elements")
        if facts.has_adjacent_keys and self.tile_n % (panel := panel_of(tiles.element_bytes)):
            yield self.wrong("tile_n", f"a multiple of {panel}, as keys are neighbours in memory")
        if facts.attention.softmax.within and facts.attention.keys % self.tile_n:
            yield self.wrong(
                "tile_n", f"a divisor of a part's {facts.attention.keys} keys, the last of which are missing"
            )
        for name, rows, keys in (("tile_m", self.tile_m, WARPGROUP_ROWS), ("tile_n", WARPGROUP_ROWS, self.tile_n)):
            if problem := facts.copies_problem(rows, keys):
                yield self.wrong(name, f"tiles that can be copied as boxes, but {problem}")

    def kernel_problems(self, sizes: ChainSizes, target: Device) -> Iterator[str]:
        """Yield why no kernel of these sizes has these numbers."""
        yield from super().kernel_problems(sizes, target)
        if self.turns and not (self.overlap and self.groups > 1):
            yield self.wrong("turns", "several warp groups, whose products overlap")
