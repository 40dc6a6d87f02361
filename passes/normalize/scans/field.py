"""Values of a program's operations in finite fields, which tell polynomials apart.

Two polynomials that are not the same have different values at random points of a field of ``p`` elements, but for one
of ``p / degree`` points (Schwartz and Zippel). Points are taken several at a time. A field has numbers that differ by
``p`` in common, so the last point is one of another field.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from xgpu import ir
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.stablehlo_builder import Value, shape_of
from xgpu.indexing.access import integer
from xgpu.passes.normalize.scans.parts import Pad, Slice
from xgpu.passes.normalize.scans.polynomials import (
    NoPolynomialError,
    Number,
    number_of,
    operation_kind,
)
from xgpu.passes.normalize.scans.recurrence import Combination
from xgpu.structure import defining_op, producer

type Points = NDArray[np.uint64]
"""Elements along a dimension, each at `_POINTS` points."""

_PRIME = 3373259387
_PRIMES = np.array([_PRIME, _PRIME, _PRIME, 2918232181], np.uint64)
"""The field of each point, by size: products of two elements are 64-bit integers, and no powers of two are the same."""
_POINTS = len(_PRIMES)
_MOST_KEPT = 1 << 24
"""Elements at points, of 8 bytes, that are kept for gradients to come."""


def element(number: Number) -> Points:
    """Return a number at each point. Raises `NoPolynomialError` for one that is not finite."""
    if number in (float("inf"), float("-inf")) or number != number:
        raise NoPolynomialError
    exact = Fraction(number)
    residues = [exact.numerator * pow(exact.denominator, -1, prime) % prime for prime in _PRIMES.tolist()]
    return np.array([residues], np.uint64)


def _add(left: Points, right: Points) -> Points:
    return (left + right) % _PRIMES


def _subtract(left: Points, right: Points) -> Points:
    return (left + (_PRIMES - right)) % _PRIMES


def _multiply(left: Points, right: Points) -> Points:
    return left * right % _PRIMES


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
        self._scans: dict[Value, list[Points]] = {}
        self._places: dict[Value, int] = {}
        self._inner = set[Value]()
        self._kept = 0

    def value(self, root: Value) -> Points:
        """Return the elements of a value. Raises `NoPolynomialError` if it is not made of such arrays."""
        self._visit(root)
        return self._values[root]

    def padded(self, value: Value) -> Points:
        """Return the elements of the result of a `stablehlo.pad`. Raises `NoPolynomialError` for others than zeros."""
        pad = Pad.of(producer(value), self.dimension)
        if pad is None:
            raise NoPolynomialError
        elements, step = self.value(pad.array), pad.inside + 1
        whole = np.zeros((max(0, (len(elements) - 1) * step + 1), _POINTS), np.uint64)
        whole[::step] = elements
        whole = whole[max(0, -pad.low) : len(whole) - max(0, -pad.high)]
        return np.pad(whole, ((max(0, pad.low), max(0, pad.high)), (0, 0)))

    def padded_sources(self, value: Value) -> frozenset[Value]:
        """Return the arrays of the shape that what is `padded` to a value is made of."""
        return self._sources[producer(value).operands[0]]

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
        self._scans.clear()
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
        if op is not None and op.name in ("stablehlo.slice", "stablehlo.pad") and (not is_source or self._is_whole(op)):
            return [op.operands[0]]
        if is_source:
            return []
        if op is None:
            raise NoPolynomialError
        return [] if number_of(op) is not None else list(op.operands)

    def _is_whole(self, op: ir.Operation) -> bool:
        """Whether a slice or a pad whose result has the shape has the elements of its operand and no others."""
        if op.operands[0].type != op.results[0].type or op.name == "stablehlo.slice":
            return bool(op.operands[0].type == op.results[0].type)
        pad = Pad.of(op, self.dimension)
        return pad is not None and not (pad.low or pad.high or pad.inside)

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
            return self.padded(value)
        if op.name == "stablehlo.concatenate" and integer(op, "dimension") == self.dimension:
            return np.concatenate([self._values[operand] for operand in op.operands])
        if op.name == SCAN and integer(op, "dimension") == self.dimension:
            return self._scan(op)[ir.OpResult(value).result_number]
        number = number_of(op)
        if number is not None:
            return np.broadcast_to(element(number), (size, _POINTS))
        return _FUNCTIONS[operation_kind(op)](*(self._values[operand] for operand in op.operands))

    def _drawn(self, value: Value) -> Points:
        self._places[value] = len(self._places)
        return self._random.integers(0, _PRIMES, (self.size, _POINTS), np.uint64)

    def _scan(self, op: ir.Operation) -> list[Points]:
        """Return what a scan inside the program comes to: that of an inner level, whose outer ones are not computed."""
        if op.results[0] not in self._scans:
            is_reversed = bool(ir.BoolAttr(op.attributes["reverse"]).value)
            elements = [self._values[operand] for operand in op.operands]
            found = Combination(op.regions[0].blocks[0]).scans(FieldArrays(), elements, is_reversed)
            self._scans[op.results[0]] = found
        return self._scans[op.results[0]]

    def _slice(self, op: ir.Operation) -> Points:
        part = Slice.of(op.results[0], self.dimension)
        if part is None:
            raise NoPolynomialError
        end = part.start + (part.count - 1) * part.step + 1
        return self._values[part.array][part.start : end : part.step]


def subset(total: Points, parts: Sequence[Points]) -> list[int] | None:
    """Return which of the parts add up to ``total`` in the first field, None if none do; of several answers, one."""
    columns = [each[:, _PRIMES == _PRIME].ravel() for each in (*parts, total)]
    rows: list[list[int]] = np.stack(columns, 1).tolist()
    leading: dict[int, list[int]] = {}
    for row in rows:
        for column, known in leading.items():
            factor = row[column]
            row = [(number - factor * other) % _PRIME for number, other in zip(row, known, strict=True)]
        column = next((i for i, number in enumerate(row) if number), -1)
        if column < 0:
            continue
        inverse = pow(row[column], -1, _PRIME)
        row = [number * inverse % _PRIME for number in row]
        for i, known in leading.items():
            factor = known[column]
            leading[i] = [(number - factor * other) % _PRIME for number, other in zip(known, row, strict=True)]
        leading[column] = row
    factors = {column: row[-1] for column, row in leading.items()}
    if len(parts) in factors or not set(factors.values()) <= {0, 1}:
        return None
    return [column for column, factor in factors.items() if factor]
