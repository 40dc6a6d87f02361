"""Threads' reads of single elements of a tile in shared memory, two neighbours at once."""

import struct
from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.dtypes import DType
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.llvm.memory import load
from xgpu.passes.support import arith_builder as b
from xgpu.passes.tiles.boxes import Boxes
from xgpu.passes.tiles.prologues.elements import Narrow, Place
from xgpu.passes.tiles.ring import offset
from xgpu.passes.tiles.structured import Values
from xgpu.passes.tiles.warp_copies import address
from xgpu.records import dataclass

_CHUNK = 16
_LARGE = float(1 << 23)
"""A float whose last bit is one."""
_LINE = 128
"""Bytes after which chunks are permuted otherwise."""


@dataclass(frozen=True, eq=False)
class NarrowTile:
    """A tile of narrow elements that lies at ``memory`` as its boxes were copied, read by a thread of a number.

    Its elements are of a ``dtype``; two of them share a byte where they are that narrow.
    """

    boxes: Boxes
    dtype: DType
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
        bits = 2 * self.dtype.bits
        word = load(offset(self.memory, address(where)), b.integer_type(bits), bits // 8)
        numbers = _numbers(word, self.dtype) if self.dtype.is_integer else [None, None]
        return [Narrow(*each) for each in zip(self._scalars(word), numbers, strict=True)]

    def _scalars(self, word: ir.Value) -> Values:
        """Return the two elements of a word."""
        codes = [b.truncate(b.shift_right(word, at), self.dtype.bits) for at in (0, self.dtype.bits)]
        return [b.bitcast(code, ir.Type.parse(self.dtype.signless)) for code in codes]

    def _byte(self, place: Place) -> IndexingMap:
        """Return the map of a thread to where the element at a place is, as `address` takes it."""
        along, row_bytes = self.boxes.view.inner, self.boxes.row_bytes
        line, byte = place[1 - along], place[along] * self.dtype.bits // 8
        first = byte // row_bytes * self.boxes.panel_bytes + line * row_bytes
        turn = line * row_bytes // _LINE % (row_bytes // _CHUNK)
        results = (first, byte % row_bytes // _CHUNK, turn, byte % _CHUNK)
        return IndexingMap((self.threads,), (), results).with_simple_results()


def _numbers(word: ir.Value, dtype: DType) -> Values:
    """Return the two integers of a word as f32.

    A number in the last bits of 2^23 is that much more, a signed one with its sign turned by as much as that stands
    for. Instructions that convert integers of less than 32 bits may be issued at a part of the rate of arithmetic.
    """
    bits, sign = b.extend(word, 32), 1 << (dtype.bits - 1) if dtype.is_signed else 0
    least = b.constant(_LARGE + sign, ir.F32Type.get())
    code = int.from_bytes(struct.pack(">f", _LARGE)) ^ sign
    parts = b.and_(bits, (1 << dtype.bits) - 1), b.shift_right(bits, dtype.bits)
    return [ir.arith.subf(b.bitcast(b.xor(part, code), ir.F32Type.get()), least) for part in parts]
