"""Merges of sorted runs: an element's place is its own number and that of elements of the other run before it."""

from collections.abc import Sequence

from xgpu.hlo.stablehlo_builder import Value, compared, gathered, hlo, repeated
from xgpu.passes.prepare.sorting.elements import (
    SortedRows,
    SortOrder,
    number_like,
    over,
    spread,
    times,
)


def places_in_merged(keys: Sequence[Value], rows: SortedRows, run: int, order: SortOrder) -> Value:
    """Return the position of each element once neighbouring runs of ``run`` elements, sorted, are merged, stably.

    ``run`` is a power of two. The last runs of a row may be shorter, or have no neighbour.
    """
    row = rows.starts()
    number = hlo.subtract(rows.numbers(), row)
    mine = over(number, run)
    is_second = compared(hlo.and_(mine, number_like(1, mine)), number_like(1, mine), "EQ")
    other = times(hlo.xor(mine, number_like(1, mine)), run)
    none, all_ = number_like(0, other), number_like(run, other)
    length = hlo.clamp(none, hlo.subtract(number_like(rows.size, other), other), all_)
    start = hlo.add(row, other)

    def step(turn: Value, values: Sequence[Value]) -> Sequence[Value]:
        """Add the largest number by which the elements before this one are still too few, a power of two."""
        (before,) = values
        half = hlo.shift_right_logical(all_, spread(turn, all_))
        tried = hlo.add(before, half)
        last = gathered_keys(keys, hlo.subtract(hlo.add(start, tried), number_like(1, tried)))
        # Of equal elements those of the first run come first.
        pairs = [
            (hlo.select(is_second, key, one), hlo.select(is_second, one, key))
            for key, one in zip(keys, last, strict=True)
        ]
        precedes = hlo.xor(order.is_before(*map(list, zip(*pairs, strict=True))), is_second)
        return [hlo.select(hlo.and_(precedes, compared(tried, length, "LE")), tried, before)]

    (found,) = repeated(run.bit_length(), [none], step)
    first = times(over(number, 2 * run), 2 * run)
    own = hlo.subtract(number, times(mine, run))
    return hlo.add(hlo.add(row, first), hlo.add(own, found))


def gathered_keys(keys: Sequence[Value], places: Value) -> list[Value]:
    """Return keys at positions."""
    return [gathered(key, places) for key in keys]
