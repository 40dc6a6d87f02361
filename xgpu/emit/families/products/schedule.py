"""How the blocks and threads of a matrix product share it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from xgpu.costs.products import TILE_COLUMNS, TILE_ROWS, product_seconds
from xgpu.device import Device
from xgpu.dialects.block.copies import TENSOR_MAP_BYTES
from xgpu.dialects.block.matrices import multiplied_as, warpgroup_columns
from xgpu.dtypes import DType
from xgpu.emit.families.products.facts import Products
from xgpu.emit.schedule import Schedule, flag, power_of_two, whole_number
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS, Holders
from xgpu.indexing.tiles.product_maps import ROW_BYTES, TileSizes
from xgpu.indexing.tiles.row_panels import Panels
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_MOST_STAGES = 8
_BARRIER_BYTES = 16
"""The two mbarriers of a stage."""
_BAND = 16
"""Rows of tiles that blocks at work share columns of the right operand with, at most."""
_MOST_GROUPS = 2
"""Warp groups that multiply if nobody says otherwise, each with the rows of one instruction or more."""
_LARGE_ROWS = 256
"""Rows of tiles that are measured too."""
_MEASURED_TILES = 5
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
        fitting = [each for each in candidates if each.fits(facts)]
        return min(fitting or candidates, key=lambda each: each.seconds(facts))

    @classmethod
    def candidates(cls, facts: Products) -> list[Self]:
        """The tiles that take the least time by estimate; with the best, results the other way, and a cluster."""
        tiles = [cls._with_tile(facts, m, n) for m in (*TILE_ROWS, _LARGE_ROWS) for n in TILE_COLUMNS]
        fitting = sorted((each for each in tiles if each.fits(facts)), key=lambda each: each.seconds(facts))
        best = cls.of(facts)
        staged = cls._with_tile(facts, best.tile_m, best.tile_n, staged=not best.staged)
        paired = cls._with_tile(facts, best.tile_m, best.tile_n, cluster=2)
        others = [*fitting[:_MEASURED_TILES], *(each for each in (staged, paired) if each.fits(facts))]
        return list(dict.fromkeys((best, *others)))

    @classmethod
    def _with_tile(cls, facts: Products, m: int, n: int, staged: bool | None = None, cluster: int = 1) -> Self:
        product, device = facts.product, facts.fusion.device
        if staged is None:
            staged = facts.is_short and facts.staging_problem(TileSizes(m, n, product.step)) is None
        batch, down, along = product.grid(m, n)
        one = cls(
            tile_m=m,
            tile_n=n,
            tile_k=product.step,
            stages=1,
            groups=min(_MOST_GROUPS, m // WARPGROUP_ROWS),
            blocks=min(batch * down * along, device.sm_count) // cluster * cluster,
            cluster=cluster,
            staged=staged,
            band=max(each for each in range(1, _BAND + 1) if down // cluster % each == 0),
        )
        room = device.shared_bytes_optin - one.shared_bytes(facts.result_bytes, facts.rights)
        return replace(one, stages=min(_MOST_STAGES, 1 + room // one._stage_bytes(facts.rights)))

    def seconds(self, facts: Products) -> float:
        """Return how long the kernel takes, about."""
        product = facts.product
        tiles = math.prod(product.grid(self.tile_m, self.tile_n))
        waves, steps = -(-tiles // self.blocks), -(-product.k // self.tile_k)
        sizes = (self.tile_m, self.tile_n * facts.rights, ROW_BYTES)
        results = self.tile_m * self.tile_n * max(facts.result_bytes)
        return product_seconds(sizes, steps, waves, results, facts.fusion.device)

    def _stage_bytes(self, rights: int) -> int:
        return (self.tile_m + rights * self.tile_n) * ROW_BYTES + _BARRIER_BYTES

    def group_bytes(self, result_bytes: Sequence[int], rights: int) -> int:
        """The shared memory by which a warp group hands on 64 rows: any of the results, or all sums by panels."""
        return WARPGROUP_ROWS * self.tile_n * max(result_bytes) if self.staged else rights * self.panels.bytes

    def shared_bytes(self, result_bytes: Sequence[int], rights: int) -> int:
        """The shared memory of a block: tiles, results with elements of so many bytes, tensor maps and mbarriers."""
        maps = 1 + rights + (len(result_bytes) if self.staged else 0)
        handed = self.groups * self.group_bytes(result_bytes, rights)
        return self.stages * self._stage_bytes(rights) + handed + maps * TENSOR_MAP_BYTES

    @property
    def sizes(self) -> TileSizes:
        """The tiles of a step."""
        return TileSizes(self.tile_m, self.tile_n, self.tile_k)

    @property
    def threads(self) -> int:
        """The threads of a block: the warp groups that multiply, and one that copies."""
        return (self.groups + 1) * WARPGROUP_SIZE

    @property
    def holders(self) -> Holders:
        """Which threads hold a block's sums: warp groups, each of them whole rows."""
        share = self.tile_m // self.groups // WARPGROUP_ROWS
        return Holders(self.groups, WARPGROUP_SIZE // WARP_SIZE, share, 1, self.tile_n)

    @property
    def panels(self) -> Panels:
        """How sums go from thread to thread where results are not staged."""
        return Panels(self.holders)

    def problems(self, facts: Products) -> Iterator[str]:
        """The tiles are ones that warp groups multiply, and fit the memory of a block; operands are copied as boxes."""
        product, sizes = facts.product, self.sizes
        _, down, _ = product.grid(self.tile_m, self.tile_n)
        yield from self.kernel_problems(product.dtype, down, facts.result_bytes, facts.fusion.device, facts.rights)
        if problem := product.problem(sizes):
            yield f"tile_n = {self.tile_n}: {problem}"
        if self.staged and (problem := facts.staging_problem(sizes)):
            yield self.wrong("staged", f"results that can be copied as boxes, but {problem}")

    def kernel_problems(
        self, dtype: DType, down: int, result_bytes: Sequence[int], target: Device, rights: int
    ) -> Iterator[str]:
        """Yield why no kernel of such operands and results, and ``down`` rows of tiles, has these numbers.

        ``rights`` is the number of right operands, whose tiles are multiplied as one.
        """
        if missing := device_problem(target):
            yield missing
        if rights * self.tile_n not in warpgroup_columns(multiplied_as(dtype.mlir)):
            of_each = f", with those of {rights} operands together" if rights > 1 else ""
            yield self.wrong("tile_n", f"a number of columns that the instruction has{of_each}")
        if self.tile_k * dtype.bits != 8 * ROW_BYTES:
            yield self.wrong("tile_k", f"{8 * ROW_BYTES // dtype.bits}, rows of {ROW_BYTES} bytes")
        if self.tile_m % (self.groups * WARPGROUP_ROWS):
            yield self.wrong("groups", f"each to have a multiple of {WARPGROUP_ROWS} rows")
        sums = self.tile_m * rights * self.tile_n // (self.groups * WARPGROUP_SIZE)
        if sums > _MOST_SUMS:
            yield self.wrong("groups", f"so many that a thread has at most {_MOST_SUMS} sums, not {sums}")
        used, most = self.shared_bytes(result_bytes, rights), target.shared_bytes_optin
        if used > most:
            yield self.wrong("stages", f"so few that {most} bytes of shared memory suffice, not {used}")
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
