"""The families of kernels: the one table of emitters, each with what a fusion must be for it.

A fusion of level ``fusions`` names its emitter. It is checked against the table, scheduled, and emitted.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.emit import requirements
from xgpu.emit.base import Emitter, Fusion
from xgpu.emit.families.concatenate import ConcatenateEmitter, ConcatenateSchedule, Concatenations
from xgpu.emit.families.concatenate_tiled import TiledConcatenateEmitter, TiledConcatenateSchedule
from xgpu.emit.families.input_slices import InputSlices, InputSlicesEmitter, InputSlicesSchedule
from xgpu.emit.families.loop import Loop, LoopEmitter, LoopSchedule
from xgpu.emit.families.recurrence import RecurrenceEmitter, Recurrences, RecurrenceSchedule
from xgpu.emit.families.reductions.reduce_column import ColumnReductionEmitter, ColumnSchedule
from xgpu.emit.families.reductions.reduce_row import RowReductionEmitter, RowSchedule
from xgpu.emit.families.reductions.reduction import Reductions
from xgpu.emit.families.reductions.rows import RowsEmitter, RowsSchedule, RowStages
from xgpu.emit.families.scans.scan_column import ColumnScanEmitter
from xgpu.emit.families.scans.scan_functions import Scans
from xgpu.emit.families.scans.scan_row import RowScanEmitter
from xgpu.emit.families.scans.scan_tiling import ColumnScanSchedule, RowScanSchedule
from xgpu.emit.families.scatter import (
    OrderedScatterEmitter,
    OrderedScatterSchedule,
    ScatterEmitter,
    Scatters,
    ScatterSchedule,
)
from xgpu.emit.families.scatter_sorted import SortedScatterEmitter, SortedScatterSchedule
from xgpu.emit.families.transpose import TransposeEmitter, Transposes, TransposeSchedule
from xgpu.emit.families.update_slice import SliceUpdates, UpdateSliceEmitter, UpdateSliceSchedule
from xgpu.emit.requirements import Requirement, heroes_alike
from xgpu.emit.schedule import Schedule
from xgpu.errors import CompilerError, InvalidInput, Unsupported, XgpuError
from xgpu.hlo.source_location import source_of
from xgpu.options import Options

POINTER_BYTES = 8


class EmitterClass(Protocol):
    """An emitter's class: makes one of a fusion's facts and of its schedule."""

    NAME: str

    def __call__(self, facts: Any, schedule: Any, /) -> Emitter: ...


@dataclass(frozen=True)
class Family:
    """Kernels of one emitter: their schedules, and what their fusions must be, checked in this order.

    ``facts`` makes of such a fusion what is known of it, for the schedule and for the emitter; it may raise
    `InvalidInput` as well. ``heroes`` is None where a kernel is built around no operation; heroes that are marked all
    the same do not count.
    """

    emitter: EmitterClass
    facts: Callable[[Fusion], Any]
    schedule: type[Schedule]
    heroes: Requirement | None
    results: Requirement
    aliases: Requirement = requirements.no_aliases

    def problem(self, fusion: Fusion) -> str | None:
        """Return what ``fusion`` was expected to be, None if it is a fusion of this family."""
        for requirement in (requirements.outside, self.heroes, self.results, self.aliases):
            if requirement is not None and (problem := requirement(fusion)):
                return problem
        return None


_SCATTERS = "scatters with the same indices, whose updates may be made {}"

FAMILIES: dict[str, Family] = {
    family.emitter.NAME: family
    for family in (
        Family(LoopEmitter, Loop, LoopSchedule, None, requirements.results_of_one_shape, requirements.own_elements),
        Family(
            ConcatenateEmitter,
            Concatenations,
            ConcatenateSchedule,
            heroes_alike("concatenations of one layout", requirements.concatenation_key),
            requirements.results_follow,
        ),
        Family(
            TiledConcatenateEmitter,
            Concatenations,
            TiledConcatenateSchedule,
            heroes_alike("concatenations of one layout", requirements.concatenation_key),
            requirements.results_follow,
        ),
        Family(InputSlicesEmitter, InputSlices, InputSlicesSchedule, None, requirements.any_results),
        Family(
            TransposeEmitter,
            Transposes,
            TransposeSchedule,
            heroes_alike("transposes of one canonical form, between rows and columns", requirements.transpose_key),
            requirements.results_follow_or_operands,
        ),
        Family(
            ScatterEmitter,
            Scatters,
            ScatterSchedule,
            heroes_alike(_SCATTERS.format("in any order"), requirements.scatter_key("scatter")),
            requirements.hero_results,
            requirements.heroes_operands,
        ),
        Family(
            SortedScatterEmitter,
            Scatters,
            SortedScatterSchedule,
            heroes_alike(
                _SCATTERS.format("after those with one place were combined"), requirements.scatter_key("scatter_sorted")
            ),
            requirements.hero_results,
            requirements.heroes_operands,
        ),
        Family(
            OrderedScatterEmitter,
            Scatters,
            OrderedScatterSchedule,
            heroes_alike(_SCATTERS.format("in order"), requirements.scatter_key("scatter_ordered")),
            requirements.hero_results,
            requirements.heroes_operands,
        ),
        Family(
            UpdateSliceEmitter,
            SliceUpdates,
            UpdateSliceSchedule,
            heroes_alike("updates of slices of one shape", requirements.slice_update_key),
            requirements.hero_results,
            requirements.heroes_operands,
        ),
        Family(
            RowReductionEmitter,
            Reductions,
            RowSchedule,
            heroes_alike("reductions of one shape, of rows", requirements.rows_key),
            requirements.without_packed(requirements.results_follow_or_beside),
        ),
        Family(
            RowsEmitter,
            RowStages,
            RowsSchedule,
            heroes_alike("reductions of one shape, of rows in any order", requirements.commutative_rows_key),
            requirements.without_packed(requirements.results_follow_or_beside),
        ),
        Family(
            ColumnReductionEmitter,
            Reductions,
            ColumnSchedule,
            heroes_alike("reductions of one shape, of columns", requirements.columns_key),
            requirements.without_packed(requirements.results_follow_or_beside),
        ),
        Family(
            RowScanEmitter,
            Scans,
            RowScanSchedule,
            heroes_alike("scans of one shape, of rows", requirements.scan_key(is_rows=True)),
            requirements.without_packed(requirements.results_follow),
        ),
        Family(
            ColumnScanEmitter,
            Scans,
            ColumnScanSchedule,
            heroes_alike("scans of one shape, of columns", requirements.scan_key(is_rows=False)),
            requirements.without_packed(requirements.results_follow),
        ),
        Family(
            RecurrenceEmitter,
            Recurrences,
            RecurrenceSchedule,
            heroes_alike("one loop", requirements.loop_key),
            requirements.any_results,
        ),
    )
}
"""Every family by the name of its emitter."""


def schedule_kernels(planned: ir.Module, device: Device, options: Options) -> None:
    """Write the schedules of all fusions of a module of level ``fusions``: what the text or the options leave open.

    Raises `InvalidInput` for a fusion that is none of its emitter's, and for a schedule that it cannot have.
    """
    named = {ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation for op in planned.body.operations}
    fusions = {name: op for name, op in named.items() if attributes.EMITTER in op.attributes}
    for name in options.schedules:
        if name not in fusions:
            known = ", ".join(fusions) or "none"
            raise InvalidInput(f"option schedules: there is no fusion '{name}'; the fusions are: {known}")
    for name, function in fusions.items():
        with function.context, ir.Location.unknown(), errors_at(function):
            _schedule_kernel(Fusion.of(function, device, options), function, options.schedules.get(name, {}))


def _schedule_kernel(fusion: Fusion, function: ir.Operation, fixed: Mapping[str, int]) -> None:
    family = _family(function)
    if problem := family.problem(fusion):
        raise InvalidInput(f"fusion @{fusion.name} of emitter '{family.emitter.NAME}': {problem}")
    given = function.attributes.get(attributes.SCHEDULE)
    values = {**({} if given is None else attributes.schedule_values(given)), **fixed}
    try:
        schedule = family.schedule.made(values, family.facts(fusion))
    except InvalidInput as error:
        message = f"fusion @{fusion.name} of emitter '{family.emitter.NAME}': {error.message}"
        raise InvalidInput(message, error.location) from None
    function.attributes[attributes.SCHEDULE] = attributes.schedule_attribute(schedule.values)


def _family(function: ir.Operation) -> Family:
    name = ir.StringAttr(function.attributes[attributes.EMITTER]).value
    if name not in FAMILIES:
        raise InvalidInput(f"unknown emitter '{name}'; expected one of {', '.join(FAMILIES)}")
    return FAMILIES[name]


def emitter_of(function: ir.Operation, device: Device, options: Options) -> Emitter:
    """Return the emitter of a fusion that was scheduled."""
    family, values = _family(function), attributes.schedule_values(function.attributes[attributes.SCHEDULE])
    return family.emitter(family.facts(Fusion.of(function, device, options)), family.schedule(**values))


def emit_kernel(function: ir.Operation, device: Device, options: Options) -> ir.Module:
    """Return a new module of level ``emitted`` with the kernel of a fusion that was scheduled, in its context.

    Raises `Unsupported` if an operation has no scalar code, and if there are more arrays than a launch takes.
    """
    fusion = Fusion.of(function, device, options)
    arrays = len(fusion.body.arguments) + len(fusion.results)
    if arrays * POINTER_BYTES > device.parameter_bytes:
        most = device.parameter_bytes // POINTER_BYTES
        raise Unsupported(f"a kernel reads and writes {arrays} arrays, of which a launch takes {most} at most")
    with function.context, ir.Location.unknown(), errors_at(function):
        module = ir.Module.create()
        module.operation.attributes[attributes.LEVEL] = ir.StringAttr.get("emitted")
        with ir.InsertionPoint(module.body):
            emitter_of(function, device, options).emit()
    return module


@contextmanager
def errors_at(function: ir.Operation) -> Iterator[None]:
    """Say of errors which fusion they are of, and where it is."""
    try:
        yield
    except XgpuError as error:
        error.location = error.location or source_of(function)
        raise
    except Exception as error:
        name = ir.StringAttr(function.attributes["sym_name"]).value
        emitter = ir.StringAttr(function.attributes[attributes.EMITTER]).value
        reason = f"emitter '{emitter}' cannot make fusion @{name}: {type(error).__name__}: {error}"
        raise CompilerError(reason, source_of(function)) from error
