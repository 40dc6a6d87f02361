"""Tiles in shared memory: where their elements are, by strides and a swizzle."""

import math
from collections.abc import Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.block_plan.memory.strides import TilePanel, tile_bytes
from xgpu.dtypes import DType
from xgpu.indexing.affine import AffineExpr, weighted_sum
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.memory.stored import MOST_BYTES, element_bytes, load_elements, store_elements
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.records import dataclass


@dataclass(frozen=True)
class TileLayout:
    """The places of a tile's elements, from its first byte on: at ``start`` bytes in the block's memory.

    Element ``o``, the sum of its indices by the strides, is at ``o xor (((o >> shift) & (2^bits - 1)) << base)``, where
    ``swizzle`` are bits, base and shift. There are ``buffers``, one after the other. With a ``panel``, indices of its
    dimension count as it says.
    """

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    swizzle: tuple[int, int, int] | None
    dtype: DType
    buffers: int = 1
    panel: TilePanel | None = None

    @property
    def buffer_bytes(self) -> int:
        """The bytes of a buffer: whole chunks of 16 bytes, or whole patterns of a swizzle."""
        return tile_bytes(self.shape, self.strides, element_bytes(self.dtype), self.swizzle, self.panel)

    @property
    def end(self) -> int:
        """The byte after the last buffer."""
        return self.start + self.buffers * self.buffer_bytes

    @property
    def alignment(self) -> int:
        """The alignment of buffers' addresses, as far as accesses need it."""
        return math.gcd(self.start, self.buffer_bytes, MOST_BYTES)

    def position(self, indices: Sequence[AffineExpr]) -> AffineExpr:
        """Return the element's number before the swizzle."""
        parts = list(zip(indices, self.strides, strict=True))
        if self.panel is not None:
            at, stride = parts[self.panel.dimension]
            parts[self.panel.dimension] = at % self.panel.width, stride
            parts.append((at // self.panel.width, self.panel.stride))
        return weighted_sum(parts)

    @property
    def neighbours(self) -> int:
        """The most elements that an access takes: of 16 bytes, as far as addresses and the swizzle allow it."""
        size = element_bytes(self.dtype)
        most = max(1, self.alignment // size)
        if self.panel is not None:
            most = math.gcd(most, *self.panel.numbers)
        return min(most, 1 << self.swizzle[1]) if self.swizzle and self.swizzle[0] else most


@dataclass(frozen=True, eq=False)
class SharedTile:
    """A tile in shared memory: ``pointer`` is the address of the buffer that it is in."""

    layout: TileLayout
    pointer: ir.Value

    @classmethod
    def of(cls, layout: TileLayout, memory: ir.Value) -> "SharedTile":
        """Return the tile in its first buffer, given the block's memory."""
        return cls(layout, offset(memory, layout.start))

    def in_slot(self, slot: ir.Value) -> "SharedTile":
        """Return the tile in the buffer of a number, an i32."""
        return replace(self, pointer=offset(self.pointer, ir.arith.muli(slot, i32(self.layout.buffer_bytes))))

    def address(self, space: AddressSpace, position: AffineExpr) -> ir.Value:
        """Write the address of the element of a position, which does not depend on the lane."""
        size = element_bytes(self.layout.dtype)
        if not self.layout.swizzle or not self.layout.swizzle[0]:
            return offset(self.pointer, as_i32(space.index(position * size)))
        bits, base, shift = self.layout.swizzle
        turn = space.simple(position // (1 << shift) % (1 << bits))
        if turn.is_constant and not turn.constant:
            return offset(self.pointer, as_i32(space.index(position * size)))
        chunk = space.simple(position // (1 << base) % (1 << bits))
        rest = as_i32(space.index((position - chunk * (1 << base)) * size))
        turned = ir.arith.xori(as_i32(space.index(chunk)), as_i32(space.index(turn)))
        return offset(self.pointer, ir.arith.addi(rest, ir.arith.muli(turned, i32(size << base))))

    def load(self, space: AddressSpace, indices: Sequence[AffineExpr]) -> tuple[ir.Value, ...]:
        """Read the elements of all lanes, or the one element of all of them."""
        found: list[ir.Value] = []
        for run in space.runs(self.layout.position(indices), self.layout.neighbours):
            found += load_elements(self.address(space, run.first), self.layout.dtype, run.count)
        return tuple(found)

    def store(self, space: AddressSpace, indices: Sequence[AffineExpr], scalars: Sequence[ir.Value]) -> None:
        """Write the elements of all lanes."""
        position = self.layout.position(indices)
        if not space.has_lanes(position):
            store_elements(scalars[:1], self.address(space, space.at_lane(position, 0)), self.layout.dtype)
            return
        first = 0
        for run in space.runs(position, self.layout.neighbours):
            part = scalars[first : first + run.count]
            store_elements(part, self.address(space, run.first), self.layout.dtype)
            first += run.count
