"""How the blocks and threads of a matrix product share it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Self

from xgpu.costs.products import TILE_COLUMNS, TILE_ROWS, product_seconds
from xgpu.device import Device
from xgpu.dialects.block.matrices import WARPGROUP_ROWS, warpgroup_columns
from xgpu.emit.families.products.facts import Products
from xgpu.emit.schedule import Schedule, flag, power_of_two, whole_number
from xgpu.indexing.tiles.fragments import Holders
from xgpu.indexing.tiles.product_maps import ROW_BYTES, TileSizes
from xgpu.indexing.tiles.row_panels import PANEL_BYTES
from xgpu.target_machine import WARP_SIZE

_BARRIER_BYTES = 2048
"""Shared memory that a kernel takes besides its tiles, at most: mbarriers, and room for tensor maps."""
_MOST_STAGES = 8
_BAND = 16
"""Rows of tiles that blocks at work share columns of the right operand with, at most."""
_GROUP_THREADS = 128
_MOST_SUMS = 192
"""Sums that a thread has registers for: with more ptxas spills them, and does products one by one."""
_INSTRUCTIONS = frozenset(("wgmma", "setmaxnreg", "tensormap.replace"))
"""What kernels of products are made of."""


@dataclass(frozen=True)
class ProductSchedule(Schedule):
    """How the blocks of a product share it, and how the threads of a block do."""

    tile_m: int = power_of_two("Rows of a block's tile.", least=64, most=256)
    tile_n: int = whole_number("Columns of a block's tile, a multiple of 8.", least=8, most=256)
    tile_k: int = power_of_two("Elements that a step contracts.", least=8, most=128)
    stages: int = whole_number("Steps whose tiles shared memory has room for.", least=2, most=16)
    groups: int = whole_number("Warp groups that multiply; each has its share of the rows.", most=3)
    blocks: int = whole_number("Blocks of the launch, each of which computes tiles in turn.", most=1 << 20)
    cluster: int = power_of_two("Blocks one below the other that share tiles of the right operand.", most=8)
    staged: bool = flag("Whether results go through shared memory, to be copied as boxes; else the sums do, before.")
    band: int = whole_number("Rows of tiles that are computed column by column, for what they share.", most=1 << 20)

    @classmethod
    def of(cls, facts: Products) -> Self:
        """Tiles that take the least time; as many stages as there is room for."""
        candidates = [cls._with_tile(facts, m, n) for m in TILE_ROWS for n in TILE_COLUMNS]
        fitting = [each for each in candidates if not any(chain(each.range_problems(), each.problems(facts)))]
        return min(fitting or candidates, key=lambda each: each.seconds(facts))

    @classmethod
    def _with_tile(cls, facts: Products, m: int, n: int) -> Self:
        product, device = facts.product, facts.fusion.device
        staged = facts.is_short and facts.staging_problem(TileSizes(m, n, product.step)) is None
        groups = m // WARPGROUP_ROWS
        results = facts.staging_bytes(m, n) if staged else groups * PANEL_BYTES
        room = device.shared_bytes_optin - _BARRIER_BYTES - results
        batch, down, along = product.grid(m, n)
        return cls(
            tile_m=m,
            tile_n=n,
            tile_k=product.step,
            stages=min(_MOST_STAGES, room // ((m + n) * ROW_BYTES)),
            groups=groups,
            blocks=min(batch * down * along, device.sm_count),
            cluster=1,
            staged=staged,
            band=max(each for each in range(1, _BAND + 1) if down % each == 0),
        )

    def seconds(self, facts: Products) -> float:
        """Return how long the kernel takes, about."""
        product = facts.product
        tiles = math.prod(product.grid(self.tile_m, self.tile_n))
        waves, steps = -(-tiles // self.blocks), -(-product.k // self.tile_k)
        sizes = (self.tile_m, self.tile_n, ROW_BYTES)
        return product_seconds(sizes, steps, waves, facts.staging_bytes(self.tile_m, self.tile_n), facts.fusion.device)

    @property
    def sizes(self) -> TileSizes:
        """The tiles of a step."""
        return TileSizes(self.tile_m, self.tile_n, self.tile_k)

    @property
    def threads(self) -> int:
        """The threads of a block: the warp groups that multiply, and one that copies."""
        return (self.groups + 1) * _GROUP_THREADS

    @property
    def holders(self) -> Holders:
        """Which threads hold a block's sums: warp groups, each of them whole rows."""
        share = self.tile_m // self.groups // WARPGROUP_ROWS
        return Holders(self.groups, _GROUP_THREADS // WARP_SIZE, share, 1, self.tile_n)

    def problems(self, facts: Products) -> Iterator[str]:
        """The tiles are ones that warp groups multiply, and fit the memory of a block; operands are copied as boxes."""
        product, sizes = facts.product, self.sizes
        _, down, _ = product.grid(self.tile_m, self.tile_n)
        staging = facts.staging_bytes(self.tile_m, self.tile_n) if self.staged else self.groups * PANEL_BYTES
        yield from self.kernel_problems(product.element, product.element_bytes, down, staging, facts.fusion.device)
        if problem := product.problem(sizes):
            yield f"tile_n = {self.tile_n}: {problem}"
        if self.staged and (problem := facts.staging_problem(sizes)):
            yield self.wrong("staged", f"results that can be copied as boxes, but {problem}")

    def kernel_problems(
        self, element: str, element_bytes: int, down: int, staging_bytes: int, target: Device
    ) -> Iterator[str]:
        """Yield why no kernel has these numbers: of operands with such elements, and ``down`` rows of tiles.

        ``staging_bytes`` is the shared memory that results of a tile take.
        """
        if missing := device_problem(target):
            yield missing
        if self.tile_n not in warpgroup_columns(element):
            yield self.wrong("tile_n", "a number of columns that the instruction has")
        if self.tile_k * element_bytes != ROW_BYTES:
            yield self.wrong("tile_k", f"{ROW_BYTES // element_bytes}, rows of {ROW_BYTES} bytes")
        if self.tile_m % (self.groups * WARPGROUP_ROWS):
            yield self.wrong("groups", f"each to have a multiple of {WARPGROUP_ROWS} rows")
        sums = self.tile_m * self.tile_n // (self.groups * _GROUP_THREADS)
        if sums > _MOST_SUMS:
            yield self.wrong("groups", f"so many that a thread has at most {_MOST_SUMS} sums, not {sums}")
        used = self.stages * (self.tile_m + self.tile_n) * ROW_BYTES + _BARRIER_BYTES + staging_bytes
        most = target.shared_bytes_optin
        if used > most:
            yield self.wrong("stages", f"tiles of at most {most - _BARRIER_BYTES} bytes, the shared memory of a block")
        if down % self.cluster or self.blocks % self.cluster:
            yield self.wrong("cluster", f"a divisor of {down}, the rows of tiles, and of {self.blocks}, the blocks")
        elif down // self.cluster % self.band:
            yield self.wrong("band", f"a divisor of {down // self.cluster}, the rows of tiles, or of clusters")


def device_problem(target: Device) -> str | None:
    """Return why no kernel computes products on a GPU; None if it has the instructions."""
    missing = sorted(_INSTRUCTIONS - target.machine.instructions)
    return (
        f"expected a GPU with {', '.join(sorted(_INSTRUCTIONS))}; {target.name} has no {missing[0]}"
        if missing
        else None
    )
