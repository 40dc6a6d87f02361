"""Writes a kernel's fusion: a StableHLO function of everything that the kernel computes."""

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xgpu import ir
from xgpu.analysis.root_indices import overwritten_where_read
from xgpu.dialects import attributes
from xgpu.fusion.choice import Choice, choose
from xgpu.fusion.grouping.families import Families
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.hlo.source_location import source_of
from xgpu.indexing.access import shape_of
from xgpu.reasons import Reason
from xgpu.structure import captured, copy_operation, defining_op, element_of, is_constant, producer, users_of

_LONGEST_NAME = 64
_LARGE = 1 << 12
"""Elements of a constant from which on comparing its text takes too long."""


@dataclass(frozen=True)
class Call:
    """A written fusion: its name, its emitter and the reason for it, and the program's values that go in and out."""

    name: str
    emitter: str
    why: Reason
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]


class FusionNames:
    """Names the fusions of a program, and keeps one function for all that are equal.

    The layers of a network often are equal: each kernel is compiled once for all of them. Its locations are those of
    the first, as every layer has source lines of its own in text.
    """

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}

    def settle(self, function: ir.func.FuncOp) -> str:
        """Name ``function``, or erase it if an equal one exists; return the name."""
        *operations, _ = (op.operation for op in function.entry_block.operations)
        key: Hashable = object()
        if not any(is_constant(op.results[0]) and math.prod(shape_of(op.results[0])) > _LARGE for op in operations):
            # Local scope: values are numbered from 0 in every function.
            key = function.operation.get_asm(use_local_scope=True, assume_verified=True)
        if key in self._names:
            function.operation.erase()
        else:
            self._names[key] = f"{_function_around(operations)}fusion_{len(self._names)}"
            function.operation.attributes["sym_name"] = ir.StringAttr.get(self._names[key])
        return self._names[key]


def _function_around(operations: Sequence[ir.Operation]) -> str:
    """Return the user's function that computes the last value, for the kernel's name, which profilers show."""
    source = source_of(operations[-1]) if operations else None
    qualified = source.function if source else ""
    name = re.sub(r"\W+", "_", qualified.rpartition("<locals>")[2], flags=re.ASCII).strip("_")
    return f"{name[:_LONGEST_NAME]}_" if name else ""


class FusionWriter:
    """Writes the functions of the fusions of one block, at the current insertion point."""

    def __init__(
        self,
        block: ir.Block,
        grouping: Grouping,
        families: Families,
        names: FusionNames,
        state: Mapping[ir.Value, ir.Value],
    ):
        """Write fusions of ``block``; ``state`` maps results to the arguments whose memory they should reuse."""
        self._grouping = grouping
        self._families = families
        self._state = state
        self._position = {op.operation: number for number, op in enumerate(block.operations)}
        self._argument: dict[ir.Value, int] = {argument: number for number, argument in enumerate(block.arguments)}
        self._names = names

    def write_fusions(self, group: Group) -> list[Call]:
        """Write the kernels of a group, one for each choice of an emitter."""
        choices = choose(group, self._families, lambda value: self._grouping.stored_before(value, group.level))
        return [self._write(group, each) for each in choices]

    def _write(self, group: Group, choice: Choice) -> Call:
        emitter, roots = choice.family.name, choice.roots
        aliased: Sequence[ir.Value | None] = choice.aliased
        kept = {value for value in aliased if value is not None}
        if choice.family.reads_memory:
            kept |= {operand for hero in choice.heroes for operand in hero.operands}
        operations, inputs = self._needed(group, roots, kept)
        if not choice.family.is_cooperative:
            aliased = self._written_in_place(group, roots)
        type_ = ir.FunctionType.get([value.type for value in inputs], [value.type for value in roots])
        function = ir.func.FuncOp("fusion", type_, visibility="private")  # type: ignore[call-arg]
        function.operation.attributes[attributes.EMITTER] = ir.StringAttr.get(emitter)
        if any(value is not None for value in aliased):
            positions = tuple(-1 if value is None else inputs.index(value) for value in aliased)
            function.operation.attributes[attributes.ALIASES] = attributes.int_array(positions)
        copies = dict(zip(inputs, function.add_entry_block().arguments, strict=True))
        with ir.InsertionPoint(function.entry_block):
            for op in operations:
                copy = copy_operation(op, copies)
                if op in choice.heroes:
                    copy.attributes[attributes.HERO] = ir.UnitAttr.get()
                if _is_only_rounded(op):
                    copy.attributes[attributes.GRADE] = attributes.int_attribute(16)
            ir.func.return_([copies[value] for value in roots])
        return Call(self._names.settle(function), emitter, choice.why, tuple(inputs), roots)

    def _written_in_place(self, group: Group, roots: Sequence[ir.Value]) -> list[ir.Value | None]:
        """Return, for each root of a loop, the loop state that it may overwrite: the one whose next value it is.

        XLA would otherwise copy the root there. A thread may overwrite it if it reads no element of the state but those
        that it writes, and no other part of the kernel reads the state.
        """
        found = [self._state.get(root) for root in roots]
        stored = partial(self._grouping.stored_before, level=group.level)
        kept = overwritten_where_read(roots, found, stored)
        aliased: list[ir.Value | None] = []
        for value in found:
            aliased.append(value if value is not None and value in kept else None)
            kept.discard(value)
        return aliased

    def _needed(
        self, group: Group, roots: Sequence[ir.Value], kept: set[ir.Value]
    ) -> tuple[list[ir.Operation], list[ir.Value]]:
        """Return the backward slice of ``roots`` in topological order, and the values it starts from, arguments first.

        An operation comes right before the first that needs it, wherever it is in the program: equal layers, of which
        the first makes the constants of all, have equal functions. Every kernel makes constants for itself, but for
        those that are stored to be updated, or to be read as they are in memory: ``kept``.
        """
        operations: dict[ir.Operation, None] = {}
        inputs: dict[ir.Value, None] = {}
        met: set[ir.Operation] = set()
        pending: list[ir.Value | ir.Operation] = list(reversed(roots))
        while pending:
            each = pending.pop()
            if isinstance(each, ir.Operation):
                operations[each] = None
            elif self._grouping.stored_before(each, group.level) and (each in kept or not is_constant(each)):
                inputs[each] = None
            elif producer(each) not in met:
                op = producer(each)
                met.add(op)
                pending.append(op)
                pending += reversed((*op.operands, *captured(op)))
        return list(operations), sorted(inputs, key=self._order)

    def _order(self, value: ir.Value) -> tuple[int, int, int]:
        if value in self._argument:
            return 0, self._argument[value], 0
        op = defining_op(value)
        if op is None or op not in self._position:
            # Of a block around this one; the order in which such values were met is that of the program.
            return 1, 0, 0
        return 2, self._position[op], ir.OpResult(value).result_number


def _is_only_rounded(op: ir.Operation) -> bool:
    """Whether a quotient of f32 is only ever rounded to bf16."""
    if op.name != "stablehlo.divide" or not isinstance(element_of(op.results[0]), ir.F32Type):
        return False
    users = users_of(op.results[0])
    return all(
        user.name == "stablehlo.convert" and isinstance(element_of(user.results[0]), ir.BF16Type) for user in users
    )
