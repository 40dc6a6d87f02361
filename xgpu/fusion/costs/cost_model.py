"""The cost to recompute a value, in bytes of memory traffic that take as long.

Kernels are bound by memory: a value is worth storing if reading it costs less than reading all its inputs. Only long
computations count beside those reads.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from xgpu import ir
from xgpu.analysis.captures import maker
from xgpu.device import Device
from xgpu.dtypes import dtype_of_element
from xgpu.fusion.fallback import CONTRACTIONS
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import shape_of

LAUNCH_SECONDS = 2.5e-6
"""Cost of one more kernel between others, start to end: an estimate for an H200."""
BYTES_PER_INSTRUCTION = 0.07
"""Bytes of traffic that take as long as an instruction of a thread.

An H200 moves 4.2 TB/s and issues 28.7 tera-instructions a second: 0.15 bytes for each. Half of them are taken to hide
behind traffic.
"""
MOST_VISITED = 256
"""Operations after which a value is known to be expensive, and its slice is followed no further."""
LATENCY_SECONDS = 1.5e-9
"""Latency of an instruction where few threads hide it: two or three are issued in some eight cycles."""
LOAD = 8
"""Instructions that a load from a stored array costs, its index and the wait for caches included."""


@dataclass(frozen=True)
class Cost:
    """The cost to compute a value once: bytes read in all, instructions for each element, and operations."""

    bytes: int
    instructions: int
    operations: int

    def instruction_bytes(self, times: float) -> float:
        """Return the bytes of traffic that take as long as the instructions for so many elements, less one for each.

        That one is the load that reading the element would need.
        """
        return BYTES_PER_INSTRUCTION * (self.instructions - 1) * times


def bytes_per_instruction(width: int, target: Device) -> float:
    """Return the bytes that ``target`` moves while a kernel of ``width`` threads executes one instruction.

    With few threads the latency of an instruction counts, not its throughput.
    """
    return max(BYTES_PER_INSTRUCTION, LATENCY_SECONDS * target.memory_bandwidth / width)


def instructions(op: ir.Operation) -> int:
    """Return about how many instructions an element of the result of ``op`` costs."""
    if op.name in CONTRACTIONS:
        # The product of the operands' sizes has the dimensions that are summed over twice.
        return max(1, math.isqrt(math.prod(map(elements, op.operands)) // max(1, elements(op.results[0]))))
    operation = OPERATIONS.get(op.name)
    return 1 if operation is None else operation.instructions


def elements(value: ir.Value) -> int:
    """Return the number of elements of an array."""
    return math.prod(shape_of(value))


def byte_size(value: ir.Value, count: int | None = None) -> int:
    """Return the bytes of ``count`` elements of an array, by default of all."""
    bits = dtype_of_element(ir.RankedTensorType(value.type).element_type).storage_bits
    return -(-(elements(value) if count is None else count) * bits // 8)


def launch_bytes(target: Device) -> int:
    """Return the bytes that a device moves in the time of one more launch."""
    return round(LAUNCH_SECONDS * target.memory_bandwidth)


class Costs:
    """Costs of the values of a block; what is found of an operation is cached."""

    def __init__(self) -> None:
        self._steps: dict[ir.Value, _Step] = {}

    def of(self, value: ir.Value, stored_at: Mapping[ir.Value, int], level: int, most: int = MOST_VISITED) -> Cost:
        """Return the cost to compute ``value`` in a kernel of ``level`` from stored values.

        ``stored_at`` has the level of the kernel that stores each stored value; a kernel reads those of lower levels. A
        stored array is read once for each element of its consumer, but each of its elements counts once at most. The
        slice is not followed beyond ``most`` operations.
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
    """An operation's instructions for an element, the most elements that it reads of an operand, and its operands.

    Each operand comes with its number of elements.
    """

    instructions: int
    elements: int
    operands: tuple[tuple[ir.Value, int], ...]


def _reads(op: ir.Operation) -> int:
    """Return the most elements that ``op`` reads of an operand: one for each of its own, or all that it reduces."""
    values = op.operands if op.name in CONTRACTIONS else op.results
    return max(elements(value) for value in values)


def is_immediate(value: ir.Value) -> bool:
    """Whether ``value`` is a constant, or one number in every element: it costs no instruction and no memory."""
    while not isinstance(value.owner, ir.Block) and maker(value).name == "stablehlo.broadcast_in_dim":
        value = maker(value).operands[0]
    return not isinstance(value.owner, ir.Block) and maker(value).name == "stablehlo.constant"
