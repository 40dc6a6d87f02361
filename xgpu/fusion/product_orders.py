"""Chooses the order of a matrix product's dimensions that needs the cheapest transposes.

Dimensions are numbers, *labels*: those of the result as the program has it, batch dimensions first, followed by the
contracted ones.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product as combinations

from xgpu.analysis.transposes import canonical, moves_rows
from xgpu.records import dataclass

type Labels = tuple[int, ...]

_REORDERED = 0.1
"""Cost per byte to read or write rows in another order."""
_STORED_ACROSS = 1.0
"""Cost per byte to store an array across the rows that the kernel computes or reads."""
_COPIED = 2.0
"""Cost per byte to transpose an array in a kernel of its own, which reads and writes it."""
_READ_ACROSS = 4.0
"""Cost per byte to read a result across its rows. An estimate, like those above."""


@dataclass(frozen=True)
class StoredOperand:
    """An operand behind the transposes that the product reads it through.

    ``memory`` holds its labels in memory order, ``now`` in the order that the product reads. ``is_made`` tells whether
    a kernel computes it, which can store it in any order.
    """

    memory: Labels
    now: Labels
    bytes: float
    is_made: bool

    @property
    def stored(self) -> Labels:
        """The labels in the order in which the product, as it is written, finds them in memory."""
        return self.now if self.is_made else self.memory


@dataclass(frozen=True)
class LabelledProduct:
    """A matrix product: ``sizes`` by label, the first ``batch`` of them batch dimensions.

    ``wanted`` is the order in which the result is read, by kernels alone or by something else as well.
    """

    sizes: tuple[int, ...]
    batch: int
    operands: tuple[StoredOperand, StoredOperand]
    wanted: Labels
    element_bits: int
    is_read_by_kernels: bool

    def free(self, labels: Labels) -> Labels:
        """Return those of an operand's labels that are neither batch dimensions nor contracted."""
        return tuple(label for label in labels if self.batch <= label < len(self.wanted))

    def kind(self, label: int) -> int:
        """Return a number for what a dimension is: of the batch, free in the first or second operand, contracted."""
        ends = self.batch, self.batch + len(self.free(self.operands[0].memory)), len(self.wanted)
        return sum(label >= end for end in ends)

    @property
    def is_read_in_place(self) -> bool:
        """Whether libraries can read both operands as they are stored, with dimensions in the order of the result."""
        batch, _, contracted = _as_written(self)
        return all(
            _is_read_in_place(self, each.stored, batch, self.free(each.now), contracted) for each in self.operands
        )


@dataclass(frozen=True)
class Order:
    """A way to write a product: ``swap`` exchanges the operands, which are stored as ``operands`` says."""

    batch: Labels
    contracted: Labels
    swap: bool
    operands: tuple[Labels, Labels]
    result: Labels


def best_order(product: LabelledProduct) -> Order | None:
    """Return the cheapest way to write a product; None if none is cheaper than the present one.

    Reading an operand through transposes counts as no better than reading it without.
    """
    best, least = None, float("inf")
    for order, cost in _orders(product):
        if cost < least:
            best, least = order, cost
    now = _cost_now(product)
    is_plain = all(each.now == each.memory for each in product.operands)
    return None if least > now or (is_plain and least == now) else best


def _cost_now(product: LabelledProduct) -> float:
    batch, result, contracted = _as_written(product)
    cost = _result_cost(product, result)
    for each in product.operands:
        is_read = _is_read_in_place(product, each.memory, batch, product.free(each.now), contracted)
        cost += 0 if is_read else _COPIED * each.bytes
    return cost


def _as_written(product: LabelledProduct) -> tuple[Labels, Labels, Labels]:
    rank = len(product.wanted)
    return tuple(range(product.batch)), tuple(range(rank)), tuple(range(rank, len(product.sizes)))


def _orders(product: LabelledProduct) -> Iterator[tuple[Order, float]]:
    """Yield the candidate orders with their costs, those that change least first."""
    batch, _, contracted = _as_written(product)
    memories = [each.memory for each in product.operands]
    batches = _arrangements(batch, [product.wanted, *memories])
    sums = _arrangements(contracted, memories)
    frees = [
        _arrangements(product.free(each.memory), [product.wanted, each.now] if each.is_made else [])
        for each in product.operands
    ]
    for batch, contracted, *free in combinations(batches, sums, *frees):
        lhs, rhs = (
            _stored(product, each, batch, own, contracted) for each, own in zip(product.operands, free, strict=True)
        )
        if lhs is None or rhs is None:
            continue
        for swap in (False, True):
            result = (*batch, *free[swap], *free[not swap])
            cost = _result_cost(product, result) + lhs[1] + rhs[1]
            yield Order(batch, contracted, swap, (lhs[0], rhs[0]), result), cost


def _arrangements(labels: Labels, orders: Sequence[Labels]) -> list[Labels]:
    """Return ``labels`` as they are and sorted by each of ``orders``, each arrangement once."""
    found = [labels, *(tuple(label for label in order if label in labels) for order in orders)]
    return list(dict.fromkeys(found))


def _stored(
    product: LabelledProduct, operand: StoredOperand, batch: Labels, free: Labels, contracted: Labels
) -> tuple[Labels, float] | None:
    """Return the memory order of an operand for dimensions in these orders, and its cost; None if there is none."""
    memory = operand.memory
    if free == product.free(memory) and _is_read_in_place(product, memory, batch, free, contracted):
        return memory, 0
    if not operand.is_made:
        # XLA transposes it, and has the free dimensions in the order that they are in.
        return (memory, _COPIED * operand.bytes) if free == product.free(memory) else None
    forms = ((*batch, *free, *contracted), (*batch, *contracted, *free))
    costs = [_move_cost(product, memory, form, _STORED_ACROSS) * operand.bytes for form in forms]
    return min(zip(forms, costs, strict=True), key=lambda each: each[1])


def _is_read_in_place(
    product: LabelledProduct, memory: Labels, batch: Labels, free: Labels, contracted: Labels
) -> bool:
    """Whether libraries can read an operand in its memory order; dimensions of size 1 may be anywhere."""
    forms = ((*batch, *free, *contracted), (*batch, *contracted, *free))
    return _long(product, memory) in [_long(product, form) for form in forms]


def _long(product: LabelledProduct, labels: Labels) -> Labels:
    return tuple(label for label in labels if product.sizes[label] != 1)


def _result_cost(product: LabelledProduct, result: Labels) -> float:
    """Return the cost to read a result in the wanted order."""
    bytes_ = math.prod(product.sizes[label] for label in result) * product.element_bits / 8
    if product.is_read_by_kernels:
        return bytes_ * _move_cost(product, result, product.wanted, _READ_ACROSS)
    cost = _move_cost(product, result, product.wanted, _STORED_ACROSS)
    return bytes_ * (cost and cost + _COPIED)


def _move_cost(product: LabelledProduct, source: Labels, target: Labels, across: float) -> float:
    """Return the cost per byte of a transpose: nothing, that of rows in another order, or ``across``."""
    transpose = canonical([product.sizes[label] for label in source], [source.index(label) for label in target])
    if transpose is None:
        return 0
    return _REORDERED if moves_rows(transpose, product.element_bits) else across
