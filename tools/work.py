"""The work of a plan beside the least that its program can be done with, and how much of it a plan may have.

Both count instructions for elements as `xgpu.costs.values` estimates them, what an operation only moves for
none. The *least work* computes every operation of the normalised program once for each element of its result; the work
of a plan is what its kernels compute, as `xgpu.costs.evaluations` finds it. A loop's body is taken to run
once.
"""

from dataclasses import dataclass

from xgpu import ir
from xgpu.analysis.control_flow import planned_blocks
from xgpu.costs.time import bytes_per_instruction, launch_bytes
from xgpu.costs.values import Weight, byte_size, element_work, elements, instructions
from xgpu.device import DEFAULT_DEVICE, Device
from xgpu.dialects.attributes import EMITTER
from xgpu.interface.kernel_work import fusion_work
from xgpu.passes.framework.base import function_name, functions
from xgpu.structure import callees, walk

MOST_REPEATED = 4
"""Multiple of the least work that a plan may do, besides what is worth its time."""


@dataclass(frozen=True)
class Work:
    """The least work of a program, that of its plan, and what that may be."""

    least: float
    planned: float
    bound: float


def work_of(program: ir.Module, planned: ir.Module) -> Work:
    """Return the work of a normalised program and of its plan, a module of level ``fusions``."""
    target = DEFAULT_DEVICE.device
    named = {function_name(each): each.operation for each in functions(planned)}
    each = {name: fusion_work(op, instructions) for name, op in named.items() if EMITTER in op.attributes}
    worth = {name: _worth(named[name], target) for name in each}
    launches = _launches(named["main"])
    least = _least(program, instructions)
    bound = MOST_REPEATED * least + sum(worth[name] for name in launches)
    return Work(least, sum(each[name] for name in launches), bound)


def planned_operations(planned: ir.Module) -> list[float]:
    """Return for each launch of a plan how many operations its kernel computes, each counted as one."""
    named = {function_name(each): each.operation for each in functions(planned)}
    each = {name: fusion_work(op, lambda _: 1) for name, op in named.items() if EMITTER in op.attributes}
    return [each[name] for name in _launches(named["main"])]


def _launches(main: ir.Operation) -> list[str]:
    return [ir.FlatSymbolRefAttr(call.attributes["callee"]).value for call in walk(main, "func.call")]


def _least(program: ir.Module, weight: Weight) -> float:
    (main,) = (each for each in functions(program) if function_name(each) == "main")
    operations = (op.operation for block in planned_blocks(main.entry_block) for op in block.operations)
    return sum(element_work(op, weight) * max(map(elements, op.results), default=0) for op in operations)


def _worth(fusion: ir.Operation, target: Device) -> float:
    """Return the instructions that take as long as one more launch, and as writing and reading the largest value.

    That is the planner's rule: a value is computed again only where that costs less than storing it would. It looks at
    each value with all that it is computed from, so a kernel's last such value stands for those before it.
    """
    if parts := callees(fusion):
        return sum(_worth(part, target) for part in parts)
    *operations, terminator = (op.operation for op in fusion.regions[0].blocks[0].operations)
    width = max(map(elements, terminator.operands), default=1)
    largest = max((byte_size(value) for op in operations for value in op.results), default=0)
    return (launch_bytes(target) + 2 * largest) / bytes_per_instruction(target, max(1, width))
