"""Decides which operations of a program become which kernel, and writes the ``fusions`` level.

Which values kernels store is decided in `xgpu.fusion.grouping`; each kernel computes what else it needs from
arguments and from what was stored before. What is left to XLA stays in ``@main`` between the calls, and blocks of
control flow are planned like ``@main`` itself. Results without elements need no kernel.
"""

import math
from collections.abc import Iterable, Mapping, Sequence, Set

from xgpu import ir
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.device import DEFAULT_DEVICE, Device, device
from xgpu.dialects import attributes
from xgpu.errors import InvalidInput
from xgpu.fusion.fusion_writer import Draft, FusionCall, FusionNames, FusionWriter
from xgpu.fusion.grouping.decisions import Decision, Verdict, describe, emitted
from xgpu.fusion.grouping.families import Families, KernelFamily
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.fusion.grouping.merging.delayed_reductions import delay_reductions
from xgpu.fusion.grouping.merging.side_outputs import merge_side_outputs
from xgpu.fusion.grouping.merging.small_kernels import merge_small_kernels
from xgpu.fusion.grouping.shared_values import group_operations
from xgpu.hlo.stablehlo_builder import empty_constant, hlo
from xgpu.indexing.hlo_maps import unchanged
from xgpu.records import dataclass
from xgpu.structure import attributes_of, captured, copy_operation, terminator_of, walk

MAIN = "main"
_LOOP = "stablehlo.while"


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
        with unchanged(walk(main.operation)):
            planner.write_block(main.entry_block, copy.entry_block, values, {})
    return Plan(planned, module, planner.decisions, planner.kernels)


def _has_elements(value: ir.Value) -> bool:
    return math.prod(ir.RankedTensorType(value.type).shape) > 0


def _state_of_block(block: ir.Block, around: Mapping[ir.Value, ir.Value]) -> dict[ir.Value, ir.Value]:
    """Map results of a block to the state of a loop in whose memory XLA wants them.

    The body of a loop has its own: the arguments of the same number and type. A branch in such a body has that of the
    body, ``around``, as far as the results of the conditional are in it. In branches of branches XLA copies it, however
    it is written.
    """
    results, owner = terminator_of(block).operands, block.owner.operation
    wanted: Iterable[ir.Value | None] = block.arguments
    if owner.name != _LOOP:
        is_in_loop = owner.block.owner.operation.name == _LOOP
        wanted = [around.get(result) if is_in_loop else None for result in owner.results]
    return {
        result: state
        for result, state in reversed(list(zip(results, wanted, strict=True)))
        if state is not None and state not in owner.operands and result.type == state.type
    }


def _steps(grouping: Grouping, writer: FusionWriter) -> list[Draft | ir.Operation]:
    """Return what a block runs, in order: kernels, written, and operations that fall back to XLA."""
    fallbacks = [(level, 0, op) for level, op in grouping.fallbacks]
    groups = [(group.level, 1, group) for group in grouping.groups]
    in_order: list[tuple[int, int, Group | ir.Operation]] = sorted([*fallbacks, *groups], key=lambda each: each[:2])
    steps: list[Draft | ir.Operation] = []
    for _, _, step in in_order:
        steps += writer.write_fusions(step) if isinstance(step, Group) else [step]
    return steps


def _read_later(steps: Sequence[Draft | ir.Operation], state: Set[ir.Value]) -> list[Set[ir.Value]]:
    """Return, for each step of a block, which values of a loop's ``state`` are read by those after it."""
    found: list[Set[ir.Value]] = []
    later: Set[ir.Value] = frozenset()
    for step in reversed(steps):
        found.append(later)
        if state:
            read = step.inputs if isinstance(step, Draft) else (*step.operands, *captured(step))
            later = later | (state & frozenset(read))
    return found[::-1]


def _function(module: ir.Module, name: str) -> ir.func.FuncOp:
    for op in module.body.operations:
        if isinstance(op, ir.func.FuncOp) and ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            return op
    raise InvalidInput(f"the module has no function @{name}")


class _Order:
    """The order of what a loop's body runs, as far as XLA can tell: by what each step needs of those before it.

    It copies a state that a kernel overwrites and another reads of which it does not know that it runs before.
    """

    def __init__(self, values: Mapping[ir.Value, ir.Value]):
        self._values = values
        self._steps = 0
        # By values of the program: the steps that one follows from, and those that read it, with something they make.
        self._behind: dict[ir.Value, frozenset[int]] = {}
        self._readers: dict[ir.Value, list[tuple[int, ir.Value]]] = {}

    def note(self, read: Iterable[ir.Value], made: Sequence[ir.Value]) -> None:
        """Add a step that reads some values and makes others."""
        behind = self._behind_all(read) | {self._steps}
        self._behind |= dict.fromkeys(made, behind)
        for value in read if made else ():
            self._readers.setdefault(value, []).append((self._steps, made[0]))
        self._steps += 1

    def before(self, call: FusionCall) -> dict[ir.Value, ir.Value]:
        """Return what a kernel overwrites as it is once all steps have read it, of which XLA cannot tell otherwise."""
        behind = self._behind_all(call.inputs)
        waiting: dict[ir.Value, None] = {}
        found: dict[ir.Value, None] = {}
        for value in call.overwritten:
            for step, made in self._readers.get(value, ()):
                if step not in behind:
                    found[value] = waiting[made] = None
        if not found:
            return {}
        operands = [*found, *(value for value in waiting if value not in found)]
        barrier = hlo.OptimizationBarrierOp([self._values[value] for value in operands])
        return dict(zip(found, barrier.operation.results, strict=False))

    def _behind_all(self, values: Iterable[ir.Value]) -> frozenset[int]:
        return frozenset[int]().union(*(self._behind.get(value, ()) for value in values))


class _Planner:
    """Writes the calls of a program, block by block, and its fusions before the function ``main``."""

    def __init__(self, main: ir.Operation, families: Families, target: Device):
        self._main = main
        self._families = families
        self._target = target
        self._names = FusionNames()
        self.decisions: list[Decision] = []
        self.kernels: dict[ir.Value, str] = {}

    def write_block(
        self,
        source: ir.Block,
        target: ir.Block,
        values: dict[ir.Value, ir.Value],
        state: Mapping[ir.Value, ir.Value],
    ) -> None:
        """Write the plan of ``source`` into ``target``; ``values`` maps its arguments, and values from around it.

        ``state`` maps results of the block to the values of a loop's state in whose memory XLA will want them.
        """
        *operations, terminator = (op.operation for op in source.operations)
        results = list(terminator.operands)
        has_host = attributes.HOST in source.owner.operation.attributes
        has_xla = not has_host and target.owner != self._main
        stored = [value for value in results if _has_elements(value)]
        families = self._families
        grouping, decisions = group_operations(operations, stored, families, self._target, scalars_fall_back=has_xla)
        self.decisions += decisions
        grouping, decisions = merge_side_outputs(grouping, families, self._target)
        self.decisions += decisions
        for merge in families.merges(self._target):
            grouping, decisions = merge(grouping)
            self.decisions += decisions
        grouping, decisions = delay_reductions(grouping, state)
        self.decisions += decisions
        grouping, decisions = merge_small_kernels(grouping, families, self._target, state, has_host)
        self.decisions += decisions
        writer = FusionWriter(source, grouping, families, self._names, state)
        with ir.InsertionPoint(self._main):
            steps = _steps(grouping, writer)
        order = _Order(values)
        with ir.InsertionPoint(target):
            for step, read_later in zip(steps, _read_later(steps, set(state.values())), strict=True):
                if isinstance(step, Draft):
                    call = writer.settle(step, read_later, self._main)
                    _write_call(call, values, order.before(call) if state and not has_host else {})
                    order.note(call.inputs, call.outputs)
                    self.kernels |= dict.fromkeys(call.outputs, call.name)
                    self.decisions.append(emitted(call.outputs[0], call.emitter, call.why))
                else:
                    free = {result: each for result, each in state.items() if each not in read_later}
                    self._write_fallback(step, values, free)
                    order.note([*step.operands, *captured(step)], step.results)
            for value in results:
                if value not in values:
                    values[value] = empty_constant(ir.RankedTensorType(value.type))
            copy_operation(terminator, values)

    def _write_fallback(
        self, op: ir.Operation, values: dict[ir.Value, ir.Value], state: Mapping[ir.Value, ir.Value]
    ) -> None:
        """Copy an operation that falls back to XLA; the blocks that it runs are planned.

        ``state`` is that of the block around it, but for what is read after this operation.
        """
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
                self.write_block(block, filled, inner, _state_of_block(block, state))
                continue
            with ir.InsertionPoint(filled):
                for each in block.operations:
                    copy_operation(each.operation, inner)
        values.update(zip(op.results, copy.results, strict=True))


def _write_call(call: FusionCall, values: dict[ir.Value, ir.Value], given: Mapping[ir.Value, ir.Value]) -> None:
    """Write a call; ``values`` has what goes in, but for what is ``given`` otherwise, and gets what comes out."""
    types = [value.type for value in call.outputs]
    op = ir.func.CallOp(types, call.name, [given.get(value, values[value]) for value in call.inputs])
    values.update(zip(call.outputs, op.operation.results, strict=True))
