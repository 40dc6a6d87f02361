"""Loops that run until no element needs another iteration, as `jax.vmap` makes them of loops over single numbers.

Their condition is whether any element of a mask is true, and where it is false no element of a state changes any more:
the next one is ``select(mask, new, old)``. So each element may leave the loop as soon as its own mask is false. That
stays false if it depends on nothing that goes on changing, such as a count of iterations.
"""

import math
from collections.abc import Hashable

from xgpu import ir
from xgpu.analysis.combiners import combiners
from xgpu.analysis.constants.counters import unchanging
from xgpu.fusion.fallback import BARRIER
from xgpu.hlo.constants import is_number
from xgpu.indexing.access import integers, shape_of
from xgpu.records import dataclass
from xgpu.structure import (
    attributes_of,
    backward_slice,
    body_of,
    dtype_of,
    is_argument,
    is_result_of,
    is_used,
    producer,
    terminator_of,
)

_REDUCE, _RESHAPE = "stablehlo.reduce", "stablehlo.reshape"
_SLICE, _CONCATENATE = "stablehlo.slice", "stablehlo.concatenate"
_SPREAD, _CONVERT = "stablehlo.broadcast_in_dim", "stablehlo.convert"


@dataclass(frozen=True)
class Mask:
    """The places where a loop goes on: at elements of ``elements``, as long as all ``numbers`` are true.

    Both are values of the block that computes the loop's condition.
    """

    elements: ir.Value
    numbers: tuple[ir.Value, ...]

    @classmethod
    def of(cls, loop: ir.Operation) -> "Mask | None":
        """Return where a loop goes on; None if its condition is no such one."""
        (condition,) = terminator_of(body_of(loop, 0)).operands
        terms = _terms(condition)
        masks = {term: mask for term in terms if (mask := _any_of(term)) is not None and shape_of(mask)}
        if len(masks) != 1:
            return None
        ((found, elements),) = masks.items()
        return cls(elements, tuple(term for term in terms if term != found))

    def keeps_states(self, loop: ir.Operation) -> bool:
        """Whether elements of a loop's state stay as they are where the mask is false, and so the mask itself.

        Numbers that all elements share, such as a count of iterations, go on changing, so they must be neither results
        nor what the mask depends on.
        """
        names, body = _Names(loop), body_of(loop, 1)
        changing = [
            number
            for number, (argument, value) in enumerate(zip(body.arguments, terminator_of(body).operands, strict=True))
            if value != argument and not _is_kept(value, argument, self.elements, names)
        ]
        read = {self.elements}.union(*(op.operands for op in backward_slice([self.elements], is_argument)))
        return all(
            not shape_of(body.arguments[number])
            and not is_used(loop.results[number])
            and body_of(loop, 0).arguments[number] not in read
            for number in changing
        )


def _terms(condition: ir.Value) -> list[ir.Value]:
    """Return the values that must all be true for a condition to be."""
    found, pending = list[ir.Value](), [condition]
    while pending:
        value = pending.pop()
        if is_result_of(value, "stablehlo.and"):
            pending += producer(value).operands
        else:
            found.append(value)
    return found


def _any_of(value: ir.Value) -> ir.Value | None:
    """Return the mask of which a condition is whether any element is true; that may be found in several steps."""
    if shape_of(value) or not is_result_of(value, _REDUCE):
        return None
    part = _Part.behind(value)
    while part.is_whole and part.array != value:
        value, part = part.array, _Part.behind(part.array)
    return None if is_result_of(value, _REDUCE) else value


@dataclass(frozen=True)
class _Part:
    """The elements of an array, from ``start`` up to ``end``, of which another has whether any is true."""

    array: ir.Value
    start: int
    end: int

    @property
    def is_whole(self) -> bool:
        """Whether these are all elements of the array."""
        return (self.start, self.end) == (0, math.prod(shape_of(self.array)))

    @classmethod
    def behind(cls, value: ir.Value) -> "_Part":
        """Return what ``value`` is made of by steps of such a reduction: by itself, if by none."""
        own = cls(value, 0, math.prod(shape_of(value)))
        if is_result_of(value, _RESHAPE) or (is_result_of(value, _REDUCE) and _is_any(producer(value))):
            return cls.behind(producer(value).operands[0])
        if is_result_of(value, _SLICE) and len(shape_of(value)) == 1:
            op = producer(value)
            (start,), (end,), (stride,) = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
            return cls(op.operands[0], start, end) if stride == 1 else own
        if is_result_of(value, _CONCATENATE) and len(shape_of(value)) == 1:
            first, *others = (cls.behind(operand) for operand in producer(value).operands)
            for each in others:
                if each.array != first.array or each.start != first.end:
                    return own
                first = cls(first.array, first.start, each.end)
            return first
        return own


def _is_any(op: ir.Operation) -> bool:
    """Whether a reduction tells if any element is true."""
    is_one = len(op.results) == 1 and dtype_of(op.results[0]).kind == "bool" and is_number(op.operands[1], 0)
    return is_one and [each.function for each in combiners(op)] == ["or"]


def _is_kept(value: ir.Value, argument: ir.Value, mask: ir.Value, names: "_Names") -> bool:
    """Whether the next value of a state is the present one where a mask is false."""
    value = _behind_barriers(value)
    if is_result_of(value, "stablehlo.and"):
        # The mask itself, which is false where it was.
        return names.of(argument) == names.of(mask) and argument in list(producer(value).operands)
    if not is_result_of(value, "stablehlo.select"):
        return False
    chosen, _, other = producer(value).operands
    if names.of(other) != names.of(argument) or len(shape_of(chosen)) != len(shape_of(value)):
        return False
    while is_result_of(chosen, _SPREAD) and names.of(chosen) != names.of(mask):
        op = producer(chosen)
        (source,), places = op.operands, integers(op, "broadcast_dimensions")
        # A row's element decides for all of the row.
        if list(places) != list(range(len(places))) or shape_of(source) != shape_of(chosen)[: len(places)]:
            return False
        chosen = source
    return names.of(chosen) == names.of(mask)


def _behind_barriers(value: ir.Value) -> ir.Value:
    while is_result_of(value, BARRIER):
        value = producer(value).operands[ir.OpResult(value).result_number]
    return value


class _Names:
    """Numbers for the values of a loop's blocks: two have the same one if they are computed in the same way."""

    def __init__(self, loop: ir.Operation):
        self._loop = loop
        self._numbers: dict[Hashable, int] = {}
        self._names: dict[ir.Value, int] = {}
        for block in (body_of(loop, 0), body_of(loop, 1)):
            for number, argument in enumerate(body_of(loop, 1).arguments):
                around = unchanging(argument, loop)
                self._names[block.arguments[number]] = self._number(number if around == argument else around)
            for view in block.operations:
                self._name(view.operation)

    def of(self, value: ir.Value) -> int:
        """Return the number of a value of the loop's blocks, or from around it."""
        return self._names[value] if value in self._names else self._number(value)

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _name(self, op: ir.Operation) -> None:
        for number, result in enumerate(op.results):
            if op.name == BARRIER:
                self._names[result] = self.of(op.operands[number])
            elif len(op.operands) == 1 and op.operands[0].type == result.type and op.name in (_SPREAD, _CONVERT):
                self._names[result] = self.of(op.operands[0])
            elif len(op.regions):
                self._names[result] = self._number(result)
            else:
                operands = tuple(self.of(operand) for operand in op.operands)
                attributes = frozenset(attributes_of(op).items())
                self._names[result] = self._number((op.name, number, result.type, attributes, operands))
