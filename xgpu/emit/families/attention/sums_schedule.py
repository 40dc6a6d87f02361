"""Schedules of chains of sums: the division of work among blocks and threads."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Self

from xgpu import ir
from xgpu.analysis.attention.chained_sums import ChainedSums
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.emit.families.attention.schedule import ChainSchedule
from xgpu.emit.families.attention.sums_facts import SumsFacts, SumsTiles, form_problem, has_adjacent_keys, sizes_of
from xgpu.emit.families.attention.tiles import panel_of
from xgpu.emit.schedule import flag
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.records import dataclass

_LEAST_KEYS = 32


@dataclass(frozen=True)
class SumsSchedule(ChainSchedule):
    """The division of the rows of a chain of sums among blocks, and among the threads of a block."""

    turns: bool = flag("Whether warp groups start the products of arrays in turn, if there are several groups.")
    key_multiple: ClassVar[int] = _LEAST_KEYS

    @property
    def most_held(self) -> int:
        """The most numbers that a thread was seen to hold: a little more if the block has two warp groups."""
        return 224 if self.groups > 1 else 200

    @classmethod
    def of(cls, facts: SumsFacts) -> Self:
        """Choose as many rows as two warp groups have, and the most keys for which there are registers and memory."""
        space, most = facts.chain.space, facts.fusion.device.sm_count
        rows, keys = space.shape[space.resident], space.shape[space.stepped]
        candidates = []
        for groups in (2, 1) if rows > WARPGROUP_ROWS else (1,):
            for step in (128, 64, 32) if keys > WARPGROUP_ROWS else (64, 32):
                for stages in (2, 1):
                    size = groups * WARPGROUP_ROWS
                    tiles = math.prod(SumsTiles(facts.chain, size, step).grid)
                    each = cls(size, step, stages, groups, min(tiles, most), False)
                    # Threads that hold as many numbers as they can are slower with turns.
                    candidates.append(replace(each, turns=groups > 1 and each.held(facts.sizes) < each.most_held))
        fitting = [each for each in candidates if each.fits(facts)]
        return (fitting or candidates)[0]

    def problems(self, facts: SumsFacts) -> Iterator[str]:
        """The tiles are ones that warp groups multiply, and fit the memory of a block."""
        yield from self.kernel_problems(facts.sizes, facts.fusion.device)
        if facts.has_adjacent_keys and self.tile_n % (panel := panel_of(facts.chain.element_bytes)):
            yield self.wrong("tile_n", f"a multiple of {panel}, as keys are neighbours in memory")
        if problem := facts.copies_problem(self.tile_m, self.tile_n):
            yield self.wrong("tile_n", f"as many keys, and rows, as can be copied as boxes, but {problem}")


def sums_problem(chain: ChainedSums, arrays: dict[ir.Value, ir.Value]) -> str | None:
    """Return why no kernel computes a chain of sums of operands that are ``arrays``, or made of them; None if one does.

    Threads have to have room for the products and sums of 64 rows, and blocks for the tiles of a step.
    """
    if problem := form_problem(chain, arrays):
        return problem
    keys = panel_of(chain.element_bytes) if has_adjacent_keys(chain, arrays) else _LEAST_KEYS
    least = _smallest(keys)
    most = device(DEFAULT_DEVICE).shared_bytes_optin
    return next(least.size_problems(sizes_of(chain, arrays), most), None)


def most_products() -> int:
    """Return the most products of arrays for which the threads of any kernel have room, if they hold nothing else."""
    least = _smallest(_LEAST_KEYS)
    return 2 * least.most_held // least.tile_n


def _smallest(keys: int) -> SumsSchedule:
    return SumsSchedule(WARPGROUP_ROWS, keys, 1, 1, 1, False)
