"""What it takes to compute a value again, in bytes of memory traffic that take as long.

Kernels are bound by memory: a value is worth storing if reading it costs less than reading all that it is computed
from. Only long computations count beside what they read.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from xgpu import ir
from xgpu.device import Device
from xgpu.dtypes import dtype_of_element
from xgpu.fusion.left import CONTRACTIONS
from xgpu.fusion.regions import maker
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import shape_of

LAUNCH_SECONDS = 2.5e-6
"""What one more kernel takes where others run before and after it: an estimate for an H200, start to end."""
BYTES_PER_INSTRUCTION = 0.07
"""Bytes of traffic that take as long as an instruction of a thread.

An H200 moves 4.2 TB/s and issues 28.7 tera-instructions a second: 0.15 bytes for each. Half of them are taken to hide
behind traffic.
"""
MOST_VISITED = 256
"""Operations after which the cost of a value is known to be high enough."""
LATENCY_SECONDS = 1.5e-9
"""What an instruction takes in a thread that waits for few others: two or three at a time in some eight cycles."""
LOAD = 8
"""Instructions that an access to a stored array takes, its index and the wait for caches included."""


@dataclass(frozen=True)
class Cost:
    """What computing a value once takes: bytes that are read in all, instructions for each element, and operations."""

    bytes: int
    instructions: int
    operations: int

    def instruction_bytes(self, times: float) -> float:
        """Return the bytes of traffic that take as long as the instructions for so many elements, but for one each.

        That one is what reading the element would take.
        """
        return BYTES_PER_INSTRUCTION * (self.instructions - 1) * times


def bytes_per_instruction(width: int, target: Device) -> float:
    """Return the bytes that ``target`` moves while a kernel executes an instruction for one element.

    ``width`` is the number of its threads. If they are few, what counts is how long one of them takes.
    """
    return max(BYTES_PER_INSTRUCTION, LATENCY_SECONDS * target.memory_bandwidth / width)


def instructions(op: ir.Operation) -> int:
    """Return how many instructions an element of the result of ``op`` takes, about."""
    if op.name in CONTRACTIONS:
        # The product of the operands' sizes has the dimensions that are summed over twice.
        return max(1, math.isqrt(math.prod(map(elements, op.operands)) // max(1, elements(op.results[0]))))
    operation = OPERATIONS.get(op.name)
    return 1 if operation is None else operation.instructions


def elements(value: ir.Value) -> int:
    """Return how many elements an array has."""
    return math.prod(shape_of(value))


def byte_size(value: ir.Value, count: int | None = None) -> int:
    """Return the bytes of ``count`` elements of an array, of all if it is left out."""
    bits = dtype_of_element(ir.RankedTensorType(value.type).element_type).storage_bits
    return -(-(elements(value) if count is None else count) * bits // 8)


def launch_bytes(target: Device) -> int:
    """Return the bytes that a device moves in the time of another kernel."""
    return round(LAUNCH_SECONDS * target.memory_bandwidth)


class Costs:
    """What the values of a block cost; facts about operations are found once."""

    def __init__(self) -> None:
        self._steps: dict[ir.Value, _Step] = {}

    def of(self, value: ir.Value, stored_at: Mapping[ir.Value, int], level: int, most: int = MOST_VISITED) -> Cost:
        """Return what computing ``value`` in a kernel of ``level`` takes from what is stored.

        ``stored_at`` has the level of the kernel that stores each stored value; lower ones are there to read. An array
        that is stored is read as often as the operation that reads it has elements, but at most once. What takes
        ``most`` operations or more is not followed any further.
        """
        pending, read, seen = [value], dict[ir.Value, int](), {value}
        total = 0
        while pending and len(seen) < most:
            step = self._step(pending.pop())
            total += step.instructions
            for operand, size in step.operands:
                if stored_at.get(operand, level) < level:
                    read[operand] = max(read.get(operand, 0), min(size, step.elements))
                elif operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
        return Cost(sum(byte_size(each, count) for each, count in read.items()), total, len(seen))

    def _step(self, value: ir.Value) -> "_Step":
        if value not in self._steps:
            op = maker(value)
            operands = [operand for operand in op.operands if not is_immediate(operand)]
            read = tuple((each, elements(each)) for each in operands)
            step = _Step(instructions(op), _reads(op), read)
            self._steps.update(dict.fromkeys(op.results, step))
        return self._steps[value]


@dataclass(frozen=True)
class _Step:
    """An operation: instructions for an element, elements that it reads of an operand at most, and the operands.

    Each operand comes with the number of its elements.
    """

    instructions: int
    elements: int
    operands: tuple[tuple[ir.Value, int], ...]


def _reads(op: ir.Operation) -> int:
    """Return how many elements ``op`` reads of an operand at most: one for each of its own, or all that it reduces."""
    values = op.operands if op.name in CONTRACTIONS else op.results
    return max(elements(value) for value in values)


def is_immediate(value: ir.Value) -> bool:
    """Whether ``value`` is a constant, or one number in every element: no instruction and no memory is needed."""
    while not isinstance(value.owner, ir.Block) and maker(value).name == "stablehlo.broadcast_in_dim":
        value = maker(value).operands[0]
    return not isinstance(value.owner, ir.Block) and maker(value).name == "stablehlo.constant"
