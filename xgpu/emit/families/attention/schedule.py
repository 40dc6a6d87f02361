"""How the blocks and threads of attention share it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from xgpu.costs.attention import AttentionSizes, kernel_seconds
from xgpu.device import Device
from xgpu.dialects.block.copies import TENSOR_MAP_BYTES
from xgpu.emit.families.attention.facts import ELEMENT_BYTES, AttentionFacts
from xgpu.emit.families.products.schedule import device_problem
from xgpu.emit.schedule import Schedule, flag, whole_number
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS, Holders
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

ARRAYS = 4
"""Those with a tensor map: queries, keys, values and the result."""
_BARRIER_BYTES = 16
"""The two mbarriers of a buffer."""
_DECIDING_BYTES = 64
"""What tells whether tiles are to be computed again: an mbarrier, and a word for each warp."""
_MOST_HELD = 200
"""Registers that a thread has for scores, weights and sums, beside addresses."""
_KEYS = (128, 64)
_PLAIN = dict.fromkeys(("folded", "branched", "overlap", "turns"), False)
"""How threads work if nobody says otherwise: one thing after the other, as none of these was measured as it is now."""


@dataclass(frozen=True)
class AttentionSchedule(Schedule):
    """How blocks share the rows of attention, and how the threads of a block do."""

    tile_m: int = whole_number("Rows of a block's tile, a multiple of 64 for each warp group.", least=64, most=192)
    tile_n: int = whole_number("Keys of a step, a multiple of 64.", least=64, most=256)
    stages: int = whole_number("Steps whose keys and values shared memory has room for.", least=1, most=8)
    groups: int = whole_number("Warp groups that multiply; each has 64 of the rows.", most=3)
    blocks: int = whole_number("Blocks of the launch, each of which computes tiles in turn.", most=1 << 20)
    folded: bool = flag("Whether a factor of all logits is left to the exponential.")
    branched: bool = flag("Whether masks by numbers are asked only in steps where they hide something.")
    overlap: bool = flag("Whether the second product of a step runs beside the first one of the next.")
    turns: bool = flag("Whether warp groups start their products in turn; for products that overlap.")
    band: ClassVar[int] = 1
    cluster: ClassVar[int] = 1
    """Blocks work alone."""

    def seconds(self, facts: AttentionFacts) -> float:
        """Return how long the kernel takes, about."""
        each = facts.attention
        sizes = AttentionSizes(each.batch, each.rows, each.keys, each.width, each.columns)
        return kernel_seconds(sizes, facts.fusion.device)

    @classmethod
    def of(cls, facts: AttentionFacts) -> Self:
        """As many rows as two warp groups have, and the most keys that there are registers and memory for."""
        attention, most = facts.attention, facts.fusion.device.sm_count
        groups = 1 if attention.rows <= WARPGROUP_ROWS else 2
        candidates = []
        for keys in _KEYS:
            for stages in (2, 1):
                rows = groups * WARPGROUP_ROWS
                tiles = math.prod(facts.tiles(rows, keys).grid)
                candidates.append(cls(rows, keys, stages, groups, min(tiles, most), **_PLAIN))
        if attention.keys <= _KEYS[-1]:
            candidates = [each for each in candidates if each.tile_n == _KEYS[-1]]
        fitting = [each for each in candidates if each.fits(facts)]
        return (fitting or candidates)[0]

    @property
    def threads(self) -> int:
        """The threads of a block: the warp groups that multiply, and one that copies."""
        return (self.groups + 1) * WARPGROUP_SIZE

    def holders(self, columns: int) -> Holders:
        """Which threads hold the rows of a matrix of so many columns."""
        return Holders(self.groups, WARPGROUP_SIZE // WARP_SIZE, 1, 1, columns)

    def shared_bytes(self, width: int, columns: int) -> int:
        """The shared memory of a block: queries, keys, values, results, tensor maps and mbarriers."""
        steps = self.stages * self.tile_n * (width + columns)
        elements = self.tile_m * (width + columns) + steps
        barriers = (1 + 2 * self.stages) * _BARRIER_BYTES
        return elements * ELEMENT_BYTES + ARRAYS * TENSOR_MAP_BYTES + barriers + _DECIDING_BYTES

    def problems(self, facts: AttentionFacts) -> Iterator[str]:
        """The tiles are ones that warp groups multiply, and fit the memory of a block."""
        tiles = facts.tiles(self.tile_m, self.tile_n)
        yield from self.kernel_problems(tiles.width, tiles.columns, facts.fusion.device)

    def kernel_problems(self, width: int, columns: int, target: Device) -> Iterator[str]:
        """Yield why no kernel has these numbers, whose rows have so many elements, and results so many columns."""
        if missing := device_problem(target):
            yield missing
        if self.tile_m != self.groups * WARPGROUP_ROWS:
            yield self.wrong("tile_m", f"{WARPGROUP_ROWS} rows for each of {self.groups} warp groups")
        if self.tile_n % WARPGROUP_ROWS:
            yield self.wrong("tile_n", f"a multiple of {WARPGROUP_ROWS}")
        held = (self.tile_n + self.tile_n // 2 + columns) // 2
        if held > _MOST_HELD:
            yield self.wrong("tile_n", f"so few keys that a thread holds at most {_MOST_HELD} numbers, not {held}")
        if self.turns and not (self.overlap and self.groups > 1):
            yield self.wrong("turns", "several warp groups, whose products overlap")
        used, most = self.shared_bytes(width, columns), target.shared_bytes_optin
        if used > most:
            yield self.wrong("stages", f"so few that {most} bytes of shared memory suffice, not {used}")
