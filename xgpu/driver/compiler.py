"""From a normalised program to its kernels: the stages run in order, each level kept as it was."""

import math
from collections.abc import Mapping

from xgpu import ir
from xgpu.analysis.constants.arrays import Array, array_of, is_readable
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.device import DEFAULT_DEVICE, Device, device
from xgpu.dialects import attributes
from xgpu.driver.kernel import ProgramKernel, Times, advance, timed
from xgpu.dtypes import dtype_of_element
from xgpu.emit.family_table import FAMILIES, emit_kernel, schedule_kernels
from xgpu.errors import CompilerError, InvalidInput, XgpuError, described
from xgpu.frontend.signature import ArgumentSpec
from xgpu.fusion.fallback import BARRIER
from xgpu.fusion.planner import plan
from xgpu.fusion.product_choices import NOTHING, ProductChoices
from xgpu.hlo.source_location import source_of
from xgpu.indexing.hlo_maps import unchanged
from xgpu.levels import pipeline
from xgpu.options import Options
from xgpu.passes.framework.base import function_name, functions
from xgpu.records import dataclass
from xgpu.structure import walk


@dataclass(frozen=True)
class Launch:
    """One run of a kernel: the numbers of the program's values that it reads, and of those that it writes."""

    kernel: ProgramKernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


_CONSTANT = "stablehlo.constant"


@dataclass(frozen=True)
class Program:
    """Kernels, their launches in order, and the values that these hand on.

    Values are numbered: first the program's arguments, then what the launches write, in order. ``results`` are the
    numbers of the program's results, None for one without elements. If parts of the program are left to XLA, ``main``
    is the module of level ``fusions`` that calls the kernels by name, and values are numbered for each launch alone,
    unless only ``constants`` are left: then these are values too, of those numbers.
    """

    kernels: tuple[ProgramKernel, ...]
    launches: tuple[Launch, ...]
    values: tuple[ArgumentSpec, ...]
    results: tuple[int | None, ...]
    main: ir.Module | None = None
    constants: Mapping[int, Array] | None = None


def plan_program(
    module: ir.Module,
    target: Device | None = None,
    options: Options | None = None,
    times: Times | None = None,
    choices: ProductChoices = NOTHING,
) -> dict[str, ir.Module]:
    """Return a program of level ``stablehlo`` at the levels ``prepared`` and ``fusions``; it stays as it is itself.

    ``choices`` are what was measured to compute its products.
    """
    target, times = target or device(DEFAULT_DEVICE), [] if times is None else times
    with module.context:
        steps = pipeline.prepare(target, options or Options(), choices)
    prepared = advance(module, steps, times)
    return {"prepared": prepared, "fusions": plan_prepared(prepared, target, times)}


def plan_prepared(prepared: ir.Module, target: Device, times: Times) -> ir.Module:
    """Return a program of level ``prepared`` at level ``fusions``. Raises `CompilerError` if the planner fails."""
    try:
        with timed(times, "plan"):
            return plan(prepared, FAMILIES.values(), target)
    except XgpuError:
        raise
    except Exception as error:
        raise CompilerError(f"planning failed: {described(error)}") from error


def emit_program(planned: ir.Module, device: Device, options: Options, times: Times) -> Program:
    """Return what ``@main`` of a module of level ``fusions`` does, its kernels at level ``emitted``.

    Fusions that have no schedule yet are given one: with it the level is complete.
    """
    with unchanged(walk(planned.operation)):
        return _emit_program(planned, device, options, times)


def _emit_program(planned: ir.Module, device: Device, options: Options, times: Times) -> Program:
    with timed(times, "schedule"):
        schedule_kernels(planned, device, options)
    named = {function_name(f): f.operation for f in functions(planned)}
    if "main" not in named:
        raise InvalidInput("expected a function @main that calls the fusions in a module of level 'fusions'")
    main = named["main"].regions[0].blocks[0]
    numbers: dict[ir.Value | None, int] = {argument: number for number, argument in enumerate(main.arguments)}
    specs = [_value_spec(value, number) for number, value in enumerate(main.arguments)]
    others = [op.operation for op in main.operations if not _is_of_kernels(op.operation)]
    known = {op: _constant(op) for op in others}
    is_connected = all(array is not None for array in known.values())
    constants: dict[int, Array] = {}
    kernels: dict[str, ProgramKernel] = {}
    launches = []
    for op in walk(named["main"]):
        if is_connected and (array := known.get(op)) is not None:
            numbers[op.results[0]] = len(specs)
            constants[len(specs)] = array
            specs.append(_value_spec(op.results[0], len(specs)))
        if op.name == BARRIER and is_connected:
            # What comes out is what went in: only kernels must not cross it.
            pairs = zip(op.results, op.operands, strict=True)
            numbers |= {result: numbers[operand] for result, operand in pairs if operand in numbers}
        if op.name != "func.call":
            continue
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        if name not in named:
            raise InvalidInput(f"there is no fusion @{name} to call", source_of(op))
        if is_connected and any(operand not in numbers for operand in op.operands):
            raise InvalidInput(f"the call of @{name} takes a value that no call of @main makes", source_of(op))
        for value in (*op.operands, *op.results):
            if value not in numbers:
                numbers[value] = len(specs)
                specs.append(_value_spec(value, len(specs)))
        inputs, outputs = ((tuple(numbers[value] for value in values)) for values in (op.operands, op.results))
        if name not in kernels:
            with timed(times, "emit"):
                emitted = _emit_fusion(name, named[name], device, options)
            level = ir.StringAttr(emitted.operation.attributes[attributes.LEVEL]).value
            kernels[name] = ProgramKernel(name, device, options, times, {level: emitted})
        launches.append(Launch(kernels[name], inputs, outputs))
    results = tuple(numbers.get(value) for value in list(main.operations)[-1].operation.operands)
    parts = tuple(kernels.values()), tuple(launches), tuple(specs), results
    return Program(*parts, planned if others else None, constants if is_connected else None)


def _constant(op: ir.Operation) -> Array | None:
    """Return the elements of a constant, None for any other operation, or elements that NumPy does not have."""
    return array_of(op) if op.name == _CONSTANT and is_readable(op.results[0].type) else None


def _is_of_kernels(op: ir.Operation) -> bool:
    """Whether an operation of ``@main`` calls a kernel, or needs none: a barrier, or what makes no elements.

    A loop or branch that makes none is not one: it may have calls inside.
    """
    if op.name in ("func.call", "func.return", BARRIER):
        return True
    if op.name in CONTROL_FLOW:
        return False
    return len(op.results) > 0 and not any(math.prod(ir.RankedTensorType(result.type).shape) for result in op.results)


def _emit_fusion(name: str, function: ir.Operation, device: Device, options: Options) -> ir.Module:
    if attributes.EMITTER not in function.attributes:
        raise InvalidInput(f"the fusion @{name} lacks the attribute {attributes.EMITTER}", source_of(function))
    return emit_kernel(function, device, options)


def _value_spec(value: ir.Value, number: int) -> ArgumentSpec:
    type_ = ir.RankedTensorType(value.type)
    return ArgumentSpec(f"value{number}", tuple(type_.shape), dtype_of_element(type_.element_type))
