"""Schedules of matrix products that single warps multiply: the division of work among blocks and warps."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from xgpu.costs.products.warp_products import MOST_HELD, WARP_TILES, WarpTile, warp_product_seconds
from xgpu.device import KIB, Device
from xgpu.dialects.discardable import MAX_GRID
from xgpu.emit.families.products.warp_facts import WarpProducts
from xgpu.emit.schedule import Schedule, flag, power_of_two, whole_number
from xgpu.indexing.tiles.fragments import Holders
from xgpu.indexing.tiles.product_maps import TileSizes
from xgpu.indexing.tiles.row_panels import PANEL_COLUMNS, Panels
from xgpu.indexing.tiles.row_tiles import ASYNC_BYTES
from xgpu.indexing.tiles.warp_tiles import units
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

FRAGMENT = 16
"""Rows, columns and contracted elements of what a warp reads at once: of the right operand, for two products."""
_STAGES = (4, 3, 2)
"""Numbers of stages to choose from: of those that take the same time, the most."""
_MOST_WARPS = 15
"""Each has a barrier of its own, of those that a block has."""
_MOST_SUMS = 128
"""Sums that a thread has registers for, beside fragments and addresses."""
_BAND = 16
"""Rows of tiles that blocks at work share columns of the right operand with, at most."""
_ELEMENT_BYTES = 2
_INSTRUCTIONS = frozenset(("cp.async", "ldmatrix", "mma"))
"""The instructions that kernels of products of warps need."""


@dataclass(frozen=True)
class WarpProductSchedule(Schedule):
    """The division of a product among blocks, and among the warps of a block, all of which copy and multiply."""

    tile_m: int = power_of_two("Rows of a block's tile.", least=16, most=256)
    tile_n: int = whole_number("Columns of a block's tile, a multiple of 16 for each warp.", least=16, most=256)
    tile_k: int = power_of_two("Elements that a step contracts.", least=16, most=128)
    stages: int = whole_number("Steps whose tiles shared memory has room for.", least=2, most=8)
    down: int = power_of_two("Warps below each other; each has its share of the rows.", most=8)
    across: int = whole_number("Warps side by side; each has its share of the columns.", most=8)
    resident: int = whole_number("Blocks that a multiprocessor has room for, for which ptxas is to see.", most=8)
    blocks: int = whole_number("Blocks of the launch, each of which computes tiles in turn.", most=MAX_GRID[0])
    left_bytes: int = power_of_two(
        "Bytes of the left operand that a thread copies at once: from 4 on asynchronously, else through registers.",
        least=2,
        most=16,
    )
    right_bytes: int = power_of_two("The same for the right operand.", least=2, most=16)
    ahead: bool = flag("Whether a step's first fragments are read before the last products of the step before.")
    neighbours: int = power_of_two("Results of a row that a thread computes and writes together.", most=8)
    band: int = whole_number("Rows of tiles that are computed column by column, for what they share.", most=1 << 20)
    cluster: ClassVar[int] = 1
    split: ClassVar[int] = 1
    """Blocks work alone."""
    swapped: ClassVar[bool] = False
    """Rows of tiles are rows of the result."""

    @classmethod
    def of(cls, facts: WarpProducts) -> Self:
        """Tiles, and a number of stages, that take the least time."""
        widths = units(facts.product)
        # What goes through registers is one step ahead, however much room there is.
        stages = (2,) if max(widths) < min(ASYNC_BYTES) else _STAGES
        candidates = [cls._with_tile(facts, tile, widths, number) for tile in WARP_TILES for number in stages]
        fitting = [each for each in candidates if each.fits(facts)]
        return min(fitting or candidates, key=lambda each: each.seconds(facts))

    @classmethod
    def beside(cls, given: Mapping[str, int], facts: WarpProducts) -> Self:
        """The numbers of the tiles that take the least time of those with the given numbers; if none fits, of any."""
        best = cls.of(facts)
        wanted = dict[str, Any](given)
        if any(replace(best, **wanted).range_problems()):
            return best
        named = {"tile_m": "m", "tile_n": "n", "tile_k": "k", "down": "down", "across": "across"}
        fixed = {name: wanted[number] for number, name in named.items() if number in wanted}
        tiles = dict.fromkeys(replace(each, **fixed) for each in WARP_TILES)
        numbers = (wanted["stages"],) if "stages" in wanted else _STAGES
        candidates = [cls._with_tile(facts, each, units(facts.product), stages) for each in tiles for stages in numbers]
        fitting = [each for each in candidates if replace(each, **wanted).fits(facts)]
        return min(fitting, key=lambda each: each.seconds(facts), default=best)

    @classmethod
    def _with_tile(cls, facts: WarpProducts, tile: WarpTile, widths: tuple[int, int], stages: int) -> Self:
        product, device = facts.product, facts.fusion.device
        batch, rows, columns = product.grid(tile.m, tile.n)
        left, right = widths
        made = cls(
            tile_m=tile.m,
            tile_n=tile.n,
            tile_k=tile.k,
            stages=stages,
            down=tile.down,
            across=tile.across,
            resident=1,
            blocks=min(batch * rows * columns, MAX_GRID[0]),
            left_bytes=left,
            right_bytes=right,
            ahead=False,
            neighbours=facts.neighbours(TileSizes(tile.m, tile.n, tile.k)),
            band=max(each for each in range(1, _BAND + 1) if rows % each == 0),
        )
        resident = tile.resident(widths, made.shared_bytes, device)
        # Several blocks fill each other's waits, and have no registers for more fragments.
        return replace(made, resident=resident, ahead=resident == 1 and min(widths) >= min(ASYNC_BYTES))

    def seconds(self, facts: WarpProducts) -> float:
        """Return how long the kernel takes, about."""
        product = facts.product
        tiles = math.prod(product.grid(self.tile_m, self.tile_n))
        widths, result = (self.left_bytes, self.right_bytes), self.tile_m * self.tile_n * max(facts.result_bytes)
        return warp_product_seconds(
            self._tile, tiles, product.k, widths, self.stages, self.resident, result, facts.fusion.device
        )

    @property
    def _tile(self) -> WarpTile:
        return WarpTile(self.tile_m, self.tile_n, self.tile_k, self.down, self.across)

    @property
    def sizes(self) -> TileSizes:
        """The tiles of a step."""
        return TileSizes(self.tile_m, self.tile_n, self.tile_k)

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.down * self.across * WARP_SIZE

    @property
    def holders(self) -> Holders:
        """The threads that hold a block's sums: warps, each of them a part of the rows and columns."""
        share = self.tile_m // self.down // FRAGMENT
        return Holders(self.down * self.across, 1, share, self.across, self.tile_n // self.across)

    @property
    def panels(self) -> Panels:
        """The panels through which sums go from thread to thread."""
        return Panels(self.holders, self.neighbours, min(PANEL_COLUMNS, self.holders.columns))

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block: for the tiles of all stages, and then for the panels of its warps."""
        tiles = self.stages * (self.tile_m + self.tile_n) * self.tile_k * _ELEMENT_BYTES
        return max(tiles, self.holders.teams * self.panels.bytes)

    def problems(self, facts: WarpProducts) -> Iterator[str]:
        """The tiles are ones that warps multiply, and fit the memory of a block; units lie as copies need them."""
        product = facts.product
        _, rows, _ = product.grid(self.tile_m, self.tile_n)
        yield from self.kernel_problems(rows, units(product, self.sizes), facts.fusion.device)

    def kernel_problems(self, rows: int, widest: tuple[int, int], target: Device) -> Iterator[str]:
        """Yield why no kernel has these numbers: of ``rows`` rows of tiles, and units of so many bytes at most."""
        if missing := warp_device_problem(target):
            yield missing
        if self.tile_m % (self.down * FRAGMENT):
            yield self.wrong("down", f"each warp to have a multiple of {FRAGMENT} rows")
            return
        if self.tile_n % (self.across * FRAGMENT):
            yield self.wrong("across", f"each warp to have a multiple of {FRAGMENT} columns")
            return
        if self.down * self.across > _MOST_WARPS:
            yield self.wrong("across", f"at most {_MOST_WARPS} warps, not {self.down * self.across}")
        sums, held = self.tile_m * self.tile_n // self.threads, self._tile.held((self.left_bytes, self.right_bytes))
        if sums > _MOST_SUMS:
            yield self.wrong("across", f"so many warps that a thread has at most {_MOST_SUMS} sums, not {sums}")
        elif held > MOST_HELD:
            yield self.wrong("tile_k", f"so few that a thread holds at most {MOST_HELD} sums and elements, not {held}")
        most = target.shared_bytes_optin + KIB
        if self.shared_bytes + KIB > most // self.resident:
            room = most // self.resident - KIB
            yield self.wrong("stages", f"tiles of at most {room} bytes, the shared memory of {self.resident} blocks")
        if self.ahead and min(self.left_bytes, self.right_bytes) < min(ASYNC_BYTES):
            yield self.wrong("ahead", "operands that are copied asynchronously")
        for name, most in zip(("left_bytes", "right_bytes"), widest, strict=True):
            if self.values[name] > most:
                yield self.wrong(name, f"at most {most}, of which what begins a copy is a multiple")
        if rows % self.band:
            yield self.wrong("band", f"a divisor of {rows}, the rows of tiles")


def warp_device_problem(target: Device) -> str | None:
    """Return why no kernel computes products by warps on a GPU; None if it has the instructions."""
    return target.lacking(_INSTRUCTIONS)
