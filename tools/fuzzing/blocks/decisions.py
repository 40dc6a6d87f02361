"""Random decisions about kernels that are written on tiles: all are such that a kernel can keep them."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from xgpu.dtypes import dtype_named

_MOST_BYTES = 40 << 10
"""Bytes of the tiles that steps have several buffers of, without what layouts add to them."""
_MOST_STAGES = 5
_ASYNC_BYTES = 4
"""Bytes from which on each element can be copied asynchronously, whatever lies beside it."""
_OFTEN, _SELDOM = 0.25, 0.12


def element_bytes(element: str) -> int:
    """Return the bytes of an element, by the name of its type in text."""
    return dtype_named({"i8": "s8", "i32": "s32"}.get(element, element)).storage_bits // 8


@dataclass
class Decisions:
    """Draws decisions, as text that follows other attributes; ``warps`` are those of a block.

    All products whose warps are given share them in one way: tiles in registers lie alike only then.
    """

    random: random.Random
    warps: int
    _down: int = 1
    _bytes: list[int] = field(default_factory=list)
    """Of the tiles that the steps being written keep."""

    def __post_init__(self) -> None:
        """Draw how warps share products."""
        self._down = self.random.choice([each for each in range(1, self.warps + 1) if self.warps % each == 0])

    def of_read(self, shape: Sequence[int], element: str, in_steps: bool) -> str:
        """Return what is decided about a tile of an array."""
        found: list[str] = []
        size = element_bytes(element)
        if self._draws(_OFTEN):
            ways = ("plain", "async") if size >= _ASYNC_BYTES else ("plain",)
            found.append(f'xgpu.copy = "{self.random.choice(ways)}"')
        found += self._of_memory(shape)
        if not found and self._draws(_SELDOM):
            return ', xgpu.place = "computed"'
        if self._draws(_OFTEN):
            found.append('xgpu.place = "shared"')
        if in_steps:
            self._bytes.append(size * math.prod(shape))
        return "".join(f", {each}" for each in found)

    def of_operation(self, shape: Sequence[int]) -> str:
        """Return what is decided about a tile that is computed."""
        found = self._of_memory(shape)
        if not found and self._draws(_SELDOM):
            found.append('xgpu.place = "shared"')
        return ", ".join(found)

    def of_product(self) -> str:
        """Return what is decided about a product."""
        found = [f"xgpu.warps = array<i64: {self._down}, {self.warps // self._down}>"] if self._draws(_OFTEN) else []
        if self._draws(_SELDOM):
            found.append(f'xgpu.place = "{self.random.choice(("shared", "fragments"))}"')
        return "".join(f", {each}" for each in found)

    def begin_steps(self) -> None:
        """Forget the tiles of the steps before."""
        self._bytes.clear()

    def of_steps(self, carried: int) -> str:
        """Return what is decided about the steps that were written, of which there may be fewer than stages."""
        found = ""
        if self._bytes and self._draws(0.6):
            most = min(_MOST_STAGES, _MOST_BYTES // sum(self._bytes))
            found += f", xgpu.stages = {self.random.randint(1, max(1, most))} : i64"
        if self._draws(_SELDOM):
            found += f", xgpu.place = [{', '.join(['"shared"'] * carried)}]"
        return found

    def cluster(self, blocks: int) -> int:
        """Return how many blocks make a cluster."""
        if not self._draws(_SELDOM):
            return 1
        return self.random.choice([each for each in range(1, 9) if blocks % each == 0])

    def _of_memory(self, shape: Sequence[int]) -> list[str]:
        """Return a layout or a swizzle, or neither."""
        found = []
        if shape and self._draws(_SELDOM):
            strides, least = [0] * len(shape), self.random.choice((1, 1, 1, 2))
            for dimension in self.random.sample(range(len(shape)), len(shape)):
                strides[dimension] = least
                least = least * shape[dimension] + self.random.choice((0, 0, 1, 8))
            found.append(f"xgpu.layout = array<i64: {', '.join(map(str, strides))}>")
        if shape and self._draws(_SELDOM):
            bits, base = self.random.randint(1, 3), self.random.randint(0, 4)
            found.append(f"xgpu.swizzle = array<i64: {bits}, {base}, {self.random.randint(base + 1, base + 4)}>")
        return found

    def _draws(self, share: float) -> bool:
        return self.random.random() < share
