"""Arrays of which each iteration of a loop writes one slice, and reads slices that iterations just before have written.

``y.at[:, j].set(f(x[:, j], y[:, j - 1]))`` is such an iteration: where slices are written and read is known of all.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from xgpu import ir
from xgpu.analysis.combiners import Function, combiners, has_own_types, is_binary
from xgpu.analysis.constants.counters import Counter, Numbers, numbers_of
from xgpu.analysis.in_place import SCATTER, UPDATE_SLICE
from xgpu.fusion.fallback import DYNAMIC_SLICE
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.scatter_maps import scatter_maps
from xgpu.records import dataclass
from xgpu.structure import body_of, is_constant, is_result_of, producer, terminator_of, users_of

_JOINING = ("stablehlo.concatenate", "stablehlo.reshape", "stablehlo.broadcast_in_dim")
_GATHER = "stablehlo.gather"
_MOST_LAG = 4
"""Iterations back to which slices are read: a thread holds as many elements."""


@dataclass(frozen=True)
class CountedLoop:
    """A loop of which it is known how often it runs, and what its counters are."""

    op: ir.Operation
    counters: Mapping[int, Counter]
    trips: int

    def numbers(self, value: ir.Value) -> Numbers | None:
        """Return an integer of the body in each iteration, None if it is not known."""
        return numbers_of(value, self.counters, self.op, self.trips)

    def vector(self, value: ir.Value) -> list[Numbers] | None:
        """Return the elements of a vector of integers of the body, or of a number, in each iteration."""
        if not shape_of(value):
            number = self.numbers(value)
            return None if number is None else [number]
        if is_constant(value):
            elements = ir.DenseIntElementsAttr(producer(value).attributes["value"])
            return [np.full(self.trips, int(elements[i]), np.int64) for i in range(len(elements))]
        if len(shape_of(value)) != 1 or not is_result_of(value, *_JOINING):
            return None
        parts = [self.vector(operand) for operand in producer(value).operands]
        found = [number for part in parts for number in part or ()]
        return found if None not in parts and len(found) == shape_of(value)[0] else None


@dataclass(frozen=True)
class Window:
    """Part of an array: ``sizes`` elements along each dimension, from ``places`` on in each iteration."""

    places: tuple[Numbers, ...]
    sizes: Shape

    def cuts(self, whole: Shape) -> list[int]:
        """Return the dimensions along which it changes its place, or may be a single slice of several."""
        return [
            i
            for i, (place, size) in enumerate(zip(self.places, whole, strict=True))
            if self.sizes[i] == 1 and size > 1 and not (place == place[0]).all()
        ]


@dataclass(frozen=True)
class Written:
    """A state, by its ``number``, of which iterations write slices along ``dimension``, by the operation ``op``.

    The first one writes slice ``first`` of that dimension, the next ones slices ``step`` further on each, 1 or -1.
    Along others the slice takes ``sizes`` elements from ``offsets`` on. ``function`` combines what was there with the
    update. ``lags`` says for each read of the state how many iterations before the slice was written, None for slices
    that are not written before they are read. ``starts`` are the slices of the initial array that are read for one
    written 1, 2, ... iterations before, as long as there is none.
    """

    number: int
    op: ir.Operation
    dimension: int
    first: int
    step: int
    offsets: tuple[int, ...]
    sizes: Shape
    function: Function
    lags: Mapping[ir.Operation, int | None]
    starts: tuple[int, ...]

    @property
    def update(self) -> ir.Value:
        """The value that is written, or combined with what was there."""
        return self.op.operands[1 if self.op.name == UPDATE_SLICE else 2]


def written_of(loop: CountedLoop, number: int) -> Written | None:
    """Return how the state ``number`` is written slice by slice; None if it is not, or is read in other ways."""
    body = body_of(loop.op, 1)
    argument, result = body.arguments[number], terminator_of(body).operands[number]
    if not is_result_of(result, SCATTER, UPDATE_SLICE) or producer(result).operands[0] != argument:
        return None
    op = producer(result)
    found = _window_written(op, loop)
    cuts = [] if found is None else found[0].cuts(shape_of(argument))
    if found is None or len(cuts) != 1:
        return None
    window, function = found
    (cut,) = cuts
    step = int(window.places[cut][1] - window.places[cut][0])
    order = window.places[cut][0] + step * np.arange(loop.trips)
    others = [place for i, place in enumerate(window.places) if i != cut]
    if abs(step) != 1 or (window.places[cut] != order).any() or any((place != place[0]).any() for place in others):
        return None
    lags = _lags(op, window, cut, loop)
    if lags is None:
        return None
    starts = _starts([(lag, numbers) for lag, numbers in lags.values() if lag])
    if starts is None:
        return None
    offsets = tuple(int(place[0]) for place in window.places)
    reads = {read: lag for read, (lag, _) in lags.items()}
    return Written(number, op, cut, offsets[cut], step, offsets, window.sizes, function, reads, starts)


def _window_written(op: ir.Operation, loop: CountedLoop) -> tuple[Window, Function] | None:
    """Return the window that an update writes in each iteration, and the function that combines; None if not known."""
    if op.name == UPDATE_SLICE:
        starts = [loop.numbers(start) for start in list(op.operands)[2:]]
        window = _window(starts, shape_of(op.operands[0]), shape_of(op.operands[1]))
        return None if window is None else (window, "overwrite")
    if len(op.results) != 1 or not has_own_types(op) or scatter_maps(op).windows != 1:
        return None
    maps, (found,) = scatter_maps(op), combiners(op)
    components = loop.vector(op.operands[1])
    if components is None or not (found.alone and (found.function == "overwrite" or is_binary(found.function))):
        return None
    if any(((each < 0) | (each > bound)).any() for each, bound in zip(components, maps.bounds, strict=True)):
        return None
    zeros = [0] * len(components)
    first, last = [0] * len(maps.update_shape), [size - 1 for size in maps.update_shape]
    places, sizes = [], []
    for expr in maps.operand.results:
        base = expr.evaluate(first + zeros, [])
        place = np.full(loop.trips, base, np.int64)
        for i, each in enumerate(components):
            unit = [int(i == j) for j in range(len(components))]
            place = place + (expr.evaluate(first + unit, []) - base) * each
        places.append(place)
        sizes.append(expr.evaluate(last + zeros, []) - base + 1)
    return Window(tuple(places), tuple(sizes)), found.function


def _window(starts: Sequence[Numbers | None], whole: Shape, sizes: Shape) -> Window | None:
    """Return a window of so many elements, which begins at ``starts``, or where it still lies inside."""
    places = [
        np.clip(start, 0, size - own)
        for start, size, own in zip(starts, whole, sizes, strict=True)
        if start is not None
    ]
    return Window(tuple(places), tuple(sizes)) if len(places) == len(sizes) else None


def _lags(
    op: ir.Operation, window: Window, cut: int, loop: CountedLoop
) -> dict[ir.Operation, tuple[int | None, Numbers]] | None:
    """Return for each read how many iterations before its slice was written, and its numbers; None for other uses."""
    result, argument = op.results[0], op.operands[0]
    end = terminator_of(body_of(loop.op, 1))
    found: dict[ir.Operation, tuple[int | None, Numbers]] = {}
    for value, is_after in ((argument, False), (result, True)):
        for user in users_of(value):
            if user == (end if is_after else op):
                if list(user.operands).count(value) > 1:
                    return None
                continue
            read = _window_read(user, value, loop)
            lag = None if read is None else _lag(read, window, cut, is_after)
            if read is None or lag is None:
                return None
            found[user] = (lag if lag >= 0 else None, read.places[cut])
    return found


def _window_read(op: ir.Operation, array: ir.Value, loop: CountedLoop) -> Window | None:
    """Return the window of ``array`` that an operation of the loop's body reads; None if it reads in other ways."""
    if op.parent != loop.op or op.operands[0] != array:
        return None
    whole, sizes = shape_of(array), shape_of(op.results[0])
    if op.name == DYNAMIC_SLICE:
        return _window([loop.numbers(start) for start in list(op.operands)[1:]], whole, sizes)
    if op.name != _GATHER:
        return None
    # A gather of one window, as vmap makes of a slice.
    numbers = ir.stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    components = loop.vector(op.operands[1])
    if components is None or list(numbers.offset_dims) != list(range(len(whole))):
        return None
    along = dict(zip(numbers.start_index_map, components, strict=True))
    zero = np.zeros(loop.trips, np.int64)
    return _window([along.get(i, zero) for i in range(len(whole))], whole, sizes)


def _lag(read: Window, window: Window, cut: int, is_after: bool) -> int | None:
    """Return how many iterations before a slice was written that is read; -1 if not before it is read; None if unknown.

    ``is_after``: it is read after the slice of the same iteration was written.
    """
    others = (i for i in range(len(read.sizes)) if i != cut)
    if read.sizes != window.sizes or any((read.places[i] != window.places[i]).any() for i in others):
        return None
    written = window.places[cut]
    times = np.arange(len(written))
    # In which iteration the slice is written that is read.
    when = (read.places[cut] - written[0]) * (written[1] - written[0])
    is_written = (when >= 0) & (when < times + is_after)
    if not is_written.any():
        return -1
    lag = int((times - when)[is_written][0])
    is_fixed = (is_written == (times >= lag)).all() and (when[lag:] == times[lag:] - lag).all()
    return lag if is_fixed and lag <= _MOST_LAG else None


def _starts(lags: Sequence[tuple[int, Numbers]]) -> tuple[int, ...] | None:
    """Return which slices take the place of those written 1, 2, ... iterations before there was one."""
    found: dict[int, int] = {}
    for lag, numbers in lags:
        for before in range(1, lag + 1):
            place = int(numbers[lag - before])
            if found.setdefault(before, place) != place:
                return None
    return tuple(found[before] for before in range(1, len(found) + 1))
