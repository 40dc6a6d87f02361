"""Programs given as the text of a level after ``stablehlo``: compilation continues from there."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.base import Problem
from xgpu.dialects.input_checks import input_problems
from xgpu.driver.compiler import Launch, Program, emit_program, plan_prepared
from xgpu.driver.kernel import ProgramKernel, Times
from xgpu.driver.nest_programs import NEST_LEVELS, restart_nests
from xgpu.dtypes import dtype_of_element
from xgpu.errors import CompilerError, InvalidInput, did_you_mean
from xgpu.frontend.load import read_text
from xgpu.frontend.mlir_text import parse_module
from xgpu.frontend.signature import ArgumentSpec, Source, module_name
from xgpu.fusion.claims import claim_problems
from xgpu.hlo.checks import check_operations
from xgpu.hlo.source_location import source_of
from xgpu.levels import pipeline
from xgpu.options import Options
from xgpu.passes.framework.base import MAIN, function_name, functions
from xgpu.structure import nested

_OF_PROGRAMS = frozenset(("prepared", "fusions", *NEST_LEVELS))
"""The levels at which a program is one module; later, there is one for each kernel."""
_AS_EMITTED = frozenset(("tiles", "emitted"))
"""The levels that emitters write kernels of, each one of them: kernels of both are one text."""
_LEVEL = re.compile(r"^\s*(?:builtin\.)?module\b[^\n]*\bxgpu\.level\b", re.MULTILINE)
_SEPARATOR = re.compile(r"^// -----\s*$", re.MULTILINE)
_MODULE_TEXT = re.compile(r"^\s*module\b", re.MULTILINE)


def text_of_later_level(source: Any) -> tuple[str, str] | None:
    """Return the text and its file's name if ``source`` is MLIR of a level after ``stablehlo``, else None."""
    if not isinstance(source, str | Path):
        return None
    if isinstance(source, str) and _MODULE_TEXT.search(source):
        text, name = source, "<text>"
    elif str(source).endswith(".mlir"):
        text, name = read_text(Path(source)), str(source)
    else:
        return None
    return (text, name) if _LEVEL.search(text) else None


def restart(
    text: str, filename: str, device: Device, options: Options, times: Times
) -> tuple[Source, Mapping[str, ir.Module], Program]:
    """Return what ``text`` holds: the signature, the program's modules up to level ``fusions``, and its kernels.

    Kernels of several modules take their arguments one after another. Levels without tensors have no argument types:
    there, arrays are bytes, as many as a pointer says that there are.
    """
    modules = [_parse(part, filename) for part in _parts(text)]
    levels = [_level_of(module) for module in modules]
    if len(modules) == 1 and levels[0] in NEST_LEVELS:
        return restart_nests(modules[0], filename, device, options, times)
    if len(modules) == 1 and levels[0] in _OF_PROGRAMS:
        return _restart_program(modules[0], levels[0], device, options, times)
    if not set(levels) <= _AS_EMITTED and (len(set(levels)) != 1 or _OF_PROGRAMS & set(levels)):
        reason = f"expected modules of one level, got {', '.join(sorted(set(levels)))}"
        raise InvalidInput(reason, source_of(modules[0].operation))
    return _restart_kernels(modules, levels, device, options, times)


def _restart_program(
    module: ir.Module, level: str, device: Device, options: Options, times: Times
) -> tuple[Source, Mapping[str, ir.Module], Program]:
    for each in module.body.operations:
        if each.operation.name != "func.func":
            raise InvalidInput(f"expected functions in a module, got '{each.operation.name}'", source_of(each))
    main = next((function for function in functions(module) if function_name(function) == MAIN), None)
    if main is None:
        reason = f"a module of level '{level}' needs a function @{MAIN}, which is the program"
        raise InvalidInput(reason, source_of(module.operation))
    if level == "prepared":
        check_operations(module)
    _refuse(claim_problems(module))
    arguments, results = _specs("arg", main.type.inputs), _specs("result", main.type.results)
    source = Source(module, module_name(module, "program"), arguments, results)
    modules = {level: module}
    if level == "prepared":
        modules["fusions"] = plan_prepared(module, device, times)
    try:
        return source, modules, emit_program(modules["fusions"], device, options, times)
    except CompilerError as error:
        # The planner gives emitters only what they can make; a person who edits its plan may not.
        raise InvalidInput(error.message, error.location) from error


def _restart_kernels(
    modules: Sequence[ir.Module], levels: Sequence[str], device: Device, options: Options, times: Times
) -> tuple[Source, Mapping[str, ir.Module], Program]:
    arguments: list[ArgumentSpec] = []
    results: list[ArgumentSpec] = []
    for module, level in zip(modules, levels, strict=True):
        _check_is_of(module, level)
    entries = [_entry(module) for module in modules]
    parameters = [_array_parameters(entry) for entry in entries]
    counts = [attributes.int_of(entry.attributes[attributes.INPUTS]) for entry in entries]
    total = sum(counts) - sum(attributes.scratch_of(entry) > 0 for entry in entries)
    launches = []
    for module, level, entry, tensors, count in zip(modules, levels, entries, parameters, counts, strict=True):
        first = (len(arguments), len(results))
        # A launch brings the memory for messages, an input and an output, and the kernel's own, an output, itself.
        board, own = attributes.scratch_of(entry) > 0, attributes.workspace_of(entry) > 0
        arguments += _specs("arg", tensors[: count - board], len(arguments))
        results += _specs("result", tensors[count : len(tensors) - board - own], len(results))
        inputs = tuple(range(first[0], len(arguments)))
        outputs = tuple(range(total + first[1], total + len(results)))
        name = ir.StringAttr(entry.attributes["sym_name"]).value
        kernel = ProgramKernel(name, device, options, times, {level: module})
        launches.append(Launch(kernel, inputs, outputs))
    numbers = tuple(range(total, total + len(results)))
    kernels = tuple(launch.kernel for launch in launches)
    program = Program(kernels, tuple(launches), (*arguments, *results), numbers)
    return Source(modules[0], kernels[0].name, tuple(arguments), tuple(results)), {}, program


def _parts(text: str) -> list[str]:
    """Split at ``// -----`` lines; blank lines before a part keep the line numbers of its diagnostics."""
    parts, line = [], 0
    for part in _SEPARATOR.split(text):
        if part.strip():
            parts.append("\n" * line + part)
        line += part.count("\n")
    return parts


def _parse(part: str, filename: str) -> ir.Module:
    module = parse_module(part, filename)
    _refuse(input_problems(module))
    return module


def check_given(module: ir.Module) -> None:
    """Raise `InvalidInput` for operations and attributes of ours that are wrong in a program given as text."""
    _refuse(input_problems(module))
    _refuse(claim_problems(module))


def _refuse(problems: Iterable[Problem]) -> None:
    for problem in problems:
        raise InvalidInput(problem.message, source_of(problem.op))


def _level_of(module: ir.Module) -> str:
    given = module.operation.attributes
    level = ir.StringAttr(given[attributes.LEVEL]).value if attributes.LEVEL in given else "none"
    if level not in pipeline.MLIR_LEVELS[1:]:
        known = ", ".join(pipeline.MLIR_LEVELS[1:])
        near = did_you_mean(level, pipeline.MLIR_LEVELS[1:])
        reason = f"{attributes.LEVEL} = '{level}' is not a level to go on from{near}; these are: {known}"
        raise InvalidInput(reason, source_of(module.operation))
    return level


def _check_is_of(module: ir.Module, level: str) -> None:
    """Raise `InvalidInput` for a kernel that still computes whole tiles at a level where threads compute elements."""
    for op in nested(module.operation):
        if level != "tiles" and op.name.startswith("stablehlo."):
            raise InvalidInput(f"'{op.name}' is no operation of kernels of level '{level}'", source_of(op))


def _entry(module: ir.Module) -> ir.Operation:
    entries = [op.operation for op in module.body.operations if attributes.KERNEL in op.operation.attributes]
    required = (attributes.GRID, attributes.BLOCK, attributes.INPUTS, attributes.EMITTER)
    if len(entries) != 1:
        reason = f"expected one function with {attributes.KERNEL} in a module, got {len(entries)}"
        raise InvalidInput(reason, source_of(module.operation))
    if not len(entries[0].regions) or not len(entries[0].regions[0].blocks):
        raise InvalidInput("the kernel's function has no body", source_of(entries[0]))
    missing = [name for name in required if name not in entries[0].attributes]
    if missing:
        raise InvalidInput(f"the kernel's function lacks the attribute {missing[0]}", source_of(entries[0]))
    return entries[0]


def _array_parameters(entry: ir.Operation) -> list[ir.RankedTensorType]:
    """Return the types of the parameters that are arrays, with the elements that callers see."""
    parameters = entry.regions[0].blocks[0].arguments
    described = list(ir.ArrayAttr(entry.attributes["arg_attrs"])) if "arg_attrs" in entry.attributes else []
    found = []
    for number, parameter in enumerate(parameters):
        type_ = parameter.type
        named = ir.DictAttr(described[number]) if described else ir.DictAttr.get({}, entry.context)
        if isinstance(type_, ir.llvm.PointerType):
            # An array without elements has no bytes to tell of, and nothing reads it.
            if attributes.BYTES not in named and len(list(parameter.uses)):
                raise InvalidInput(
                    f"parameter {number} of the kernel lacks the attribute {attributes.BYTES}", source_of(entry)
                )
            byte = ir.IntegerType.get_unsigned(8, entry.context)
            size = attributes.int_of(named[attributes.BYTES]) if attributes.BYTES in named else 0
            found.append(ir.RankedTensorType.get([size], byte, loc=entry.location))
        elif not isinstance(type_, ir.RankedTensorType):
            raise InvalidInput(f"parameter {number} of the kernel is no array but of type {type_}", source_of(entry))
        elif attributes.ELEMENT_TYPE in named:
            element = ir.TypeAttr(named[attributes.ELEMENT_TYPE]).value
            found.append(ir.RankedTensorType.get(type_.shape, element, loc=entry.location))
        else:
            found.append(type_)
    inputs = attributes.int_of(entry.attributes[attributes.INPUTS])
    if inputs > len(found):
        reason = f"the kernel has {len(found)} parameters, but {attributes.INPUTS} = {inputs}"
        raise InvalidInput(reason, source_of(entry))
    return found


def _specs(name: str, types: Sequence[ir.Type], first: int = 0) -> tuple[ArgumentSpec, ...]:
    tensors = [ir.RankedTensorType(type_) for type_ in types]
    return tuple(
        ArgumentSpec(f"{name}{first + i}", tuple(tensor.shape), dtype_of_element(tensor.element_type))
        for i, tensor in enumerate(tensors)
    )
