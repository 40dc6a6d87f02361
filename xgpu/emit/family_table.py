"""The one table of the families of kernels, and what it is for.

The planner asks it which family a kernel is of, and has each fusion of level ``fusions`` name it, as its emitter. The
fusion is then checked against what its family says of it, scheduled, and emitted.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.emit.base import Emitter, Fusion
from xgpu.emit.families.attention.attention import ATTENTION
from xgpu.emit.families.attention.sums import SUMS
from xgpu.emit.families.concatenate import CONCATENATIONS
from xgpu.emit.families.concatenate_tiled import TILED_CONCATENATIONS
from xgpu.emit.families.input_slices import INPUT_SLICES
from xgpu.emit.families.loop import LOOPS
from xgpu.emit.families.parts import PARTS, Parts, PartsSchedule
from xgpu.emit.families.products.product import PRODUCTS
from xgpu.emit.families.products.warp_product import WARP_PRODUCTS
from xgpu.emit.families.recurrence import RECURRENCES
from xgpu.emit.families.reductions.columns import COLUMN_PROGRAMS
from xgpu.emit.families.reductions.reduce_column import COLUMN_REDUCTIONS
from xgpu.emit.families.reductions.reduce_row import ROW_REDUCTIONS
from xgpu.emit.families.reductions.rows import ROW_PROGRAMS
from xgpu.emit.families.scans.scan_column import COLUMN_SCANS
from xgpu.emit.families.scans.scan_row import ROW_SCANS
from xgpu.emit.families.scatter import ORDERED_SCATTERS, SCATTERS
from xgpu.emit.families.scatter_shared import SHARED_SCATTERS
from xgpu.emit.families.scatter_sorted import SORTED_SCATTERS
from xgpu.emit.families.transpose import TRANSPOSES
from xgpu.emit.families.update_slice import SLICE_UPDATES
from xgpu.emit.family import Family
from xgpu.emit.schedule import Schedule
from xgpu.errors import CompilerError, InvalidInput, Unsupported, XgpuError, did_you_mean
from xgpu.hlo.source_location import source_of
from xgpu.options import Options
from xgpu.structure import callees

POINTER_BYTES = 8


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        SORTED_SCATTERS,
        SHARED_SCATTERS,
        SCATTERS,
        ORDERED_SCATTERS,
        SLICE_UPDATES,
        ATTENTION,
        SUMS,
        PRODUCTS,
        WARP_PRODUCTS,
        RECURRENCES,
        ROW_REDUCTIONS,
        COLUMN_REDUCTIONS,
        ROW_SCANS,
        COLUMN_SCANS,
        ROW_PROGRAMS,
        COLUMN_PROGRAMS,
        INPUT_SLICES,
        TRANSPOSES,
        CONCATENATIONS,
        TILED_CONCATENATIONS,
        PARTS,
        LOOPS,
    )
}
"""Every family by its name, in the order in which the planner asks which one a kernel is of.

Scatters whose updates have runs, or few places, come before those in any order, and these before those that need one.
A transpose is asked for before a concatenation, as loops read concatenations well more often. Loops compute what is
left.
"""


def schedule_kernels(planned: ir.Module, device: Device, options: Options) -> None:
    """Write the schedules of all fusions of a module of level ``fusions``: what the text or the options leave open.

    Raises `InvalidInput` for a fusion that is none of its emitter's, and for a schedule that it cannot have.
    """
    named = {ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation for op in planned.body.operations}
    fusions = {name: op for name, op in named.items() if attributes.EMITTER in op.attributes}
    for name in options.schedules:
        if name not in fusions:
            known = ", ".join(fusions) or "none"
            near = did_you_mean(name, fusions)
            raise InvalidInput(f"option schedules: there is no fusion {name!r}{near}; the fusions are: {known}")
    parts = _parts(fusions.values())
    for name, function in fusions.items():
        if function in parts:
            continue
        with function.context, ir.Location.unknown(), errors_at(function):
            _schedule_kernel(Fusion.of(function, device, options), function, options.schedules.get(name, {}))


def _parts(fusions: Iterable[ir.Operation]) -> set[ir.Operation]:
    """Return the fusions that are parts of others, but have none: their schedules are made with those."""
    of_parts = [each for each in fusions if ir.StringAttr(each.attributes[attributes.EMITTER]).value == PARTS.name]
    return {part for kernel in of_parts for part in callees(kernel)} - {*of_parts}


def _schedule_kernel(fusion: Fusion, function: ir.Operation, fixed: Mapping[str, int]) -> None:
    family = _family(function)
    if problem := family.problem(fusion):
        raise InvalidInput(f"fusion @{fusion.name} of emitter '{family.name}': {problem}")
    given = function.attributes.get(attributes.SCHEDULE)
    values = {**({} if given is None else attributes.schedule_values(given)), **fixed}
    facts = family.facts(fusion)
    try:
        schedule = (None if values else _measured(fusion, family, facts)) or family.schedule.made(values, facts)
    except InvalidInput as error:
        message = f"fusion @{fusion.name} of emitter '{family.name}': {error.message}"
        raise InvalidInput(message, error.location) from None
    function.attributes[attributes.SCHEDULE] = attributes.schedule_attribute(schedule.values)
    if isinstance(facts, Parts) and isinstance(schedule, PartsSchedule):
        for part, its_own in zip(facts.parts, facts.schedules(schedule.threads), strict=True):
            part.function.attributes[attributes.SCHEDULE] = attributes.schedule_attribute(its_own.values)


def _measured(fusion: Fusion, family: Family, facts: Any) -> Schedule | None:
    """Return the schedule that a hero says was measured to be the fastest; None if there is none, or it does not fit.

    It was measured with what followed the hero before it was known which other kernels there are.
    """
    given = [hero.attributes[attributes.SCHEDULE] for hero in fusion.heroes if attributes.SCHEDULE in hero.attributes]
    with suppress(InvalidInput):
        return next((family.schedule.made(attributes.schedule_values(each), facts) for each in given), None)
    return None


def schedules_to_measure(function: ir.Operation, device: Device, options: Options) -> list[dict[str, int]]:
    """Return the numbers of the schedules of a fusion that are worth measuring."""
    family = _family(function)
    return [each.values for each in family.schedule.candidates(family.facts(Fusion.of(function, device, options)))]


def seconds_by_schedule(function: ir.Operation, device: Device, options: Options) -> float | None:
    """Return how long the kernel of a scheduled fusion takes, about; None where its schedule does not tell."""
    family = _family(function)
    schedule = family.schedule(**attributes.schedule_values(function.attributes[attributes.SCHEDULE]))
    return schedule.seconds(family.facts(Fusion.of(function, device, options)))


def _family(function: ir.Operation) -> Family:
    name = ir.StringAttr(function.attributes[attributes.EMITTER]).value
    if name not in FAMILIES:
        near = did_you_mean(name, FAMILIES)
        raise InvalidInput(f"unknown emitter '{name}'{near}; expected one of {', '.join(FAMILIES)}")
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
        module.operation.attributes[attributes.LEVEL] = ir.StringAttr.get(_family(function).level)
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
