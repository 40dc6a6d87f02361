"""Threads' reads of single elements of a tile in shared memory, two neighbours at once."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from xgpu import ir
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.llvm.memory import load
from xgpu.passes.support import arith_builder as b
from xgpu.passes.tiles.boxes import Boxes
from xgpu.passes.tiles.prologues.elements import Narrow, Place
from xgpu.passes.tiles.ring import offset
from xgpu.passes.tiles.structured import Values
from xgpu.passes.tiles.vectors import bitcast, elements, from_elements
from xgpu.passes.tiles.warp_copies import address

_CHUNK = 16
_LARGE, _SIGN = float(1 << 23), 1 << 7
"""A float whose last bit is one, and the sign of a byte."""
_LINE = 128
"""Bytes after which chunks are permuted otherwise."""


@dataclass(frozen=True, eq=False)
class NarrowTile:
    """A tile of narrow elements that lies at ``memory`` as its boxes were copied, read by a thread of a number.

    ``signed`` says of integers whether they may be negative; it is None for floats.
    """

    boxes: Boxes
    signed: bool | None
    memory: ir.Value
    thread: ir.Value
    threads: Interval

    def read(self, places: Sequence[Place]) -> list[Narrow]:
        """Return the elements at some places, of which pairs are neighbours in memory."""
        along = self.boxes.view.inner
        found: dict[Place, Narrow] = {}
        for place in places:
            if place in found:
                continue
            after = (place[0] + (along == 0), place[1] + (along == 1))
            if after in places:
                found[place], found[after] = self._pair(place)
        return [found[place] for place in places]

    def _pair(self, place: Place) -> list[Narrow]:
        """Return the element at a place and its neighbour in memory."""
        where = ApplyIndexingOp.build(self._byte(place), [self.thread])
        size = 2 * self.boxes.element_bytes
        word = load(offset(self.memory, address(where)), b.integer_type(8 * size), size)
        scalars = elements(bitcast(from_elements([word]), 2, self.boxes.element))
        numbers = [None, None] if self.signed is None else _numbers(word, self.signed)
        return [Narrow(*each) for each in zip(scalars, numbers, strict=True)]

    def _byte(self, place: Place) -> IndexingMap:
        """Return the map of a thread to where the element at a place is, as `address` takes it."""
        along, row_bytes = self.boxes.view.inner, self.boxes.row_bytes
        line, byte = place[1 - along], place[along] * self.boxes.element_bytes
        first = byte // row_bytes * self.boxes.panel_bytes + line * row_bytes
        turn = line * row_bytes // _LINE % (row_bytes // _CHUNK)
        results = (first, byte % row_bytes // _CHUNK, turn, byte % _CHUNK)
        return IndexingMap((self.threads,), (), results).with_simple_results()


def _numbers(word: ir.Value, signed: bool) -> Values:
    """Return the two bytes of a word, integers, as f32.

    A byte in the last bits of 2^23 is that much more, a signed one with its sign turned by 2^7 more than that.
    Instructions that convert integers of less than 32 bits may be issued at a part of the rate of arithmetic.
    """
    bits, sign = b.extend(word, 32), _SIGN if signed else 0
    least = b.constant(_LARGE + sign, ir.F32Type.get())
    code = int.from_bytes(struct.pack(">f", _LARGE)) ^ sign
    parts = b.and_(bits, 0xFF), b.shift_right(bits, 8)
    return [ir.arith.subf(b.bitcast(b.xor(part, code), ir.F32Type.get()), least) for part in parts]
