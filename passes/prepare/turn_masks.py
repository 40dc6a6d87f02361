"""The pass `turn-masks`."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from xgpu import ir
from xgpu.analysis.attention.places import number_of
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import direction_of
from xgpu.hlo.stablehlo_builder import hlo, splat, tensor
from xgpu.indexing.access import shape_of
from xgpu.passes.framework.base import BlockRewrite
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of, element_of, users_of

_SELECT, _COMPARE, _CONVERT = "stablehlo.select", "stablehlo.compare", "stablehlo.convert"
_NOT = "stablehlo.not"
_MULTIPLY, _DIVIDE = "stablehlo.multiply", "stablehlo.divide"
_MOVES = frozenset(("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose"))
_OPPOSITE = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
_LOW = -4096.0
"""Numbers below are taken for what hides something."""


@dataclass(frozen=True)
class TurnMasks(BlockRewrite):
    """Writes masks in the form that analyses ask for: what is seen is chosen where comparisons of indices hold.

    Choices of -inf, or of another low number, where a condition says that something is hidden become those of
    everything else where it does not hold; the negation goes into the comparisons that the condition is made of. Other
    choices by that condition, such as those of gradients, follow. A condition that was made a number, and compared with
    one, is the condition again. Arrays of constants that hold from one diagonal to another, such as those of `np.tril`,
    become comparisons of indices. Products of a condition that was made a number with another number, and quotients, as
    dropouts make, are choices of that number. Needs: sink-constants, so that every block has its own.

    ```mlir
    %hidden = stablehlo.compare GT, %key, %row : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %0 = stablehlo.select %hidden, %low, %x : tensor<8x8xi1>, tensor<8x8xf32>
    // becomes
    %seen = stablehlo.compare LE, %key, %row : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %0 = stablehlo.select %seen, %x, %low : tensor<8x8xi1>, tensor<8x8xf32>
    ```
    """

    NAME: ClassVar[str] = "turn-masks"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(
        (_SELECT, _COMPARE, _NOT, _MULTIPLY, _DIVIDE, "stablehlo.constant")
    )
    least_elements: int = 1024
    """Constants of fewer elements are left as they are."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Rewrite the constants, comparisons and choices of a block."""
        turned = _Turned()
        for op in [view.operation for view in block.operations]:
            if op.name not in self.OPERATIONS:
                continue
            with ir.InsertionPoint(op), op.location:
                made = self._rewritten(op, turned)
            if made is not None:
                op.results[0].replace_all_uses_with(made)
                op.erase()

    def _rewritten(self, op: ir.Operation, turned: "_Turned") -> ir.Value | None:
        shape = shape_of(op.results[0])
        if op.name == "stablehlo.constant":
            return _band(op) if math.prod(shape) >= self.least_elements else None
        if op.name == _COMPARE:
            return _condition_again(op, turned)
        if op.name == _NOT:
            return turned.of(op.operands[0]) if len(shape) > 1 and _is_condition(op.results[0]) else None
        if op.name in (_MULTIPLY, _DIVIDE):
            return _chosen_number(op)
        condition, chosen, other = op.operands
        is_hidden = _is_low(chosen) and not _is_low(other)
        if not shape_of(condition) or not (is_hidden or (turned.has(condition) and not _is_low(other))):
            return None
        swapped: ir.Value = hlo.select(turned.negated(condition), other, chosen)
        return swapped


def _is_low(value: ir.Value) -> bool:
    number = number_of(value)
    return number is not None and number <= _LOW


class _Turned:
    """The negations of conditions: those of turned comparisons, of which each is made once.

    Conditions are asked for in the order of the program, of which later operations may use what was made for one.
    """

    def __init__(self) -> None:
        self._made: dict[ir.Value, ir.Value | None] = {}

    def has(self, condition: ir.Value) -> bool:
        """Return whether a condition is known turned already, or what it was moved from."""
        while (op := defining_op(condition)) is not None and op.name in _MOVES and condition not in self._made:
            condition = op.operands[0]
        return self._made.get(condition) is not None

    def negated(self, condition: ir.Value) -> ir.Value:
        """Return where a condition does not hold."""
        made = self.of(condition)
        return hlo.not_(condition) if made is None else made

    def of(self, condition: ir.Value) -> ir.Value | None:
        """Return the same, None if the condition is made of nothing that can be turned."""
        if condition not in self._made:
            self._made[condition] = self._turned(condition)
        return self._made[condition]

    def _turned(self, condition: ir.Value) -> ir.Value | None:
        op = defining_op(condition)
        if op is None:
            return None
        if op.name == _NOT:
            return op.operands[0]
        if op.name in _MOVES:
            moved = self.of(op.operands[0])
            return None if moved is None else _like(op, [moved])
        made: ir.Value | None = None
        if op.name in ("stablehlo.and", "stablehlo.or"):
            combine: Callable[..., ir.Value] = hlo.or_ if op.name == "stablehlo.and" else hlo.and_
            made = combine(*(self.negated(each) for each in op.operands))
        elif op.name == _SELECT and op.operands[0].type == condition.type:
            asked, chosen, other = op.operands
            made = hlo.select(asked, self.negated(chosen), self.negated(other))
        elif op.name == "stablehlo.constant" and (known := splat_of(op)) is not None:
            made = splat(int(not ir.BoolAttr(known).value), ir.RankedTensorType(condition.type))
        elif op.name == _COMPARE:
            made = _opposite(op)
        return made


def _chosen_number(op: ir.Operation) -> ir.Value | None:
    """Return the choice of a number that a condition, made a number, is multiplied or divided to; None for others."""
    for position in range(2 if op.name == _MULTIPLY else 1):
        made, number = defining_op(op.operands[position]), number_of(op.operands[1 - position])
        is_number = number is not None and 0 < number < math.inf
        if not is_number or made is None or made.name != _CONVERT or not _is_condition(made.operands[0]):
            continue
        one = dtype_of(op.results[0]).numpy.type(1)
        chosen = float(one * one.dtype.type(number) if op.name == _MULTIPLY else one / one.dtype.type(number))
        type_ = ir.RankedTensorType(op.results[0].type)
        made_choice: ir.Value = hlo.select(made.operands[0], splat(chosen, type_), splat(0.0, type_))
        return made_choice
    return None


def _is_condition(value: ir.Value) -> bool:
    return str(element_of(value)) == "i1"


def _opposite(op: ir.Operation) -> ir.Value | None:
    """Return the comparison that holds where one does not; None for an order of floats, which may not be numbers."""
    direction = direction_of(op)
    if direction not in ("EQ", "NE") and not isinstance(element_of(op.operands[0]), ir.IntegerType):
        return None
    described = {name: op.attributes[name] for name in op.attributes}
    described["comparison_direction"] = ir.stablehlo.ComparisonDirectionAttr.get(_OPPOSITE[direction])
    return ir.Operation.create(_COMPARE, [op.results[0].type], list(op.operands), described).results[0]


def _like(op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
    described = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, [op.results[0].type], operands, described).results[0]


def _condition_again(op: ir.Operation, turned: _Turned) -> ir.Value | None:
    """Return the condition that a comparison of a number with a constant asks for, if that is made of one."""
    direction = direction_of(op)
    value, other = op.operands
    limit = number_of(other)
    made = defining_op(value)
    if direction not in ("EQ", "NE") or limit is None or made is None:
        return None
    if made.name == _CONVERT and _is_condition(made.operands[0]):
        numbers: list[float | None] = [1.0, 0.0]
    elif made.name == _SELECT and made.operands[0].type == op.results[0].type:
        numbers = [number_of(each) for each in list(made.operands)[1:]]
    else:
        return None
    if None in numbers:
        return None
    if_true, if_false = ((number == limit) == (direction == "EQ") for number in numbers)
    if if_true == if_false:
        return splat(int(if_true), ir.RankedTensorType(op.results[0].type))
    return made.operands[0] if if_true else turned.negated(made.operands[0])


def _band(op: ir.Operation) -> ir.Value | None:
    """Return comparisons of indices that hold where a constant does, if that is from one diagonal to another."""
    shape, value = shape_of(op.results[0]), op.attributes["value"]
    long = [number for number, size in enumerate(shape) if size > 1]
    is_array = isinstance(value, ir.DenseElementsAttr) and not value.is_splat
    if not is_array or not _is_condition(op.results[0]) or len(long) != 2 or not users_of(op.results[0]):
        return None
    rows, columns = (shape[number] for number in long)
    ends = _diagonals(np.array(value).reshape(rows, columns).astype(bool))
    if ends is None:
        return None
    type_ = tensor(shape, "i32")
    numbers = [hlo.iota(type_, number) for number in long]
    parts = []
    for distance, direction, reached in zip(ends, ("GE", "LE"), (1 - rows, columns - 1), strict=True):
        if distance != reached:
            end = hlo.add(numbers[0], splat(distance, type_))
            parts.append(hlo.compare(numbers[1], end, hlo.ComparisonDirectionAttr.get(direction)))
    made: ir.Value = parts[0] if len(parts) == 1 else hlo.and_(*parts)
    return made


def _diagonals(holds: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[int, int] | None:
    """Return the first and the last diagonal of a matrix that holds between them and nowhere else; None for others.

    They are numbered by how far columns are after rows.
    """
    rows, columns = holds.shape
    (some,) = np.nonzero(holds.any(1))
    if not len(some):
        return None
    first = int((holds.argmax(1) - np.arange(rows))[some].min())
    last = int((columns - 1 - holds[:, ::-1].argmax(1) - np.arange(rows))[some].max())
    band = np.tri(rows, columns, last, bool) & ~np.tri(rows, columns, first - 1, bool)
    return (first, last) if np.array_equal(holds, band) else None
