"""Programs of par and seq loops, from level ``loops`` to kernels."""

from collections.abc import Mapping

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.driver.compiler import Launch, Program
from xgpu.driver.kernel import ProgramKernel, Times, advance, timed
from xgpu.dtypes import dtype_of_element
from xgpu.emit.nests.kernel import kernels_of
from xgpu.emit.nests.products import ProductNest
from xgpu.errors import CompilerError, InvalidInput, SourceLocation
from xgpu.frontend.signature import ArgumentSpec, Source
from xgpu.hlo.source_location import source_of
from xgpu.levels import pipeline
from xgpu.nests.checks import nest_problems
from xgpu.nests.structure import access_of_parameter, name_of_buffer
from xgpu.options import Options
from xgpu.passes.framework import manager
from xgpu.passes.framework.base import function_name, functions
from xgpu.passes.framework.remarks import Remark
from xgpu.structure import copy_module

NEST_LEVELS = ("loops", "mapped")
"""The levels at which a program is one function of loops."""


def map_program(module: ir.Module, target: Device, options: Options, times: Times) -> dict[str, ir.Module]:
    """Return a program of level ``loops`` or ``mapped`` at these levels, as far as it is not past them."""
    level = ir.StringAttr(module.operation.attributes[attributes.LEVEL]).value
    if level == "mapped":
        return {level: module}
    with module.context, ir.Location.unknown():
        steps = pipeline.map_loops(target, options)
    return {level: module, "mapped": advance(module, steps, times)}


def remarks_on_loops(module: ir.Module, target: Device, options: Options) -> tuple[Remark, ...]:
    """Return what the passes from level ``loops`` to ``mapped`` did not do, and why; runs them for that."""
    copy, found = copy_module(module), list[Remark]()
    with copy.context, ir.Location.unknown():
        manager.run(copy, pipeline.map_loops(target, options), manager.Instrumentation(remark=found.append))
    return tuple(dict.fromkeys(found))


def emit_nests(mapped: ir.Module, target: Device, options: Options, times: Times) -> Program:
    """Return the kernels of a program of level ``mapped``, at level ``emitted``, and how they hand on arrays."""
    function = function_of(mapped)
    parameters = list(function.entry_block.arguments)
    given = [value for value in parameters if access_of_parameter(value) != "out"]
    specs = [_spec(value) for value in given]
    numbers: dict[ir.Value, int] = {value: number for number, value in enumerate(given)}
    launches = []
    for each in kernels_of(mapped, function_name(function)):
        with timed(times, "emit"):
            module = each.emit(target, options) if isinstance(each, ProductNest) else each.emit()
        level = ir.StringAttr(module.operation.attributes[attributes.LEVEL]).value
        inputs = tuple(numbers[buffer] for buffer in each.inputs)
        outputs = []
        for buffer in each.outputs:
            outputs.append(len(specs))
            numbers[buffer] = len(specs)
            specs.append(_spec(buffer))
        launches.append(
            Launch(ProgramKernel(each.name, target, options, times, {level: module}), inputs, tuple(outputs))
        )
    made = [value for value in parameters if access_of_parameter(value) != "in"]
    if missing := [name_of_buffer(value) for value in made if value not in numbers]:
        raise InvalidInput(f"nothing is written to '{missing[0]}'", source_of(function.operation))
    results = tuple(numbers[value] for value in made)
    return Program(tuple(launch.kernel for launch in launches), tuple(launches), tuple(specs), results)


def restart_nests(
    module: ir.Module, filename: str, target: Device, options: Options, times: Times
) -> tuple[Source, Mapping[str, ir.Module], Program]:
    """Return what a module of these levels holds, as `xgpu.driver.restart.restart` does."""
    function = function_of(module)
    is_mapped = ir.StringAttr(module.operation.attributes[attributes.LEVEL]).value == "mapped"
    for problem in nest_problems(function, is_mapped):
        raise InvalidInput(problem.message, source_of(problem.op) or SourceLocation(filename))
    try:
        source = source_of_module(module)
        modules = map_program(module, target, options, times)
        return source, modules, emit_nests(modules["mapped"], target, options, times)
    except CompilerError as error:
        # Passes leave only what emitters can make; a person who edits decisions may not.
        raise InvalidInput(error.message, error.location or SourceLocation(filename)) from error


def source_of_module(module: ir.Module) -> Source:
    """Return the signature of a program of these levels."""
    function = function_of(module)
    specs = [(access_of_parameter(value), _spec(value)) for value in function.entry_block.arguments]
    arguments = tuple(spec for access, spec in specs if access != "out")
    results = tuple(spec for access, spec in specs if access != "in")
    return Source(module, function_name(function), arguments, results)


def function_of(module: ir.Module) -> ir.func.FuncOp:
    """Return the only function of a module of loops; raises InvalidInput if there are others, or none."""
    found = functions(module)
    if len(found) != 1:
        raise InvalidInput(f"a program of loops is one function, got {len(found)}", source_of(module.operation))
    return found[0]


def _spec(buffer: ir.Value) -> ArgumentSpec:
    type_ = ir.MemRefType(buffer.type)
    return ArgumentSpec(name_of_buffer(buffer), tuple(type_.shape), dtype_of_element(type_.element_type))
