"""Decides which operations of a program become which kernel, and writes the ``fusions`` level.

Which values kernels store is decided in `xgpu.fusion.grouping`; each kernel computes what else it needs from
arguments and from what was stored before. What is left to XLA stays in ``@main`` between the calls, and blocks of
control flow are planned like ``@main`` itself. Results without elements need no kernel.
"""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from xgpu import ir
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.device import DEFAULT_DEVICE, Device, device
from xgpu.dialects import attributes
from xgpu.errors import InvalidInput
from xgpu.fusion.fusion_writer import Call, FusionNames, FusionWriter
from xgpu.fusion.grouping.decisions import Decision, Verdict, describe, emitted
from xgpu.fusion.grouping.families import Families, KernelFamily
from xgpu.fusion.grouping.groups import Group
from xgpu.fusion.grouping.shared_values import group_operations
from xgpu.fusion.grouping.side_outputs import merge_side_outputs
from xgpu.fusion.grouping.small_kernels import merge_small_kernels
from xgpu.hlo.stablehlo_builder import empty_constant
from xgpu.structure import attributes_of, captured, copy_operation, terminator_of

MAIN = "main"


def plan(module: ir.Module, families: Iterable[KernelFamily], target: Device | None = None) -> ir.Module:
    """Return a module of level ``fusions`` for one of level ``prepared``: ``@main`` calls one function per fusion.

    ``families`` are those of the kernels that there may be, in the order in which they are asked.
    """
    return make_plan(module, families, target).module


@dataclass(frozen=True)
class Plan:
    """A module of level ``fusions``, and why it is as it is.

    The decisions are on values of ``program``, of level ``prepared``; ``kernels`` names the kernel of each stored one.
    """

    module: ir.Module
    program: ir.Module
    decisions: Sequence[Decision]
    kernels: Mapping[ir.Value, str]

    def why(self, verdicts: Set[Verdict] = frozenset(Verdict)) -> list[str]:
        """Return a line for each decision of the ``verdicts``, in the order in which they were taken."""
        with self.module.context:
            return describe((each for each in self.decisions if each.verdict in verdicts), self.kernels)


def make_plan(module: ir.Module, families: Iterable[KernelFamily], target: Device | None = None) -> Plan:
    """Return the plan that `plan` makes, with the decisions that led to it."""
    with module.context, ir.Location.unknown():
        target = target or device(DEFAULT_DEVICE)
        main = _function(module, MAIN)
        planned = ir.Module.create()
        planned.operation.attributes[attributes.LEVEL] = ir.StringAttr.get("fusions")
        with ir.InsertionPoint(planned.body):
            copy = ir.func.FuncOp(MAIN, main.type)
        values = dict(zip(main.entry_block.arguments, copy.add_entry_block().arguments, strict=True))
        planner = _Planner(copy.operation, Families(families), target)
        planner.write_block(main.entry_block, copy.entry_block, values)
    return Plan(planned, module, planner.decisions, planner.kernels)


def _has_elements(value: ir.Value) -> bool:
    return math.prod(ir.RankedTensorType(value.type).shape) > 0


def _state(block: ir.Block) -> dict[ir.Value, ir.Value]:
    """Map results of a loop's body to the arguments of the same number and type: XLA keeps both in one memory."""
    if block.owner.operation.name != "stablehlo.while":
        return {}
    pairs = zip(terminator_of(block).operands, block.arguments, strict=True)
    return {result: argument for result, argument in reversed(list(pairs)) if result.type == argument.type}


def _function(module: ir.Module, name: str) -> ir.func.FuncOp:
    for op in module.body.operations:
        if isinstance(op, ir.func.FuncOp) and ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            return op
    raise InvalidInput(f"the module has no function @{name}")


class _Planner:
    """Writes the calls of a program, block by block, and its fusions before the function ``main``."""

    def __init__(self, main: ir.Operation, families: Families, target: Device):
        self._main = main
        self._families = families
        self._target = target
        self._names = FusionNames()
        self.decisions: list[Decision] = []
        self.kernels: dict[ir.Value, str] = {}

    def write_block(self, source: ir.Block, target: ir.Block, values: dict[ir.Value, ir.Value]) -> None:
        """Write the plan of ``source`` into ``target``; ``values`` maps its arguments, and values from around it."""
        *operations, terminator = (op.operation for op in source.operations)
        results = list(terminator.operands)
        is_main = target.owner == self._main
        stored = [value for value in results if _has_elements(value)]
        families = self._families
        grouping, decisions = group_operations(
            operations, stored, families, self._target, scalars_fall_back=not is_main
        )
        self.decisions += decisions
        for merge in (merge_side_outputs, *families.merges(self._target)):
            grouping, decisions = merge(grouping)
            self.decisions += decisions
        state = {} if is_main else _state(source)
        grouping, decisions = merge_small_kernels(grouping, families, self._target, state)
        self.decisions += decisions
        writer = FusionWriter(source, grouping, families, self._names, state)
        steps: list[tuple[int, int, Group | ir.Operation]] = [(level, 0, op) for level, op in grouping.fallbacks]
        steps += [(group.level, 1, group) for group in grouping.groups]
        with ir.InsertionPoint(target):
            for _, _, step in sorted(steps, key=lambda each: each[:2]):
                if isinstance(step, Group):
                    with ir.InsertionPoint(self._main):
                        calls = writer.write_fusions(step)
                    for call in calls:
                        _write_call(call, values)
                        self.kernels |= dict.fromkeys(call.outputs, call.name)
                        self.decisions.append(emitted(call.outputs[0], call.emitter, call.why))
                else:
                    self._write_fallback(step, values)
            for value in results:
                if value not in values:
                    values[value] = empty_constant(ir.RankedTensorType(value.type))
            copy_operation(terminator, values)

    def _write_fallback(self, op: ir.Operation, values: dict[ir.Value, ir.Value]) -> None:
        """Copy an operation that falls back to XLA; the blocks that it runs are planned."""
        for value in (*op.operands, *captured(op)):
            if value not in values and not _has_elements(value):
                values[value] = empty_constant(ir.RankedTensorType(value.type))
        if op.name not in CONTROL_FLOW:
            copy_operation(op, values)
            return
        copy = ir.Operation.create(
            op.name,
            results=[result.type for result in op.results],
            operands=[values[operand] for operand in op.operands],
            attributes=attributes_of(op),
            regions=len(op.regions),
            loc=op.location,
        )
        planned = CONTROL_FLOW[op.name]
        for number, (region, new) in enumerate(zip(op.regions, copy.regions, strict=True)):
            (block,) = region.blocks
            filled = new.blocks.append(*(argument.type for argument in block.arguments))
            inner = values | dict(zip(block.arguments, filled.arguments, strict=True))
            if planned is None or number in planned:
                self.write_block(block, filled, inner)
                continue
            with ir.InsertionPoint(filled):
                for each in block.operations:
                    copy_operation(each.operation, inner)
        values.update(zip(op.results, copy.results, strict=True))


def _write_call(call: Call, values: dict[ir.Value, ir.Value]) -> None:
    types = [value.type for value in call.outputs]
    op = ir.func.CallOp(types, call.name, [values[value] for value in call.inputs])
    values.update(zip(call.outputs, op.operation.results, strict=True))
