"""A compiled program as launches alone, also where views of values are left to XLA, which does nothing for them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.driver.compiler import Launch
from xgpu.driver.kernel import Kernel
from xgpu.dtypes import dtype_of_element
from xgpu.errors import Unsupported
from xgpu.frontend.signature import ArgumentSpec
from xgpu.fusion.fallback import BARRIER, fallback_reason
from xgpu.hlo.source_location import source_of
from xgpu.interface.api import Compiled

_CALL, _RETURN = "func.call", "func.return"


@dataclass(eq=False)
class Launches:
    """A program of launches, see `xgpu.runtime.program.CompiledProgram`; a view has the number of its source."""

    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    values: tuple[ArgumentSpec, ...]
    result_values: tuple[int | None, ...]
    results: tuple[ArgumentSpec, ...]
    main: ir.Module | None = None

    @property
    def on_cpu(self) -> "Launches":
        """The program itself."""
        return self


def launches_of(program: Compiled) -> Launches:
    """Return the launches of a program; raises Unsupported, naming what needs XLA, if kernels do not make all of it."""
    if program.main is None:
        return Launches(program.kernels, program.launches, program.values, program.result_values, program.results)
    (main,) = (op.operation for op in program.main.body.operations if _name(op.operation) == "main")
    block = main.regions[0].blocks[0]
    left = [op for op in _operations(block) if not _is_free(op)]
    if left:
        # Others come along with these.
        needed = [op for op in left if fallback_reason(op) is not None] or left
        lines = "\n".join(dict.fromkeys(map(_described, needed)))
        raise Unsupported(f"{program.source.name}: a package has kernels alone, and XLA is needed for\n{lines}")
    return _from_main(program, block)


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _operations(block: ir.Block) -> Iterator[ir.Operation]:
    return (op.operation for op in block.operations)


def _is_free(op: ir.Operation) -> bool:
    """Whether an operation between launches needs nothing done."""
    if op.name in (_CALL, _RETURN, BARRIER) or is_bitcast(op):
        return True
    return len(op.results) > 0 and not any(math.prod(ir.RankedTensorType(each.type).shape) for each in op.results)


def _described(op: ir.Operation) -> str:
    place = source_of(op)
    types = ", ".join(str(result.type) for result in op.results)
    at = "" if place is None else f" ({place})"
    return f"  {op.name} of type {types}{at}: {fallback_reason(op) or 'XLA does it together with what it reads'}"


def _from_main(program: Compiled, block: ir.Block) -> Launches:
    numbers: dict[ir.Value, int] = {}
    specs: list[ArgumentSpec] = []

    def add(value: ir.Value) -> int:
        type_: Any = ir.RankedTensorType(value.type)
        numbers[value] = len(specs)
        specs.append(ArgumentSpec(f"value{len(specs)}", tuple(type_.shape), dtype_of_element(type_.element_type)))
        return numbers[value]

    for argument in block.arguments:
        add(argument)
    kernels = {kernel.name: kernel for kernel in program.kernels}
    launches = []
    for op in _operations(block):
        if op.name == _CALL:
            kernel = kernels[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
            inputs = tuple(numbers[value] if value in numbers else add(value) for value in op.operands)
            launches.append(Launch(kernel, inputs, tuple(add(result) for result in op.results)))
        elif op.name == BARRIER or is_bitcast(op):
            pairs = zip(op.results, op.operands, strict=False)
            numbers |= {result: numbers[operand] for result, operand in pairs if operand in numbers}
    *_, end = _operations(block)
    results = tuple(numbers.get(value) for value in end.operands)
    return Launches(program.kernels, tuple(launches), tuple(specs), results, program.results)
