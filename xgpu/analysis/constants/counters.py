"""Facts about a loop that are known before it runs: its trip count, and the values of its counters."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from xgpu import ir
from xgpu.dtypes import DType
from xgpu.hlo.operations import direction_of
from xgpu.indexing.access import shape_of
from xgpu.records import dataclass
from xgpu.structure import dtype_of, is_argument, is_constant, is_result_of, owning_op, producer, terminator_of

Numbers = np.ndarray[Any, Any]

_MOST_TRIPS = 1 << 24
"""Iterations up to which the values of integers are evaluated in each of them."""
_MOST_BITS = 32
"""Width of counters whose differences are numbers of 64 bits."""
_BY_ONE = frozenset((("LT", 1), ("GT", -1)))
"""Comparisons that hold for a counter of such steps up to its bound."""
_SWAPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}
_BINARY: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "stablehlo.add": np.add,
    "stablehlo.subtract": np.subtract,
    "stablehlo.multiply": np.multiply,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
}
_COMPARISONS: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}


@dataclass(frozen=True)
class Counter:
    """An integer scalar of a loop's state: ``start`` in the first iteration, plus ``step`` in each that follows."""

    dtype: DType
    start: int
    step: int

    def numbers(self, trips: int) -> Numbers:
        """Return its values in so many iterations, in its own type, in which it wraps around."""
        steps = np.arange(trips, dtype=np.int64).astype(self.dtype.numpy)
        start, step = (np.array(number, np.int64).astype(self.dtype.numpy) for number in (self.start, self.step))
        with np.errstate(over="ignore"):
            numbers: Numbers = start + step * steps
        return numbers

    def wrapped(self, number: int) -> int:
        """Return ``number`` wrapped to the counter's type."""
        lowest = -(1 << (self.dtype.bits - 1)) if self.dtype.is_signed else 0
        return (number - lowest) % (1 << self.dtype.bits) + lowest


def constant_integer(value: ir.Value) -> int | None:
    """Return a scalar that is a constant integer, None if ``value`` is something else."""
    if shape_of(value) or not is_constant(value) or not dtype_of(value).is_integer:
        return None
    return int(ir.DenseIntElementsAttr(producer(value).attributes["value"])[0])


def counters_of(loop: ir.Operation) -> dict[int, Counter]:
    """Return the counters of a loop, by their number in its state: start and step are constants."""
    found: dict[int, Counter] = {}
    for number, argument in enumerate(loop.regions[1].blocks[0].arguments):
        if shape_of(argument) or not dtype_of(argument).is_integer or dtype_of(argument).is_packed:
            continue
        start, step = constant_integer(loop.operands[number]), step_of(loop, number)
        if start is not None and step is not None:
            found[number] = Counter(dtype_of(argument), start, step)
    return found


def step_of(loop: ir.Operation, number: int) -> int | None:
    """Return the constant that each iteration adds to value ``number`` of a loop's state, None if it is not known."""
    (body,) = loop.regions[1].blocks
    argument, result = body.arguments[number], terminator_of(body).operands[number]
    if not is_result_of(result, "stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = producer(result).operands
    if producer(result).name == "stablehlo.add" and right == argument:
        left, right = right, left
    step = constant_integer(unchanging(right, loop)) if left == argument else None
    return -step if step is not None and producer(result).name == "stablehlo.subtract" else step


def unchanging(value: ir.Value, loop: ir.Operation) -> ir.Value:
    """Return the value from outside ``loop`` that a value inside equals in all iterations, else the value itself."""
    if not is_argument(value) or owning_op(value) != loop:
        return value
    number = ir.BlockArgument(value).arg_number
    (body,) = loop.regions[1].blocks
    end = terminator_of(body)
    return loop.operands[number] if end.operands[number] == body.arguments[number] else value


def trip_count(loop: ir.Operation, counters: Mapping[int, Counter]) -> int | None:
    """Return how often the body of ``loop`` runs, None if that is not known at compile time."""
    compared = condition_of(loop)
    if compared is None or (bound := constant_integer(unchanging(compared.bound, loop))) is None:
        return None
    counter = counters.get(compared.number)
    return None if counter is None else _trips(counter, compared.direction, bound)


class LoopCondition(NamedTuple):
    """The comparison of value ``number`` of a loop's state with a bound that the loop does not change."""

    number: int
    direction: str
    bound: ir.Value


def condition_of(loop: ir.Operation) -> LoopCondition | None:
    """Return the comparison that the condition of ``loop`` is, None if it is something else."""
    (block,) = loop.regions[0].blocks
    (condition,) = terminator_of(block).operands
    if not is_result_of(condition, "stablehlo.compare"):
        return None
    direction = direction_of(producer(condition))
    left, right = producer(condition).operands
    if _from_before(left, loop) is not None or is_constant(left):
        left, right, direction = right, left, _SWAPPED.get(direction, "")
    if not (is_constant(right) or _from_before(right, loop)) or not _is_state(left, block):
        return None
    return LoopCondition(ir.BlockArgument(left).arg_number, direction, right)


def trips_at_entry(loop: ir.Operation) -> tuple[ir.Value, ir.Value] | None:
    """Return two values from before ``loop``: the first one less the second, if positive, is how often its body runs.

    None if that is not known when the loop begins. It is where a counter of 32 bits or fewer goes to a bound in steps
    of one, as it then cannot wrap around before.
    """
    (block,) = loop.regions[0].blocks
    (condition,) = terminator_of(block).operands
    if not is_result_of(condition, "stablehlo.compare"):
        return None
    direction = direction_of(producer(condition))
    left, right = map(_unconverted, producer(condition).operands)
    if not _is_state(left, block) or _from_before(left, loop) is not None:
        left, right, direction = right, left, _SWAPPED.get(direction, "")
    bound = _from_before(right, loop)
    if bound is None or not _is_state(left, block) or shape_of(left) or not dtype_of(left).is_integer:
        return None
    number = ir.BlockArgument(left).arg_number
    start, step = loop.operands[number], step_of(loop, number)
    if dtype_of(left).is_packed or dtype_of(left).bits > _MOST_BITS or (direction, step) not in _BY_ONE:
        return None
    return (bound, start) if step == 1 else (start, bound)


def _unconverted(value: ir.Value) -> ir.Value:
    """Return what ``value`` is converted from, if that is of the same type."""
    while is_result_of(value, "stablehlo.convert") and producer(value).operands[0].type == value.type:
        value = producer(value).operands[0]
    return value


def _is_state(value: ir.Value, block: ir.Block) -> bool:
    return is_argument(value) and value.owner == block


def _from_before(value: ir.Value, loop: ir.Operation) -> ir.Value | None:
    """Return the value from before ``loop`` that a value of its condition equals in all iterations, None for none."""
    value = unchanging(value, loop)
    op = None if is_argument(value) else producer(value)
    is_inside = owning_op(value) == loop if op is None else op.parent == loop
    return None if is_inside else value


def _trips(counter: Counter, direction: str, bound: int) -> int | None:
    """Return in how many iterations a comparison with ``bound`` holds for a counter before the first in which it fails.

    None if the counter wraps around before that.
    """
    start, step = counter.start, counter.step
    if direction in ("GT", "GE"):
        start, step, bound = -start, -step, -bound
    if direction in ("LE", "GE"):
        bound += 1
    if direction == "NE":
        trips = (bound - start) // step if step and (bound - start) % step == 0 else -1
    elif direction in _SWAPPED:
        trips = 0 if start >= bound else -((start - bound) // step) if step > 0 else -1
    else:
        return None
    last = counter.start + trips * counter.step
    return trips if trips >= 0 and counter.wrapped(last) == last else None


def numbers_of(value: ir.Value, counters: Mapping[int, Counter], loop: ir.Operation, trips: int) -> Numbers | None:
    """Return the values of an integer scalar of the body of ``loop`` in all iterations, None if they are not known."""
    if trips > _MOST_TRIPS:
        return None
    (body,) = loop.regions[1].blocks
    found: dict[ir.Value, Numbers] = {
        body.arguments[number]: counter.numbers(trips) for number, counter in counters.items()
    }
    pending = [value]
    while pending:
        each = pending[-1]
        if each in found:
            pending.pop()
        elif (number := constant_integer(unchanging(each, loop))) is not None:
            found[each] = np.full(trips, number, dtype_of(each).numpy)
        elif is_argument(each) or shape_of(each):
            return None
        elif unknown := [operand for operand in producer(each).operands if operand not in found]:
            pending += unknown
        else:
            numbers = _evaluate(producer(each), [found[operand] for operand in producer(each).operands])
            if numbers is None:
                return None
            found[each] = numbers
    return found[value]


def _evaluate(op: ir.Operation, operands: list[Numbers]) -> Numbers | None:
    """Return the result of an operation on integer scalars in each iteration, None for other operations."""
    with np.errstate(over="ignore"):
        if op.name in _BINARY and dtype_of(op.results[0]).is_integer:
            return _BINARY[op.name](*operands)
        if op.name == "stablehlo.negate" and dtype_of(op.results[0]).is_integer:
            return np.negative(operands[0])
        if op.name == "stablehlo.convert" and all(dtype_of(v).is_integer for v in (op.operands[0], op.results[0])):
            return operands[0].astype(dtype_of(op.results[0]).numpy)
        if op.name == "stablehlo.compare":
            return _COMPARISONS[direction_of(op)](*operands)
        if op.name == "stablehlo.select":
            return np.where(*operands)
        if op.name == "stablehlo.reshape":
            return operands[0]
    return None
