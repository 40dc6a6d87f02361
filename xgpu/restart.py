"""Programs that are given as the text of a level after ``stablehlo``: compilation goes on from there."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xgpu import ir, pipeline
from xgpu.compiler import Kernel, Launch, Program, Times, emit_program
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.limits import type_problems
from xgpu.dialects.verify import problems
from xgpu.dtypes import dtype_of_element
from xgpu.errors import InvalidInput
from xgpu.frontend.load import read_text
from xgpu.frontend.mlir_text import parse_module
from xgpu.frontend.signature import ArgumentSpec, Source, module_name
from xgpu.frontend.source_location import source_of
from xgpu.options import Options
from xgpu.passes.base import function_name, functions

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
) -> tuple[Source, ir.Module | None, Program]:
    """Return what ``text`` holds: the signature, the module of level ``fusions`` if that is its level, the program.

    Kernels of several modules take their arguments one after another. Levels without tensors have no argument types.
    """
    modules = [_parse(part, filename) for part in _parts(text)]
    levels = {_level_of(module, filename) for module in modules}
    if len(levels) != 1 or (levels == {"fusions"} and len(modules) > 1):
        raise InvalidInput(f"{filename}: expected modules of one level, got {', '.join(sorted(levels))}")
    (level,) = levels
    if level == "fusions":
        planned = modules[0]
        main = next((f for f in functions(planned) if function_name(f) == "main"), None)
        if main is None:
            raise InvalidInput(f"{filename}: a module of level 'fusions' has a function @main that calls the fusions")
        arguments, results = _specs("arg", main.type.inputs), _specs("result", main.type.results)
        source = Source(planned, module_name(planned, "program"), arguments, results)
        return source, planned, emit_program(planned, device, options, times)
    return _restart_kernels(modules, level, filename, device, options, times)


def _restart_kernels(
    modules: Sequence[ir.Module], level: str, filename: str, device: Device, options: Options, times: Times
) -> tuple[Source, None, Program]:
    arguments: list[ArgumentSpec] = []
    results: list[ArgumentSpec] = []
    entries = [_entry(module, filename) for module in modules]
    parameters = [_tensor_parameters(entry) for entry in entries]
    counts = [
        attributes.int_of(entry.attributes[attributes.INPUTS]) if tensors else 0
        for entry, tensors in zip(entries, parameters, strict=True)
    ]
    total = sum(counts)
    launches = []
    for module, entry, tensors, count in zip(modules, entries, parameters, counts, strict=True):
        first = (len(arguments), len(results))
        arguments += _specs("arg", tensors[:count], len(arguments))
        results += _specs("result", tensors[count:], len(results))
        inputs = tuple(range(first[0], len(arguments)))
        outputs = tuple(range(total + first[1], total + len(results)))
        name = ir.StringAttr(entry.attributes["sym_name"]).value
        launches.append(Launch(Kernel(name, device, options, times, {level: module}), inputs, outputs))
    numbers = tuple(range(total, total + len(results)))
    kernels = tuple(launch.kernel for launch in launches)
    program = Program(kernels, tuple(launches), (*arguments, *results), numbers)
    return Source(modules[0], kernels[0].name, tuple(arguments), tuple(results)), None, program


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
    if found := type_problems(module) or problems(module):
        raise InvalidInput(found[0].message, source_of(found[0].op))
    return module


def _level_of(module: ir.Module, filename: str) -> str:
    given = module.operation.attributes
    level = ir.StringAttr(given[attributes.LEVEL]).value if attributes.LEVEL in given else "none"
    if level not in pipeline.MLIR_LEVELS[1:]:
        known = ", ".join(pipeline.MLIR_LEVELS[1:])
        raise InvalidInput(
            f"{filename}: {attributes.LEVEL} = '{level}' is not a level to go on from; these are: {known}"
        )
    return level


def _entry(module: ir.Module, filename: str) -> ir.Operation:
    entries = [op.operation for op in module.body.operations if attributes.KERNEL in op.operation.attributes]
    required = (attributes.GRID, attributes.BLOCK, attributes.INPUTS, attributes.EMITTER)
    if len(entries) != 1:
        raise InvalidInput(
            f"{filename}: expected one function with {attributes.KERNEL} in a module, got {len(entries)}"
        )
    missing = [name for name in required if name not in entries[0].attributes]
    if missing:
        raise InvalidInput(f"the kernel's function lacks the attribute {missing[0]}", source_of(entries[0]))
    return entries[0]


def _tensor_parameters(entry: ir.Operation) -> list[ir.RankedTensorType]:
    """Return the types of the tensor parameters, with the elements that callers see."""
    signature = ir.TypeAttr(entry.attributes["function_type"]).value
    described = list(ir.ArrayAttr(entry.attributes["arg_attrs"])) if "arg_attrs" in entry.attributes else []
    found = []
    for i, type_ in enumerate(signature.inputs if isinstance(signature, ir.FunctionType) else []):
        if not isinstance(type_, ir.RankedTensorType):
            continue
        named = ir.DictAttr(described[i]) if described else ir.DictAttr.get({}, entry.context)
        if attributes.ELEMENT_TYPE in named:
            element = named[attributes.ELEMENT_TYPE]
            if not isinstance(element, ir.TypeAttr):
                problem = f"expected a type as {attributes.ELEMENT_TYPE} of a parameter, got {element}"
                raise InvalidInput(problem, source_of(entry))
            type_ = ir.RankedTensorType.get(type_.shape, element.value, loc=entry.location)
        found.append(type_)
    return found


def _specs(name: str, types: Sequence[ir.Type], first: int = 0) -> tuple[ArgumentSpec, ...]:
    tensors = [ir.RankedTensorType(type_) for type_ in types]
    return tuple(
        ArgumentSpec(f"{name}{first + i}", tuple(tensor.shape), dtype_of_element(tensor.element_type))
        for i, tensor in enumerate(tensors)
    )
