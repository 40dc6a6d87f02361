"""Schedules of matrix products: the division of work among blocks and threads."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Self

from xgpu.costs.products.products import COMPUTED_TILES, SPLITS, TILE_COLUMNS, TILES, ProductTile, product_seconds
from xgpu.device import Device
from xgpu.dialects.block.copies import TENSOR_MAP_BYTES
from xgpu.dialects.block.matrices import multiplied_as, warpgroup_columns
from xgpu.emit.families.products.facts import Operands, Products
from xgpu.emit.families.products.prologue import computing, tiled
from xgpu.emit.schedule import Schedule, flag, power_of_two, whole_number
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS, Holders
from xgpu.indexing.tiles.product_maps import ROW_BYTES, TileSizes
from xgpu.indexing.tiles.ragged_maps import table_bytes
from xgpu.indexing.tiles.row_panels import NEIGHBOURS, PANEL_COLUMNS, Panels
from xgpu.records import dataclass
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
_MEASURED_KINDS = 4
"""The number of best tiles of each kind that are measured: split, swapped, or neither."""
_MOST_SUMS = 192
"""Sums that a thread has registers for: with more ptxas spills them, and does products one by one."""
_INSTRUCTIONS = frozenset(("wgmma", "setmaxnreg", "tensormap.replace"))
"""The instructions that kernels of products need."""


@dataclass(frozen=True)
class ProductSchedule(Schedule):
    """The division of a product among blocks, and among the threads of a block."""

    tile_m: int = power_of_two("Rows of a block's tile.", least=64, most=256)
    tile_n: int = whole_number("Columns of a block's tile, a multiple of 8.", least=8, most=256)
    tile_k: int = power_of_two("Elements that a step contracts.", least=8, most=128)
    stages: int = whole_number("Steps whose tiles shared memory has room for.", least=2, most=16)
    groups: int = whole_number("Warp groups that multiply; each has its share of the rows.", most=3)
    blocks: int = whole_number("Blocks of the launch, each of which computes tiles in turn.", most=1 << 20)
    cluster: int = power_of_two("Blocks one below the other that share tiles of the right operand.", most=8)
    staged: bool = flag("Whether results go through shared memory, to be copied as boxes; else the sums do, before.")
    band: int = whole_number("Rows of tiles that are computed column by column, for what they share.", most=1 << 20)
    split: int = power_of_two("Blocks of a cluster that compute a tile together, each some of its steps.", most=8)
    swapped: bool = flag("Whether the rows of tiles are columns of the result, and their columns its rows.")

    @classmethod
    def of(cls, facts: Products) -> Self:
        """Tiles that take the least time; as many stages as there is room for."""
        tiles = tiles_of(facts)
        found = next(cls._fitting(facts, tiles), None)
        return found or cls._with_tile(facts, tiles[0])

    @classmethod
    def beside(cls, given: Mapping[str, int], facts: Products) -> Self:
        """The numbers of the tiles that take the least time of those with the given numbers; if none fits, of any."""
        best = cls.of(facts)
        wanted = dict[str, Any](given)
        if any(replace(best, **wanted).range_problems()):
            return best
        named = {"tile_m": "rows", "tile_n": "columns", "split": "split", "swapped": "is_swapped"}
        fixed = {name: wanted[number] for number, name in named.items() if number in wanted}
        tiles = dict.fromkeys(replace(each, **fixed) for each in tiles_of(facts))
        others = wanted.get("staged"), wanted.get("cluster", 1)
        several = (cls._with_tile(facts, each, *others) for each in cls._timed(facts, tiles))
        return next((each for each in several if replace(each, **wanted).fits(facts)), best)

    @classmethod
    def candidates(cls, facts: Products) -> list[Self]:
        """The tiles that take the least time by estimate; with the best, results the other way, and a cluster.

        And the best of the tiles that are split, or swapped, otherwise.
        """
        if facts.product.prologue is not None:
            return list(islice(cls._fitting(facts, tiles_of(facts)), _MEASURED_TILES + _MEASURED_KINDS))
        large = tuple(ProductTile(_LARGE_ROWS, columns) for columns in TILE_COLUMNS)
        fitting = list(islice(cls._fitting(facts, (*TILES, *large)), _MEASURED_TILES))
        best = cls.of(facts)
        staged = cls._with_tile(facts, best.tile, staged=not best.staged)
        paired = cls._with_tile(facts, best.tile, cluster=2)
        kinds = [(split, swapped) for swapped in (False, True) for split in SPLITS]
        of_kinds = [[each for each in TILES if (each.split, each.is_swapped) == kind] for kind in kinds]
        others = [each for tiles in of_kinds if (each := next(cls._fitting(facts, tiles), None)) is not None]
        others.sort(key=lambda each: each.seconds(facts))
        changed = [each for each in (staged, paired) if each.fits(facts)]
        return list(dict.fromkeys((best, *fitting, *changed, *others[:_MEASURED_KINDS])))

    @classmethod
    def _fitting(cls, facts: Products, tiles: Sequence[ProductTile]) -> Iterator[Self]:
        """Yield schedules of tiles, those first that take the least time."""
        several = (cls._with_tile(facts, each) for each in cls._timed(facts, tiles))
        yield from (each for each in several if each.fits(facts))

    @classmethod
    def _timed(cls, facts: Products, tiles: Iterable[ProductTile]) -> list[ProductTile]:
        """Return the tiles in the order of their times."""
        plain = [each for each in tiles if not facts.product.has_groups or each.is_plain]
        return sorted(plain, key=lambda each: _seconds(facts, each))

    @classmethod
    def _with_tile(cls, facts: Products, tile: ProductTile, staged: bool | None = None, cluster: int = 1) -> Self:
        product, device = facts.swapped if tile.is_swapped else facts.product, facts.fusion.device
        sizes = TileSizes(tile.rows, tile.columns, product.step)
        if staged is None:
            is_possible = tile.is_plain and not facts.product.has_groups
            staged = is_possible and facts.is_short and facts.staging_problem(sizes) is None
        batch, down, along = product.grid(tile.rows, tile.columns)
        tiles = batch * down * along
        one = cls(
            tile_m=tile.rows,
            tile_n=tile.columns,
            tile_k=product.step,
            stages=1,
            groups=min(_MOST_GROUPS, tile.rows // WARPGROUP_ROWS),
            blocks=tiles * tile.split if tile.split > 1 else min(tiles, device.sm_count) // cluster * cluster,
            cluster=cluster,
            staged=staged,
            band=max(each for each in range(1, _BAND + 1) if down // cluster % each == 0),
            split=tile.split,
            swapped=tile.is_swapped,
        )
        several = (replace(one, stages=stages) for stages in range(_MOST_STAGES, 1, -1))
        room, results = device.shared_bytes_optin, facts.result_bytes
        given = results, facts.operands
        return next((each for each in several if each.shared_bytes(*given) <= room), one)

    @property
    def tile(self) -> ProductTile:
        """The tile of a block, or of blocks together."""
        return ProductTile(self.tile_m, self.tile_n, self.split, self.swapped)

    def seconds(self, facts: Products) -> float:
        """Return how long the kernel takes, about."""
        return _seconds(facts, self.tile, self.blocks)

    def group_bytes(self, result_bytes: Sequence[int], rights: int) -> int:
        """The shared memory by which a warp group hands on 64 rows: any of the results, or all sums by panels.

        Of a part of sums it is that for all of its rows.
        """
        if self.staged:
            return WARPGROUP_ROWS * self.tile_n * max(result_bytes)
        panels = self.panels
        return rights * panels.bytes * (len(panels.parts) * self.holders.share if self.split > 1 else 1)

    def shared_bytes(self, result_bytes: Sequence[int], operands: Operands) -> int:
        """The shared memory of a block: tiles, results with elements of so many bytes, tensor maps and mbarriers.

        And where groups of rows begin. Parts of sums are where the tiles were.
        """
        rights = operands.rights
        bits = self.tile_m * operands.left_bits + rights * self.tile_n * operands.bits
        tiles = self.stages * bits * self.tile_k // 8
        results = self.groups * self.group_bytes(result_bytes, rights)
        maps = (1 + rights + (len(result_bytes) if self.staged else 0)) * TENSOR_MAP_BYTES
        others = maps + self.stages * _BARRIER_BYTES + table_bytes(operands.groups)
        return (max(tiles, results) if self.split > 1 else tiles + results) + others

    @property
    def sizes(self) -> TileSizes:
        """The tiles of a step."""
        return TileSizes(self.tile_m, self.tile_n, self.tile_k)

    @property
    def threads(self) -> int:
        """The threads of a block: the warp groups that multiply, and one that copies."""
        return (self.groups + 1) * WARPGROUP_SIZE

    @property
    def _fragment_words(self) -> int:
        """The words of a left operand that a thread holds of a step, with elements of 16 bits."""
        return self.tile_m * self.tile_k // (2 * self.groups * WARPGROUP_SIZE)

    @property
    def holders(self) -> Holders:
        """The threads that hold a block's sums: warp groups, each of them whole rows."""
        share = self.tile_m // self.groups // WARPGROUP_ROWS
        return Holders(self.groups, WARPGROUP_SIZE // WARP_SIZE, share, 1, self.tile_n)

    @property
    def panels(self) -> Panels:
        """The panels through which sums go from thread to thread where results are not staged."""
        if self.split == 1 and not self.swapped:
            return Panels(self.holders)
        # All have as many columns.
        columns = max((each for each in range(8, PANEL_COLUMNS + 1, 8) if self.tile_n % each == 0), default=8)
        return Panels(self.holders, NEIGHBOURS, columns, self.split, self.swapped)

    def problems(self, facts: Products) -> Iterator[str]:
        """The tiles are ones that warp groups multiply, and fit the memory of a block; operands are copied as boxes."""
        product, sizes = facts.swapped if self.swapped else facts.product, self.sizes
        if product.prologue is not None and product.prologue.number != self.swapped:
            wanted = str(not self.swapped).lower()
            yield self.wrong("swapped", f"{wanted}, so that the operand that is computed is the left one")
            return
        grid = product.grid(self.tile_m, self.tile_n)
        steps, target = -(-product.k // self.tile_k), facts.fusion.device
        yield from self.kernel_problems(facts.operands, grid, steps, facts.result_bytes, target)
        if facts.product.has_groups:
            yield from self.group_problems()
        if problem := product.problem(sizes):
            yield f"tile_n = {self.tile_n}: {problem}"
        if self.staged and (problem := facts.staging_problem(sizes)):
            yield self.wrong("staged", f"results that can be copied as boxes, but {problem}")

    def kernel_problems(
        self, operands: Operands, grid: Sequence[int], steps: int, result_bytes: Sequence[int], target: Device
    ) -> Iterator[str]:
        """Yield why no kernel of such operands and results, a grid of tiles, and so many steps has these numbers."""
        if missing := device_problem(target):
            yield missing
        rights = operands.rights
        if rights * self.tile_n not in warpgroup_columns(multiplied_as(operands.element)):
            of_each = f", with those of {rights} operands together" if rights > 1 else ""
            yield self.wrong("tile_n", f"a number of columns that the instruction has{of_each}")
        if self.tile_k != operands.step:
            yield self.wrong("tile_k", f"{operands.step}, rows of {ROW_BYTES} bytes")
        if self.tile_m % (self.groups * WARPGROUP_ROWS):
            yield self.wrong("groups", f"each to have a multiple of {WARPGROUP_ROWS} rows")
        sums = self.tile_m * rights * self.tile_n // (self.groups * WARPGROUP_SIZE)
        held = sums + (self._fragment_words if operands.is_computed else 0)
        if held > _MOST_SUMS:
            what = "sums and words of operands" if operands.is_computed else "sums"
            yield self.wrong("groups", f"so many that a thread has at most {_MOST_SUMS} {what}, not {held}")
        used, most = self.shared_bytes(result_bytes, operands), target.shared_bytes_optin
        if used > most:
            yield self.wrong("stages", f"so few that {most} bytes of shared memory suffice, not {used}")
        if rights > 1 and (self.split > 1 or self.swapped):
            name = "split" if self.split > 1 else "swapped"
            yield self.wrong(name, f"{'1' if self.split > 1 else 'false'}, of products with {rights} right operands")
        if operands.is_computed and self.cluster > 1:
            yield self.wrong("cluster", "1, of a product with an operand that is computed")
        if operands.is_computed and self.groups > _MOST_GROUPS:
            yield self.wrong("groups", f"at most {_MOST_GROUPS}, each of whose warps has a barrier of its own")
        yield from self._split_problems(math.prod(grid), steps)
        down = grid[1]
        if down % self.cluster or self.blocks % self.cluster:
            yield self.wrong("cluster", f"a divisor of {down}, the rows of tiles, and of {self.blocks}, the blocks")
        elif down // self.cluster % self.band:
            yield self.wrong("band", f"a divisor of {down // self.cluster}, the rows of tiles, or of clusters")

    def group_problems(self) -> Iterator[str]:
        """Yield why a kernel of rows in groups, of which tiles have as many as it happens, has no such numbers."""
        wanted = {"split": 1, "cluster": 1, "swapped": False, "staged": False}
        for name, number in wanted.items():
            if getattr(self, name) != number:
                yield self.wrong(name, f"{str(number).lower()}, where rows are in groups")

    def _split_problems(self, tiles: int, steps: int) -> Iterator[str]:
        """Yield why blocks of a cluster cannot have parts of so many steps, or results go as boxes."""
        if self.staged and (self.split > 1 or self.swapped):
            yield self.wrong("staged", "false where a tile is split or swapped: the sums go through shared memory")
        if self.split == 1:
            return
        if self.split > steps:
            yield self.wrong("split", f"at most {steps}, the steps of a tile")
        if self.cluster > 1:
            yield self.wrong("cluster", "1 where a tile is split, whose blocks are a cluster")
        if self.blocks != tiles * self.split:
            yield self.wrong("blocks", f"{tiles * self.split}, one for each of {self.split} parts of {tiles} tiles")


def tiles_of(facts: Products) -> Sequence[ProductTile]:
    """Return the tiles that blocks compute if nobody says otherwise: the computed operand's rows are theirs."""
    prologue = facts.product.prologue
    if prologue is None:
        return TILES
    return [replace(each, is_swapped=bool(prologue.number)) for each in COMPUTED_TILES]


def _seconds(facts: Products, tile: ProductTile, blocks: int | None = None) -> float:
    """Return how long a product takes in a tile, computed by so many blocks, about."""
    product, device = facts.product, facts.fusion.device
    if product.prologue is not None:
        return computing(tiled(product)).kernel_seconds(tile, max(facts.result_bytes), device)
    known = replace(tile, rights=facts.rights, has_groups=product.has_groups)
    return product_seconds(known, product.sizes, facts.element_bytes, device, blocks)


def device_problem(target: Device) -> str | None:
    """Return why no kernel computes products on a GPU; None if it has the instructions."""
    return target.lacking(_INSTRUCTIONS)
