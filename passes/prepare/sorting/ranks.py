"""Sorts of short tiles: an element's place is the number of elements that come before it."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, broadcast, compared, hlo, reshape, shape_of, splat, tensor
from xgpu.passes.prepare.sorting.elements import POSITION, SortedRows, SortOrder, counted, number_like, times
from xgpu.structure import element_of


def places_in_tiles(keys: Sequence[Value], rows: SortedRows, tile: int, order: SortOrder) -> Value:
    """Return the position among all elements that each has once every tile of its row is sorted, stably."""
    tiles = -(-rows.size // tile)
    shape = [rows.count, tiles, tile, tile]
    padded = [_tiled(key, rows, tiles, tile) for key in keys]
    mine = [broadcast(each, shape, [0, 1, 2]) for each in padded]
    others = [broadcast(each, shape, [0, 1, 3]) for each in padded]
    positions = tensor(shape, POSITION)
    here, there = (hlo.iota(positions, axis) for axis in (2, 3))
    is_earlier = compared(there, here, "LT")
    # One comparison tells both: an earlier element comes before this one unless this one comes before it.
    pairs = [(hlo.select(is_earlier, a, b), hlo.select(is_earlier, b, a)) for a, b in zip(mine, others, strict=True)]
    precedes = hlo.xor(order.is_before(*map(list, zip(*pairs, strict=True))), is_earlier)
    if tiles * tile != rows.size:
        number = hlo.add(times(hlo.iota(positions, 1), tile), there)
        precedes = hlo.and_(precedes, compared(number, number_like(rows.size, number), "LT"))
    places = counted(precedes, 3)
    row, number = (hlo.iota(tensor(shape[:3], POSITION), axis) for axis in (0, 1))
    places = hlo.add(places, hlo.add(times(row, rows.size), times(number, tile)))
    whole = reshape(places, [rows.count, tiles * tile])
    return reshape(hlo.slice(whole, [0, 0], [rows.count, rows.size], [1, 1]), [rows.length])


def _tiled(key: Value, rows: SortedRows, tiles: int, tile: int) -> Value:
    """Return a key as tiles of each row; what is beyond the end of a row is never looked at."""
    value = reshape(key, [rows.count, rows.size])
    beyond = tiles * tile - rows.size
    if beyond:
        value = hlo.pad(
            value, splat(0, tensor([], element_of(key))), *map(ir.DenseI64ArrayAttr.get, ([0, 0], [0, beyond], [0, 0]))
        )
    assert shape_of(value) == [rows.count, tiles * tile]
    return reshape(value, [rows.count, tiles, tile])
