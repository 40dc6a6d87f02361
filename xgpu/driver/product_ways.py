"""The ways to compute a product that are measured: by XLA's library, and by kernels of several schedules."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.attributes import EMITTER, PRODUCT, SCHEDULE, schedule_attribute
from xgpu.driver.compiler import Launch, Program, emit_program, plan_program
from xgpu.driver.kernel import ProgramKernel
from xgpu.dtypes import dtype_of_element
from xgpu.emit.family_table import schedules_to_measure
from xgpu.errors import XgpuError
from xgpu.frontend.signature import ArgumentSpec
from xgpu.fusion.product_choices import ProductChoice, ProductChoices
from xgpu.options import Options
from xgpu.passes.framework.base import main_of
from xgpu.records import dataclass
from xgpu.runtime.program import CompiledProgram
from xgpu.structure import copy_module, walk

_DOT = "stablehlo.dot_general"
_LIBRARY, _KERNEL = ProductChoice(), ProductChoice({})


@dataclass(eq=False)
class Runnable:
    """A program as the runtime calls it, see `xgpu.runtime.program.CompiledProgram`."""

    main: ir.Module | None
    kernels: tuple[ProgramKernel, ...]
    launches: tuple[Launch, ...]
    values: tuple[ArgumentSpec, ...]
    result_values: tuple[int | None, ...]
    results: tuple[ArgumentSpec, ...]

    @classmethod
    def of(cls, program: Program, results: Sequence[ir.Type]) -> Self:
        """Return a program whose results are of these types."""
        given = program.main, program.kernels, program.launches, program.values, program.results
        return cls(*given, specs_of("result", results))

    @property
    def on_cpu(self) -> CompiledProgram:
        """The program itself."""
        return self


@dataclass(frozen=True, eq=False)
class Way:
    """A way to compute a product: with a kernel of this schedule, None for the library. Compiled, or why it is not."""

    schedule: Mapping[str, int] | None
    program: Runnable | XgpuError

    def __str__(self) -> str:
        if self.schedule is None:
            return "library"
        return f"kernel with {', '.join(f'{name} = {str(value).lower()}' for name, value in self.schedule.items())}"


def ways_of(module: ir.Module, target: Device, options: Options) -> Iterator[Way]:
    """Yield the ways to compute the product of a program of level ``stablehlo``, the library first."""
    yield _way(module, None, module, target, options)
    try:
        planned = plan_program(module, target, options, choices=_for_all(module, _KERNEL))["fusions"]
        schedules = [
            schedule
            for function in _functions_of_products(planned)
            for schedule in schedules_to_measure(function, target, options)
        ]
    except XgpuError as error:
        yield Way({}, error)
        return
    for schedule in schedules:
        yield _way(module, schedule, planned, target, options)


def _way(
    module: ir.Module, schedule: Mapping[str, int] | None, planned: ir.Module, target: Device, options: Options
) -> Way:
    """Return a way to compute a product; ``planned`` is how kernels do it."""
    try:
        if schedule is None:
            plan = plan_program(module, target, options, choices=_for_all(module, _LIBRARY))["fusions"]
        else:
            plan = copy_module(planned)
            with plan.context:
                for function in _functions_of_products(plan):
                    function.attributes[SCHEDULE] = schedule_attribute(schedule)
        program = emit_program(plan, target, options, [])
    except XgpuError as error:
        return Way(schedule, error)
    return Way(schedule, Runnable.of(program, main_of(module).type.results))


def _for_all(module: ir.Module, choice: ProductChoice) -> ProductChoices:
    """Return a choice for each product of a program, all of which are one kernel's."""
    return ProductChoices.of([choice] * len(walk(module.operation, _DOT)))


def _functions_of_products(planned: ir.Module) -> list[ir.Operation]:
    """Return the functions of fusions around a product that a kernel computes: one at most."""
    fusions = [op.operation for op in planned.body.operations if EMITTER in op.operation.attributes]
    return [each for each in fusions if any(PRODUCT in op.attributes for op in walk(each, _DOT))]


def specs_of(name: str, types: Sequence[ir.Type]) -> tuple[ArgumentSpec, ...]:
    """Return the arrays of these types, called ``name`` and their numbers."""
    tensors = map(ir.RankedTensorType, types)
    return tuple(
        ArgumentSpec(f"{name}{number}", tuple(each.shape), dtype_of_element(each.element_type))
        for number, each in enumerate(tensors)
    )
