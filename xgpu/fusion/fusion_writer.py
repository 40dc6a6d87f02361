"""Writes a kernel's fusion: a StableHLO function of everything that the kernel computes."""

import math
import re
from collections.abc import Hashable, Mapping, Sequence, Set
from functools import partial

from xgpu import ir
from xgpu.analysis.root_indices import KernelWalk, overwritten_where_read
from xgpu.dialects import attributes
from xgpu.fusion.choice import Choice, choose
from xgpu.fusion.fallback import is_made_by_kernels
from xgpu.fusion.grouping.families import Families
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.hlo.constants import splat_of
from xgpu.hlo.source_location import source_of
from xgpu.indexing.access import shape_of
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import as_needed, copy_operation, defining_op, element_of, users_of

_LONGEST_NAME = 64
_LARGE = 1 << 12
"""Elements of a constant from which on comparing its text takes too long, unless all are one number."""


@dataclass(frozen=True)
class FusionCall:
    """A written fusion: its name, its emitter and the reason for it, and the program's values that go in and out.

    ``overwritten`` are those that go in whose memory takes what goes out.
    """

    name: str
    emitter: str
    why: Reason
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    overwritten: tuple[ir.Value, ...]


@dataclass(frozen=True)
class _Written:
    """A function of a fusion, or of a part of one, with the values that it is given.

    ``aliased`` has the value whose memory each result takes over, if any; ``must`` says that the kernel updates it.
    """

    function: ir.func.FuncOp
    inputs: Sequence[ir.Value]
    aliased: Sequence[ir.Value | None]
    must: bool

    def without(self, read_later: Set[ir.Value]) -> Sequence[ir.Value | None]:
        """Return ``aliased`` without what is only better overwritten, and read later."""
        return [None if value in read_later and not self.must else value for value in self.aliased]


@dataclass(frozen=True)
class Draft:
    """A written fusion without a name, before it is known which kernels run after it: its function and its parts."""

    function: ir.func.FuncOp
    parts: Sequence[_Written]
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

    def settle(self, function: ir.func.FuncOp, parts: Sequence[ir.func.FuncOp] = ()) -> str:
        """Name ``function`` and the ``parts`` that it calls, or erase them if equal ones exist; return the name."""
        key: Hashable = object()
        if not any(map(_has_large_constant, (function, *parts))):
            # Local scope: values are numbered from 0 in every function.
            key = tuple(
                each.operation.get_asm(use_local_scope=True, assume_verified=True) for each in (function, *parts)
            )
        if key in self._names:
            for each in (function, *parts):
                each.operation.erase()
            return self._names[key]
        name = self._names[key] = f"{_function_around(function)}fusion_{len(self._names)}"
        function.operation.attributes["sym_name"] = ir.StringAttr.get(name)
        for number, (part, call) in enumerate(zip(parts, function.entry_block.operations, strict=False)):
            part.operation.attributes["sym_name"] = ir.StringAttr.get(f"{name}_part_{number}")
            call.operation.attributes["callee"] = ir.FlatSymbolRefAttr.get(f"{name}_part_{number}")
        return name


def _has_large_constant(function: ir.func.FuncOp) -> bool:
    *operations, _ = (op.operation for op in function.entry_block.operations)
    constants = (op for op in operations if op.name == "stablehlo.constant")
    return any(math.prod(shape_of(op.results[0])) > _LARGE and splat_of(op) is None for op in constants)


def _function_around(function: ir.func.FuncOp) -> str:
    """Return the user's function that computes the last value, for the kernel's name, which profilers show."""
    *operations, _ = (op.operation for op in function.entry_block.operations)
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

    def write_fusions(self, group: Group) -> list[Draft]:
        """Write the kernels of a group, one for each choice of an emitter."""
        if group.parts:
            return [self._write_parts(group)]
        return [self._write_kernel(group, choice) for choice in self._choices(group)]

    def settle(self, draft: Draft, read_later: Set[ir.Value], main: ir.Operation) -> FusionCall:
        """Name a fusion, and put its functions before ``main``.

        It overwrites no loop state that is ``read_later``: XLA would copy it twice for that.
        """
        for part in draft.parts:
            _set_aliases(part.function, part.inputs, part.without(read_later))
        functions = [part.function for part in draft.parts]
        for each in dict.fromkeys((*functions, draft.function)):
            each.operation.move_before(main)
        aliased = [value for part in draft.parts for value in part.without(read_later)]
        if functions != [draft.function]:
            _set_aliases(draft.function, draft.inputs, aliased)
        name = self._names.settle(draft.function, [each for each in functions if each != draft.function])
        overwritten = tuple(value for value in aliased if value is not None)
        return FusionCall(name, draft.emitter, draft.why, draft.inputs, draft.outputs, overwritten)

    def _choices(self, group: Group) -> list[Choice]:
        return choose(group, self._families, lambda value: self._grouping.stored_before(value, group.level))

    def _write_kernel(self, group: Group, choice: Choice) -> Draft:
        aliased: Sequence[ir.Value | None] = choice.aliased
        if not choice.family.must_alias:
            aliased = self._written_in_place([_walk(choice)], group.level)
        written = self._write(group, choice, aliased)
        inputs = tuple(written.inputs)
        return Draft(written.function, [written], choice.family.name, choice.why, inputs, choice.roots)

    def _write_parts(self, group: Group) -> Draft:
        """Write a kernel of parts: a function that calls theirs."""
        family = group.kind.family
        choices = [choice for part in group.parts for choice in self._choices(part)]
        aliased = iter(self._written_in_place([_walk(choice) for choice in choices], group.level))
        written = []
        for part, choice in zip(group.parts, choices, strict=True):
            updated = [next(aliased) for _ in choice.roots]
            written.append(self._write(part, choice, choice.aliased if choice.family.must_alias else updated))
        inputs = sorted({value: None for each in written for value in each.inputs}, key=self._order)
        function = _function(family.name, inputs, group.roots)
        copies = dict(zip(inputs, function.add_entry_block().arguments, strict=True))
        with ir.InsertionPoint(function.entry_block):
            results: list[ir.Value] = []
            for each in written:
                types = [value.type for value in list(each.function.entry_block.operations)[-1].operation.operands]
                with _location(each.function):
                    call = ir.func.CallOp(types, each.function.name.value, [copies[value] for value in each.inputs])
                results += call.operation.results
            ir.func.return_(results)
        return Draft(function, written, family.name, family.why, tuple(inputs), group.roots)

    def _write(self, group: Group, choice: Choice, aliased: Sequence[ir.Value | None]) -> _Written:
        """Write the function of a fusion; ``aliased`` has the value whose memory each root takes over."""
        roots = choice.roots
        kept = {value for value in choice.aliased if value is not None}
        if choice.family.reads_memory:
            kept |= {operand for hero in choice.heroes for operand in hero.operands}
        operations, inputs = self._needed(group, roots, kept)
        function = _function(choice.family.name, inputs, roots)
        parameters = dict(zip(inputs, function.add_entry_block().arguments, strict=True))
        copies = dict(parameters)
        with ir.InsertionPoint(function.entry_block):
            for op in operations:
                copy = copy_operation(op, copies)
                # Another result of a parameter's maker is computed here: the parameter is read as it is in memory.
                copies.update((value, parameters[value]) for value in op.results if value in parameters)
                if op in choice.heroes:
                    copy.attributes[attributes.HERO] = ir.UnitAttr.get()
                if _is_only_rounded(op):
                    copy.attributes[attributes.GRADE] = attributes.int_attribute(16)
            ir.func.return_([copies[value] for value in roots])
        return _Written(function, inputs, aliased, choice.family.must_alias)

    def _written_in_place(self, parts: Sequence[KernelWalk], level: int) -> list[ir.Value | None]:
        """Return, for each root of a kernel's parts, the loop state that it may overwrite: that whose next value it is.

        XLA would otherwise copy the root there. A thread may overwrite it if it reads no element of the state but those
        that it writes, and no other part of the kernel reads the state.
        """
        found = [self._state.get(root) for part in parts for root in part.roots]
        stored = partial(self._grouping.stored_before, level=level)
        kept = overwritten_where_read(parts, found, stored)
        aliased: list[ir.Value | None] = []
        for value in found:
            aliased.append(value if value is not None and value in kept else None)
            kept.discard(value)
        return aliased

    def _needed(
        self, group: Group, roots: Sequence[ir.Value], kept: set[ir.Value]
    ) -> tuple[list[ir.Operation], list[ir.Value]]:
        """Return the backward slice of ``roots`` in topological order, and the values it starts from, arguments first.

        Every kernel makes constants for itself, but for those that XLA has, and those that are stored to be updated, or
        to be read as they are in memory: ``kept``.
        """
        inputs: dict[ir.Value, None] = {}

        def is_given(value: ir.Value) -> bool:
            stored = self._grouping.stored_before(value, group.level)
            if stored and (value in kept or not is_made_by_kernels(value)):
                inputs[value] = None
                return True
            return False

        operations = as_needed(roots, is_given)
        return operations, sorted(inputs, key=self._order)

    def _order(self, value: ir.Value) -> tuple[int, int, int]:
        if value in self._argument:
            return 0, self._argument[value], 0
        op = defining_op(value)
        if op is None or op not in self._position:
            # Of a block around this one; the order in which such values were met is that of the program.
            return 1, 0, 0
        return 2, self._position[op], ir.OpResult(value).result_number


def _function(emitter: str, inputs: Sequence[ir.Value], roots: Sequence[ir.Value]) -> ir.func.FuncOp:
    """Return the function of a fusion, which has no body yet."""
    type_ = ir.FunctionType.get([value.type for value in inputs], [value.type for value in roots])
    function = ir.func.FuncOp("fusion", type_, visibility="private")  # type: ignore[call-arg]
    function.operation.attributes[attributes.EMITTER] = ir.StringAttr.get(emitter)
    return function


def _set_aliases(function: ir.func.FuncOp, inputs: Sequence[ir.Value], aliased: Sequence[ir.Value | None]) -> None:
    if any(value is not None for value in aliased):
        positions = tuple(-1 if value is None else inputs.index(value) for value in aliased)
        function.operation.attributes[attributes.ALIASES] = attributes.int_array(positions)


def _location(function: ir.func.FuncOp) -> ir.Location:
    """Return where the last value of a function is computed."""
    *_, end = (op.operation for op in function.entry_block.operations)
    last = defining_op(end.operands[-1])
    return end.location if last is None else last.location


def _walk(choice: Choice) -> KernelWalk:
    """Return what the blocks of a kernel, or of a part, compute, and which heroes' operands they walk."""
    return KernelWalk(choice.roots, choice.heroes if choice.family.is_cooperative else ())


def _is_only_rounded(op: ir.Operation) -> bool:
    """Whether a quotient of f32 is only ever rounded to bf16."""
    if op.name != "stablehlo.divide" or not isinstance(element_of(op.results[0]), ir.F32Type):
        return False
    users = users_of(op.results[0])
    return all(
        user.name == "stablehlo.convert" and isinstance(element_of(user.results[0]), ir.BF16Type) for user in users
    )
