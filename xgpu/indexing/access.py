"""The reads of an operation: accesses and their runtime indices, and helpers that the rules of ``hlo_maps`` share."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from xgpu import ir
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class RuntimeIndex:
    """An index known only at run time: the integer scalar that an earlier access reads, clamped to an interval.

    ``access`` is the number of that access in the operation's tuple. The clamp is done in the integer's own type.
    """

    access: int
    clamp: Interval


@dataclass(frozen=True)
class Access:
    """A read of one operand.

    ``map`` goes from the result's indices, and one dimension for each of ``runtime``, to the operand's indices.
    """

    operand: int
    map: IndexingMap
    runtime: tuple[RuntimeIndex, ...] = ()


Rule = Callable[[ir.Operation], tuple[Access, ...]]
"""Returns the accesses of an operation."""


def shape_of(value: ir.Value[Any]) -> Shape:
    """Return the shape of an array."""
    type_: Any = value.type
    return tuple(type_.shape)


def integers(op: ir.Operation, name: str) -> list[int]:
    """Return an attribute that is an array of integers."""
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def integer(op: ir.Operation, name: str) -> int:
    """Return an attribute that is an integer."""
    return int(ir.IntegerAttr(op.attributes[name]).value)


@lru_cache(maxsize=4096)
def ranges(shape: Shape) -> tuple[Interval, ...]:
    """Return the ranges of the indices of an array."""
    return tuple(Interval(0, size - 1) for size in shape)


def dims(rank: int) -> list[AffineExpr]:
    """Return the first ``rank`` dimensions."""
    return [dim(index) for index in range(rank)]


@lru_cache(maxsize=4096)
def identity_map(shape: Shape) -> IndexingMap:
    """Return the map of an operand that is read at the result's indices."""
    return IndexingMap(ranges(shape), (), tuple(dims(len(shape))))


@lru_cache(maxsize=4096)
def scalar_map(shape: Shape) -> IndexingMap:
    """Return the map of an operand of rank 0, read for every result element."""
    return IndexingMap(ranges(shape), (), ())


def plain_map(shape: Shape, results: Sequence[AffineExpr]) -> IndexingMap:
    """Return a map from a result of ``shape`` that reads one element, whatever the index."""
    return IndexingMap(ranges(shape), (), tuple(results))


def spread_index(position: AffineExpr, size: int, step: int) -> tuple[AffineExpr, tuple[Constraint, ...]]:
    """Return which of ``size`` elements at distance ``step`` is at a position, and the condition that one is."""
    constraints: tuple[Constraint, ...] = ((position, Interval(0, (size - 1) * step)),)
    if step > 1:
        constraints += ((position % step, Interval(0, 0)),)
    return position // step, constraints
