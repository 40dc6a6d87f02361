"""Values of a program's operations in a finite field, which tell polynomials apart.

Two polynomials with whole coefficients that are not the same have different values at random points of a field of ``p``
elements, but for one of ``p / degree`` points (Schwartz and Zippel). Points are taken several at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from xgpu import ir
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.stablehlo_builder import Value, shape_of
from xgpu.passes.normalize.scans.polynomials import (
    NoPolynomialError,
    Number,
    number_of,
    operation_kind,
)
from xgpu.passes.normalize.scans.recurrence import Recurrence
from xgpu.structure import defining_op

type Points = NDArray[np.uint64]
"""Elements along a dimension, each at `_POINTS` points."""

PRIME = (1 << 31) - 1
"""The size of the field: products of two elements are 64-bit integers."""
_POINTS = 4
_MOST_KEPT = 1 << 24
"""Elements at points, of 8 bytes, that are kept for gradients to come."""


def element(number: Number) -> Points:
    """Return a number at each point. Raises `NoPolynomialError` for one that is not finite."""
    if number in (float("inf"), float("-inf")) or number != number:
        raise NoPolynomialError
    exact = Fraction(number)
    residue = exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME
    return np.full((1, _POINTS), residue, np.uint64)


_PRIME = np.uint64(PRIME)


def _add(left: Points, right: Points) -> Points:
    return (left + right) % _PRIME


def _subtract(left: Points, right: Points) -> Points:
    return (left + (_PRIME - right)) % _PRIME


def _multiply(left: Points, right: Points) -> Points:
    return left * right % _PRIME


def _select(condition: Points, left: Points, right: Points) -> Points:
    return _add(right, _multiply(condition, _subtract(left, right)))


_FUNCTIONS: Mapping[str, Callable[..., Points]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "negate": lambda value: _subtract(np.zeros_like(value), value),
    "select": _select,
    "and": _multiply,
    "or": lambda left, right: _subtract(_add(left, right), _multiply(left, right)),
    "not": lambda value: _subtract(np.ones_like(value), value),
    "convert": lambda value: value,
}
"""Truth values are 0 and 1, and these polynomials are right for both: what is the same for all numbers is for them."""


class FieldArrays:
    """Arrays of elements at points, along one dimension."""

    def apply(self, kind: str, operands: Sequence[Points | Number]) -> Points:
        """Return the result of an operation on arrays and numbers."""
        return _FUNCTIONS[kind](*(each if isinstance(each, np.ndarray) else element(each) for each in operands))

    def filled(self, number: Number, like: Points) -> Points:
        """Return an array of the size of another, of one number."""
        return np.broadcast_to(element(number), like.shape)

    def part(self, value: Points, start: int, end: int) -> Points:
        """Return the elements from ``start`` until before ``end``."""
        return value[start:end]

    def padded(self, value: Points, before: int, after: int) -> Points:
        """Return an array with zeros before and after its elements."""
        return np.pad(value, ((before, after), (0, 0)))

    def joined(self, first: Points, second: Points) -> Points:
        """Return the elements of one array and then another's."""
        return np.concatenate([first, second])

    def scan(
        self, arrays: Sequence[Points], from_end: bool, combine: Callable[[list[Points]], Sequence[Points]]
    ) -> list[Points]:
        """Return the scans of arrays, by halves."""
        if from_end:
            return [each[::-1] for each in self.scan([each[::-1] for each in arrays], False, combine)]
        size = len(arrays[0])
        if size == 1:
            return list(arrays)
        pairs = combine([each[start : size - 1 + start : 2] for start in (0, 1) for each in arrays])
        ends = self.scan(pairs, False, combine)
        before = [each[: (size - 1) // 2] for each in ends]
        between = combine([*before, *(each[2::2] for each in arrays)])
        scans = [np.empty_like(each) for each in arrays]
        for scan, array, end, middle in zip(scans, arrays, ends, between, strict=True):
            scan[0], scan[1::2], scan[2::2] = array[0], end, middle
        return scans


def _is_whole(op: ir.Operation) -> bool:
    """Whether a slice or a pad has the elements of its operand and no others."""
    if op.name == "stablehlo.slice":
        return bool(op.operands[0].type == op.results[0].type)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return not any(number for name in names for number in ir.DenseI64ArrayAttr(op.attributes[name]))


class FieldProgram:
    """Values of a program's operations, with random ones for all arrays of one shape that operations read parts of.

    Operations may cut, pad and join along ``dimension``, in which such an array has its size; else they work element by
    element. So one array of elements along the dimension stands for all.
    """

    def __init__(self, dimension: int, shape: Sequence[int]):
        self.dimension = dimension
        self.shape = tuple(shape)
        self.size = shape[dimension]
        self._random = np.random.default_rng(0)
        self._values: dict[Value, Points] = {}
        self._sources: dict[Value, frozenset[Value]] = {}
        self._places: dict[Value, int] = {}
        self._inner = set[Value]()
        self._kept = 0

    def value(self, root: Value) -> Points:
        """Return the elements of a value. Raises `NoPolynomialError` if it is not made of such arrays."""
        self._visit(root)
        return self._values[root]

    def sources(self, root: Value) -> frozenset[Value]:
        """Return the arrays of the shape that a value is made of."""
        self._visit(root)
        return self._sources[root]

    def place(self, source: Value) -> int:
        """Return a number of an array of the shape, by which those that were met are in order."""
        return self._places[source]

    def has(self, value: Value) -> bool:
        """Whether the value is one that others are made of, and is made of others."""
        return value in self._inner

    def forget(self) -> bool:
        """Forget values if they take much memory, but for the random ones; return whether they did."""
        if self._kept <= _MOST_KEPT:
            return False
        self._values = {value: self._values[value] for value in self._places}
        self._sources = {value: self._sources[value] for value in self._places}
        self._kept = 0
        return True

    def _visit(self, root: Value) -> None:
        pending = [root]
        while pending:
            value = pending[-1]
            if value in self._values:
                pending.pop()
            elif unknown := [each for each in self._operands(value) if each not in self._values]:
                pending += unknown
            else:
                pending.pop()
                self._values[value] = self._compute(value)
                self._kept += self._values[value].size
                if value not in self._places:
                    self._inner.add(value)
                parts = [self._sources[each] for each in self._operands(value)]
                self._sources[value] = frozenset[Value]().union(*parts) if parts else self._own_source(value)

    def _own_source(self, value: Value) -> frozenset[Value]:
        return frozenset([value]) if self._is_source(value) else frozenset()

    def _is_source(self, value: Value) -> bool:
        return tuple(shape_of(value)) == self.shape

    def _operands(self, value: Value) -> list[Value]:
        """Return what a value is computed from, none for a random one and a constant."""
        is_source = self._is_source(value)
        op = defining_op(value)
        if op is not None and op.name in ("stablehlo.slice", "stablehlo.pad") and (not is_source or _is_whole(op)):
            return [op.operands[0]]
        if is_source:
            return []
        if op is None:
            raise NoPolynomialError
        return [] if number_of(op) is not None else list(op.operands)

    def _compute(self, value: Value) -> Points:
        operands = self._operands(value)
        if self._is_source(value):
            # What is no random array is all of one.
            return self._values[operands[0]] if operands else self._drawn(value)
        op = defining_op(value)
        assert op is not None
        shape = shape_of(value)
        size = shape[self.dimension] if len(shape) == len(self.shape) else -1
        if tuple(shape) != (*self.shape[: self.dimension], size, *self.shape[self.dimension + 1 :]):
            raise NoPolynomialError
        if op.name == "stablehlo.slice":
            return self._slice(op)
        if op.name == "stablehlo.pad":
            return self.pad(op)
        if op.name == "stablehlo.concatenate" and ir.IntegerAttr(op.attributes["dimension"]).value == self.dimension:
            return np.concatenate([self._values[operand] for operand in op.operands])
        if op.name == SCAN and ir.IntegerAttr(op.attributes["dimension"]).value == self.dimension:
            return self._scan(op)[ir.OpResult(value).result_number]
        number = number_of(op)
        if number is not None:
            return np.broadcast_to(element(number), (size, _POINTS))
        return _FUNCTIONS[operation_kind(op)](*(self._values[operand] for operand in op.operands))

    def _drawn(self, value: Value) -> Points:
        self._places[value] = len(self._places)
        return self._random.integers(0, PRIME, (self.size, _POINTS), np.uint64)

    def _scan(self, op: ir.Operation) -> list[Points]:
        """Return what a scan inside the program comes to: that of an inner level, whose outer ones are not computed."""
        recurrence = Recurrence(op.regions[0].blocks[0])
        is_reversed = bool(ir.BoolAttr(op.attributes["reverse"]).value)
        return recurrence.scans(FieldArrays(), [self._values[operand] for operand in op.operands], is_reversed)

    def _slice(self, op: ir.Operation) -> Points:
        starts, limits, steps = (
            list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in ("start_indices", "limit_indices", "strides")
        )
        # Other dimensions keep their sizes, so nothing is cut there.
        i = self.dimension
        return self._values[op.operands[0]][starts[i] : limits[i] : steps[i]]

    def pad(self, op: ir.Operation) -> Points:
        """Return the elements of a `stablehlo.pad` whose operand's are known. Raises `NoPolynomialError` for others."""
        lows, highs, insides = (
            list(ir.DenseI64ArrayAttr(op.attributes[name]))
            for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
        )
        fill = op.operands[1]
        others = [i for i in range(len(lows)) if i != self.dimension]
        is_zero = not isinstance(fill.owner, ir.Block) and number_of(fill.owner.operation) == 0
        if not is_zero or any(lows[i] or highs[i] or insides[i] for i in others):
            raise NoPolynomialError
        value = self._values[op.operands[0]]
        low, high, step = lows[self.dimension], highs[self.dimension], insides[self.dimension] + 1
        whole = np.zeros((max(0, (len(value) - 1) * step + 1), _POINTS), np.uint64)
        whole[::step] = value
        whole = whole[max(0, -low) : len(whole) - max(0, -high)]
        return np.pad(whole, ((max(0, low), max(0, high)), (0, 0)))


def subset(total: Points, parts: Sequence[Points]) -> list[int] | None:
    """Return which of the parts add up to ``total``, None if none do; of several answers, one."""
    rows = [[int(number) for number in row] for row in np.stack([*(part.ravel() for part in parts), total.ravel()], 1)]
    leading: dict[int, list[int]] = {}
    for row in rows:
        for column, known in leading.items():
            factor = row[column]
            row = [(number - factor * other) % PRIME for number, other in zip(row, known, strict=True)]
        column = next((i for i, number in enumerate(row) if number), -1)
        if column < 0:
            continue
        inverse = pow(row[column], -1, PRIME)
        row = [number * inverse % PRIME for number in row]
        for i, known in leading.items():
            factor = known[column]
            leading[i] = [(number - factor * other) % PRIME for number, other in zip(known, row, strict=True)]
        leading[column] = row
    factors = {column: row[-1] for column, row in leading.items()}
    if len(parts) in factors or not set(factors.values()) <= {0, 1}:
        return None
    return [column for column, factor in factors.items() if factor]
