"""Operations that keep some dimensions of an operand: broadcasts, reductions, gathers and scatters.

Dimensions of the operand that the result does not have, or the other way, are *free*: they may be anywhere.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from xgpu import ir
from xgpu.analysis.in_place import SCATTER
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.costs.values import byte_size
from xgpu.fusion.orders.carriers import BROADCAST, is_free
from xgpu.fusion.orders.move_costs import UNTILED, share_of_rows
from xgpu.fusion.orders.permutations import given_order
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.reshapes import Order
from xgpu.records import dataclass
from xgpu.structure import dtype_of, users_of

GATHER = "stablehlo.gather"
_INDEXED = (GATHER, SCATTER)
_MADE_LATER = (REDUCE, GATHER)
"""Operations whose result is transposed where its order does not follow from the operand's; others' operands are."""

type Beside = Literal["places", "after", "before"]
BESIDE: tuple[Beside, ...] = ("places", "after", "before")
"""Places of free dimensions in an order that follows: as given, or after or before the same dimension.

A reshape that merges a free dimension with another moves nothing if both stay together.
"""
type Pairs = tuple[tuple[int, int], ...]
"""Dimensions of an operand and of a result that are the same."""


@dataclass(frozen=True)
class KeptDimensions:
    """The dimensions of ``value`` that ``op`` keeps in ``made``: ``pairs``, in the same order on both sides.

    What it indexes by has the dimensions of ``batches``, which may be anywhere on either side.
    """

    op: ir.Operation
    value: ir.Value
    made: ir.Value
    pairs: Pairs
    batches: Pairs = ()

    @property
    def is_made_later(self) -> bool:
        """Whether the result is what is transposed, and not the operand."""
        return self.op.name in _MADE_LATER

    @property
    def is_computed_where_read(self) -> bool:
        """Whether what reads the result computes it, and ``value``, itself."""
        return self.op.name in (BROADCAST, GATHER)

    @property
    def moved(self) -> ir.Value:
        """The value that is transposed before or after: the smaller one."""
        return self.made if self.is_made_later else self.value

    def made_order(self, order: Order, beside: Beside) -> Order:
        """Return the order of ``made`` that follows from one of ``value``."""
        return self._follow(order, self.value, self.made, self.pairs, beside)

    def value_order(self, order: Order, beside: Beside) -> Order:
        """Return the order of ``value`` that follows from one of ``made``."""
        return self._follow(order, self.made, self.value, tuple((made, own) for own, made in self.pairs), beside)

    def _follow(self, order: Order, value: ir.Value, other: ir.Value, pairs: Pairs, beside: Beside) -> Order:
        places = dict(pairs)
        kept = [places[each] for each in order if each in places]
        given = given_order(len(shape_of(other)))
        found = _among(given, kept, beside)
        last, other_last = _last(value, order), _last(other, found)
        if self.op.name in _INDEXED and last in places and places[last] != other_last:
            # Neighbours in memory stay neighbours: what is indexed by comes first.
            found = (*(each for each in given if each not in kept), *kept)
        return found

    def between(self, source: Order, target: Order) -> Order:
        """Return the order in which the operation has `moved`, with operand and result in such orders around it."""
        if self.is_made_later:
            places = dict(self.pairs)
            return fill(target, [places[each] for each in source if each in places])
        places = {made: own for own, made in self.pairs}
        found = fill(source, [places[each] for each in target if each in places])
        # Updates of one element are made in the order of their indices.
        return fill(found, sorted(set(found) - set(places.values())))

    def access_bytes(self, source: Order, target: Order) -> float:
        """Return the cost, in bytes, of indexing in such orders: rows of neighbours, or one element after the other."""
        if self.op.name not in _INDEXED:
            return 0
        between = self.between(source, target)
        last = _last(self.value, source if self.is_made_later else between)
        other = _last(self.made, between if self.is_made_later else target)
        if last is None or other is None:
            return 0
        if (last, other) not in (*self.pairs, *self.batches):
            # Elements of a row that is read once are where they are in any order of what is gathered.
            is_in_row = (
                self.op.name == GATHER and last not in dict(self.pairs) and other not in dict(self.pairs).values()
            )
            return 0 if is_in_row else UNTILED * byte_size(self.moved)
        row = min(shape_of(self.value)[last], shape_of(self.made)[other])
        return byte_size(self.moved) * share_of_rows(row * dtype_of(self.value).storage_bits / 8)


def _among(given: Order, kept: Sequence[int], beside: Beside) -> Order:
    """Return an order with ``kept`` dimensions in this order, and free ones where they are, or beside the same."""
    if beside == "places":
        return fill(given, kept)
    runs = _runs(given, kept) if beside == "after" else [run[::-1] for run in _runs(given[::-1], kept)]
    free = [run for run in runs if run[0 if beside == "after" else -1] not in kept]
    of = {each: run for run in runs for each in run if each in kept}
    first, last = (free, []) if beside == "after" else ([], free)
    return tuple(each for run in (*first, *(of[each] for each in kept), *last) for each in run)


def _runs(given: Order, kept: Sequence[int]) -> list[list[int]]:
    """Return each kept dimension with the free ones after it, and before all those that are after none."""
    runs: list[list[int]] = []
    for each in given:
        if each in kept or not runs:
            runs.append([])
        runs[-1].append(each)
    return runs


def fill(order: Order, dimensions: Sequence[int]) -> Order:
    """Return an order with ``dimensions`` in this order at the places that they have."""
    rest = iter(dimensions)
    return tuple(next(rest) if each in dimensions else each for each in order)


def _last(value: ir.Value, order: Order) -> int | None:
    """Return the dimension of a value along which neighbours in memory lie, in an order; None for one element."""
    long = [each for each in order if shape_of(value)[each] > 1]
    return long[-1] if long else None


def kept_dimensions(op: ir.Operation) -> list[KeptDimensions]:
    """Return what an operation keeps of the dimensions of its operands; nothing for other operations.

    A broadcast that several operations read is made by each of them in its own order.
    """
    if op.name == REDUCE and len(op.results) == 1 and is_commutative(op):
        return list(_reduced(op))
    if op.name == BROADCAST and len(users_of(op.results[0])) == 1 and shape_of(op.operands[0]):
        pairs = tuple(enumerate(integers(op, "broadcast_dimensions")))
        return [] if is_free(op.results[0]) else [KeptDimensions(op, op.operands[0], op.results[0], pairs)]
    if op.name == GATHER:
        return [_gathered(op)]
    return list(_scattered(op)) if op.name == SCATTER else []


def _reduced(op: ir.Operation) -> Iterator[KeptDimensions]:
    dimensions = integers(op, "dimensions")
    kept = (number for number in range(len(shape_of(op.operands[0]))) if number not in dimensions)
    yield KeptDimensions(op, op.operands[0], op.results[0], tuple((each, number) for number, each in enumerate(kept)))


def _gathered(op: ir.Operation) -> KeptDimensions:
    numbers = ir.stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    value, made = op.operands[0], op.results[0]
    inside = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    whole = [each for each in range(len(shape_of(value))) if each not in inside]
    offsets = sorted(numbers.offset_dims)
    free = [each for each in range(len(shape_of(made))) if each not in offsets]
    batches = batched(
        numbers.operand_batching_dims, numbers.start_indices_batching_dims, numbers.index_vector_dim, free
    )
    return KeptDimensions(op, value, made, tuple(zip(whole, offsets, strict=True)), tuple(batches))


def _scattered(op: ir.Operation) -> Iterator[KeptDimensions]:
    numbers = ir.stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    count = len(op.results)
    inside = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    whole = [each for each in range(len(shape_of(op.results[0]))) if each not in inside]
    windows = sorted(numbers.update_window_dims)
    for updates, made in zip(list(op.operands)[count + 1 :], op.results, strict=True):
        free = [each for each in range(len(shape_of(updates))) if each not in windows]
        batches = batched(
            numbers.input_batching_dims, numbers.scatter_indices_batching_dims, numbers.index_vector_dim, free
        )
        swapped = tuple((other, own) for own, other in batches)
        yield KeptDimensions(op, updates, made, tuple(zip(windows, whole, strict=True)), swapped)


def batched(own: Sequence[int], indices: Sequence[int], vector: int, free: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield each dimension that array and indices have in common, with the free dimension that it is."""
    for each, index in zip(own, indices, strict=True):
        yield each, free[index - (vector < index)]
