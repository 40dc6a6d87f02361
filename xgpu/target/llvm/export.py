"""Export of an ``llvm``-level module (LLVM and NVVM dialects) as LLVM IR text.

jaxlib's bindings have no exporter, so this is one: a single walk over the operations, linear in their number.

The bindings cannot read or set the overflow and no-wrap flags of ``llvm.add``, ``llvm.getelementptr`` and their
like. Flags that were parsed are therefore read from the operation as MLIR prints it, and passes written in
Python state flags in the discardable string attribute ``xgpu.flags`` (``"nsw nuw"``, ``"inbounds nuw"``).
"""

import io
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from xgpu import ir
from xgpu.errors import CompilerError
from xgpu.hlo.source_location import source_of
from xgpu.structure import producer
from xgpu.target.llvm.functions import function_attributes, function_header, linkage
from xgpu.target.llvm.ops import Instruction, instruction_for
from xgpu.target.llvm.types import TypePrinter, Value, constant, large_table, quote, symbol

# Operations whose results are constants: written at their uses, not as instructions.
_CONSTANTS = {
    "llvm.mlir.constant",
    "llvm.mlir.zero",
    "llvm.mlir.undef",
    "llvm.mlir.poison",
    "llvm.mlir.addressof",
}
_WRAP_FLAGS = {"llvm.add", "llvm.sub", "llvm.mul", "llvm.shl", "llvm.trunc"}
_PRINTED_FLAGS = re.compile(r"%\S+ = llvm\.(?:getelementptr ([a-z|]+) %|\w+ %[^ ,]+(?:, %\S+)? overflow<([a-z, ]+)>)")
_FLAG_WORDS = {"nsw", "nuw", "inbounds", "nusw"}


NVPTX_TRIPLE = "nvptx64-nvidia-cuda"
NVPTX_DATA_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"


def export_llvm_ir(
    module: ir.Module,
    triple: str = NVPTX_TRIPLE,
    data_layout: str | None = NVPTX_DATA_LAYOUT,
    instructions: Mapping[str, Instruction] = MappingProxyType({}),
) -> str:
    """Return the LLVM IR text of an ``llvm``-level module for a target triple.

    A function marked ``xgpu.kernel`` becomes a ``ptx_kernel`` with its block size as ``nvvm.reqntid`` if the triple
    is NVPTX; for any other triple it becomes an ``internal alwaysinline`` function for a driver to call. Hints that
    LLVM may ignore (alias scopes, access groups, TBAA) are left out. ``instructions`` says how further operations, of
    other dialects, are written. Raises CompilerError for an operation, type
    or attribute that has no LLVM IR form here.
    """
    return _ModuleWriter(triple, data_layout, instructions).write(module)


class _ModuleWriter:
    """Collects the parts of one module: globals and functions, and what they need declared."""

    def __init__(self, triple: str, data_layout: str | None, instructions: Mapping[str, Instruction]):
        self.types = TypePrinter()
        self.instructions = instructions
        self.is_nvptx = triple.startswith("nvptx")
        self._header = [f"target triple = {quote(triple)}"]
        if data_layout:
            self._header.insert(0, f"target datalayout = {quote(data_layout)}")
        self._defined: set[str] = set()
        self._declarations: dict[str, str] = {}
        self._metadata: list[str] = []
        self._metadata_ids: dict[str, int] = {}

    def write(self, module: ir.Module) -> str:
        """Return the text of the whole module."""
        parts: list[str] = []
        for op in module.body.operations:
            operation = op.operation
            if operation.name == "llvm.mlir.global":
                parts.append(self._global(operation))
            elif operation.name == "llvm.func":
                parts.append(self._function(operation))
            else:
                raise _located(
                    operation, CompilerError("expected llvm.func or llvm.mlir.global in a module of level 'llvm'")
                )
        declared = [text for name, text in self._declarations.items() if name not in self._defined]
        nodes = [f"!{index} = {node}" for index, node in enumerate(self._metadata)]
        sections = ["\n".join(self._header), *parts, "\n".join(declared), "\n".join(nodes)]
        return "\n\n".join(section for section in sections if section) + "\n"

    def declare(self, name: str, result: str, parameters: list[str]) -> None:
        """Declare an intrinsic, unless the module declares it itself."""
        if name.startswith("llvm.nvvm.") and not self.is_nvptx:
            raise CompilerError(f"'{name}' exists on NVIDIA GPUs only, not on the triple this is exported for")
        if name not in self._declarations:
            self._declarations[name] = f"declare {result} {symbol(name)}({', '.join(parameters)})"

    def metadata(self, body: str) -> str:
        """Return the ``!N`` of the metadata node ``!{body}``, shared between its users."""
        index = self._metadata_ids.get(body)
        if index is None:
            index = self._metadata_ids[body] = len(self._metadata)
            self._metadata.append(f"!{{{body}}}")
        return f"!{index}"

    def loop_metadata(self, annotation: ir.Attribute) -> str:
        """Return the ``!N`` of a new distinct loop node: equal annotations on two loops are two nodes."""
        properties = [self.metadata(body) for body in _loop_properties(str(annotation))]
        index = len(self._metadata)
        self._metadata.append(f"distinct !{{{', '.join([f'!{index}', *properties])}}}")
        return f"!{index}"

    def _global(self, op: ir.Operation) -> str:
        try:
            return self._global_text(op)
        except CompilerError as error:
            raise _located(op, error) from error

    def _global_text(self, op: ir.Operation) -> str:
        attributes = op.attributes
        type_ = attributes["global_type"].value  # type: ignore[attr-defined]
        words = [linkage(op)]
        table = large_table(attributes.get("value"))
        initializer = _initializer(op, type_, self.types) if table is None else ""
        if initializer is None and words[0] == "external":
            initializer = ""
        elif initializer is None:
            initializer = " poison"
        elif words[0] == "external":
            words[0] = ""
        visibility = _enum(op, "unnamed_addr")
        words += [("", "local_unnamed_addr", "unnamed_addr")[visibility]]
        space = _enum(op, "addr_space")
        words += [f"addrspace({space})" if space else "", "constant" if "constant" in attributes else "global"]
        if "thread_local_" in attributes:
            raise CompilerError("a thread-local global is not supported")
        alignment = f", align {_enum(op, 'alignment')}" if "alignment" in attributes else ""
        section = attributes.get("section")
        placed = f", section {quote(section.value)}" if section is not None else ""  # type: ignore[attr-defined]
        name = attributes["sym_name"].value  # type: ignore[attr-defined]
        prefix = " ".join(word for word in words if word)
        typed = f"{self.types(type_)}{initializer}" if table is None else table
        return f"{symbol(name)} = {prefix} {typed}{placed}{alignment}"

    def _function(self, op: ir.Operation) -> str:
        name: str = op.attributes["sym_name"].value  # type: ignore[attr-defined]
        self._defined.add(name)
        blocks = list(op.regions[0].blocks)
        try:
            attributes = function_attributes(op, self.is_nvptx)
            header = function_header(op, self.types, bool(blocks), self.is_nvptx)
        except CompilerError as error:
            raise _located(op, error) from error
        if not blocks:
            return f"declare {header}{attributes}"
        body = "\n".join(_FunctionWriter(self, op, blocks).lines())
        return f"define {header}{attributes} {{\n{body}\n}}"


class _FunctionWriter:
    """Writes the blocks of one function; implements ``ops.Writer``."""

    def __init__(self, module: _ModuleWriter, function: ir.Operation, blocks: list[ir.Block]):
        self.types = module.types
        self.declare = module.declare
        self.metadata = module.metadata
        self.loop_metadata = module.loop_metadata
        self._instructions = module.instructions
        self._blocks = blocks
        self._labels = {block: f"bb{index}" for index, block in enumerate(blocks)}
        self._names: dict[Value, str] = {}
        self._operations = [[op.operation for op in block.operations] for block in blocks]
        self._names_of_ops = [[op.name for op in operations] for operations in self._operations]
        self._function = function
        self._targets: list[str] = []
        self._name_values()

    def value(self, value: Value) -> str:
        """Return an operand's text without its type."""
        return self._names[value]

    def typed(self, value: Value) -> str:
        """Return an operand's text with its type."""
        return f"{self.types(value.type)} {self._names[value]}"

    def targets(self) -> list[str]:
        """Return the labels that the current block's terminator branches to."""
        return self._targets

    def flags(self, op: ir.Operation) -> str:
        """Return overflow or no-wrap flags: those of ``xgpu.flags``, else the operation's own."""
        stated = op.attributes.get("xgpu.flags")
        if stated is not None:
            words: str = stated.value  # type: ignore[attr-defined]
            if not _FLAG_WORDS.issuperset(words.split()):
                raise CompilerError(f'unknown word in xgpu.flags = "{words}"')
            return f"{words} " if words else ""
        printed = io.StringIO()
        op.print(self._printing, printed)
        found = _PRINTED_FLAGS.match(printed.getvalue())
        if found is None:
            return ""
        given = re.findall("[a-z]+", found[1] or found[2])
        order = ("nuw", "nsw") if op.name in _WRAP_FLAGS else ("inbounds", "nusw", "nuw")
        return "".join(f"{word} " for word in order if word in given)

    @cached_property
    def _printing(self) -> ir.AsmState:
        """The function's values, numbered once for all operations that are printed."""
        return ir.AsmState(self._function, use_local_scope=True)

    def lines(self) -> Iterator[str]:
        """Yield the function's body, line by line."""
        incoming = self._incoming()
        for index, (block, operations) in enumerate(zip(self._blocks, self._operations, strict=True)):
            yield f"{self._labels[block]}:"
            for position, argument in enumerate(block.arguments if index else ()):
                pairs = ", ".join(f"[ {values[position]}, %{label} ]" for label, values in incoming[block])
                yield f"  {self._names[argument]} = phi {self.types(argument.type)} {pairs}"
            *_, terminator = operations
            self._targets = [label for label, _, _ in self._edges(block, terminator)]
            for op, name in zip(operations, self._names_of_ops[index], strict=True):
                if name not in _CONSTANTS:
                    yield self._instruction(op, name)
            for label, successor, is_split in self._edges(block, terminator):
                if is_split:
                    yield f"{label}:\n  br label %{self._labels[successor]}"

    def _instruction(self, op: ir.Operation, name: str) -> str:
        write = instruction_for(name) or self._instructions.get(name)
        if write is None:
            raise _located(op, CompilerError("no LLVM IR form is known for this operation"))
        try:
            text = write(self, op)
        except CompilerError as error:
            raise _located(op, error) from error
        results = op.results
        return f"  {self._names[results[0]]} = {text}" if len(results) else f"  {text}"

    def _name_values(self) -> None:
        """Name every value before any is written: a block may come before one that dominates it."""
        names = self._names
        for position, argument in enumerate(self._blocks[0].arguments):
            names[argument] = f"%arg{position}"
        number = 0
        for index, block in enumerate(self._blocks):
            for argument in block.arguments if index else ():
                names[argument] = f"%v{number}"
                number += 1
            for op, name in zip(self._operations[index], self._names_of_ops[index], strict=True):
                results = op.results
                if not len(results):
                    continue
                if name in _CONSTANTS:
                    names[results[0]] = self._constant(op, name)
                else:
                    names[results[0]] = f"%v{number}"
                    number += 1

    def _constant(self, op: ir.Operation, name: str) -> str:
        try:
            return _constant_operation(op, name, self.types)
        except CompilerError as error:
            raise _located(op, error) from error

    def _edges(self, block: ir.Block, terminator: ir.Operation) -> list[tuple[str, ir.Block, bool]]:
        """Return per successor the label to branch to, the block and whether the label is a block of its own.

        LLVM wants one value per predecessor in a phi, so where a terminator names a block with arguments twice, the
        edges after the first go through a block of their own.
        """
        edges: list[tuple[str, ir.Block, bool]] = []
        seen: set[ir.Block] = set()
        for position, successor in enumerate(terminator.successors):
            is_split = successor in seen and len(successor.arguments) > 0
            label = f"{self._labels[block]}_edge{position}" if is_split else self._labels[successor]
            edges.append((label, successor, is_split))
            seen.add(successor)
        return edges

    def _incoming(self) -> dict[ir.Block, list[tuple[str, list[str]]]]:
        """Return for every block the label of each predecessor with the values it passes."""
        incoming: dict[ir.Block, list[tuple[str, list[str]]]] = {block: [] for block in self._blocks}
        for block, operations in zip(self._blocks, self._operations, strict=True):
            terminator = operations[-1]
            passed = _successor_operands(terminator)
            for (label, successor, is_split), values in zip(self._edges(block, terminator), passed, strict=True):
                source = label if is_split else self._labels[block]
                incoming[successor].append((source, [self._names[value] for value in values]))
        return incoming


def _located(op: ir.Operation, error: CompilerError) -> CompilerError:
    """Return ``error`` with the operation and its location named."""
    return CompilerError(f"in '{op.name}': {error.message}", source_of(op))


def _enum(op: ir.Operation, name: str) -> int:
    attribute = op.attributes.get(name)
    return 0 if attribute is None else int(attribute.value)  # type: ignore[attr-defined]


def _constant_operation(op: ir.Operation, name: str, types: TypePrinter) -> str:
    """Return the literal of a constant-like operation."""
    if name == "llvm.mlir.constant":
        return constant(op.attributes["value"], op.results[0].type, types)
    if name == "llvm.mlir.addressof":
        return symbol(op.attributes["global_name"].value)  # type: ignore[attr-defined]
    if name == "llvm.mlir.zero":
        return "null" if isinstance(op.results[0].type, ir.llvm.PointerType) else "zeroinitializer"
    return "undef" if name == "llvm.mlir.undef" else "poison"


def _initializer(op: ir.Operation, type_: ir.Type, types: TypePrinter) -> str | None:
    """Return a global's initial value with a space before it, None if it has none."""
    value = op.attributes.get("value")
    if value is not None:
        return f" {constant(value, type_, types)}"
    blocks = list(op.regions[0].blocks)
    if not blocks:
        return None
    *body, terminator = (each.operation for each in blocks[0].operations)
    for each in body:
        if each.name not in _CONSTANTS:
            raise CompilerError(f"'{each.name}' in a global's initializer is not supported: expected a constant")
    returned = producer(terminator.operands[0])
    return f" {_constant_operation(returned, returned.name, types)}"


def _successor_operands(terminator: ir.Operation) -> list[list[Value]]:
    """Return, per successor, the values that a terminator passes to the successor's arguments."""
    successors = len(terminator.successors)
    if not successors:
        return []
    operands = list(terminator.operands)
    name = terminator.name
    if name == "llvm.br":
        return [operands]
    if name not in ("llvm.cond_br", "llvm.switch"):
        raise _located(terminator, CompilerError("no LLVM IR form is known for this branch"))
    segments = list(terminator.attributes["operandSegmentSizes"])  # type: ignore[call-overload]
    sizes = segments[1:]
    if name == "llvm.switch":
        cases = terminator.attributes.get("case_operand_segments")
        sizes = [segments[1], *(cases or [])]  # type: ignore[misc]
    groups = []
    start = segments[0]
    for size in sizes:
        groups.append(operands[start : start + size])
        start += size
    return groups


def _loop_properties(annotation: str) -> Iterator[str]:
    """Yield the ``llvm.loop`` metadata bodies of a ``#llvm.loop_annotation<...>``."""
    body = annotation.removeprefix("#llvm.loop_annotation<").removesuffix(">")
    for option in re.finditer(r"(\w+) = (?:<([^>]*)>|(\w+))(?:, )?", body):
        group, settings, plain = option.groups()
        words = settings.split(", ") if settings is not None else [f"{group} = {plain}"]
        for word in words:
            key, _, setting = word.partition(" = ")
            body_text = _loop_property(group, key, setting)
            if body_text is None:
                raise CompilerError(f"loop annotation '{word}' of {annotation} is not supported")
            yield body_text


def _loop_property(group: str, key: str, setting: str) -> str | None:
    """Return the metadata body of one loop option, None for one that is not exported."""
    if setting == "true":
        known = {
            ("unroll", "disable"): "llvm.loop.unroll.disable",
            ("unroll", "full"): "llvm.loop.unroll.full",
            ("mustProgress", "mustProgress"): "llvm.loop.mustprogress",
        }
        name = known.get((group, key))
        if (group, key) == ("vectorize", "disable"):
            return '!"llvm.loop.vectorize.enable", i1 false'
        return None if name is None else f'!"{name}"'
    if (group, key) == ("unroll", "count"):
        return f'!"llvm.loop.unroll.count", i32 {setting.split(" ", 1)[0]}'
    return None
