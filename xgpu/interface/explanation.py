"""Explains a compiled program: its kernels, their traffic and resources, and what falls back to XLA and why."""

import math
from collections.abc import Iterable, Mapping, Sequence

from xgpu import ir
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.costs.time import seconds_to_move
from xgpu.costs.traffic import moved_bytes
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.driver.compiler import Launch
from xgpu.driver.kernel import ProgramKernel
from xgpu.driver.nest_programs import remarks_on_loops
from xgpu.emit.families.parts import PartsEmitter
from xgpu.emit.family_table import FAMILIES, emitter_of
from xgpu.errors import InvalidInput, SourceLocation
from xgpu.fusion.fallback import VIEWS, fallback_reason
from xgpu.fusion.grouping.decisions import Verdict
from xgpu.fusion.loops.steps import read_by_loop
from xgpu.fusion.planner import make_plan
from xgpu.hlo.source_location import source_of
from xgpu.interface.api import Compiled
from xgpu.interface.coalescing import sectors_of_loop
from xgpu.interface.kernel_work import kernel_seconds
from xgpu.records import dataclass
from xgpu.structure import callees, nested

_DIALECTS = ("stablehlo.", "chlo.")
_NO_OPERATION = ("stablehlo.return", "stablehlo.constant")
_AROUND = ("func.func", *CONTROL_FLOW)


@dataclass(frozen=True)
class KernelReport:
    """A kernel that the program launches ``launches`` times, in loops for each iteration.

    ``bytes`` is what a launch reads and writes, at most, ``seconds`` how long that takes at full bandwidth, or what its
    threads execute if that takes longer, or products as their schedules were chosen. Of an array
    that is updated in place the updates count, and of one that is sliced or gathered from what is read of it.
    ``sectors`` is how many sectors of memory the warps of a loop touch for each that their accesses would fill, in its
    first block: 1 if all accesses coalesce. It is None for other kernels, which move elements between threads.
    ``schedule`` holds the numbers by which its threads share the work, as `Options.schedules` takes them. ``measured``
    is what a product in it took when it was chosen what computes it, empty if it was not measured, and ``expected``
    what it was expected to take, empty if nobody asked. ``parts`` are those that blocks of it compute side by side, if
    it has any.
    """

    name: str
    emitter: str
    operation: str
    source: SourceLocation | None
    grid: tuple[int, ...]
    block: tuple[int, ...]
    launches: int
    bytes: int
    seconds: float
    sectors: float | None
    schedule: Mapping[str, int]
    measured: str = ""
    expected: str = ""
    parts: tuple["KernelReport", ...] = ()


@dataclass(frozen=True)
class FallbackReport:
    """An operation that is left to XLA. ``measured`` and ``expected`` are as those of a `KernelReport`."""

    operation: str
    type: str
    source: SourceLocation | None
    reason: str
    measured: str = ""
    expected: str = ""


@dataclass(frozen=True)
class Explanation:
    """The parts of a program in the order of its text; ``str`` gives a table."""

    kernels: tuple[KernelReport, ...]
    fallbacks: tuple[FallbackReport, ...]

    def __str__(self) -> str:
        rows = [("kernel", "emitter", "grid x block", "bytes", "time/us", "sectors", "schedule", "makes")]
        rows += [
            (
                kernel.name if is_whole else f"  {kernel.name}",
                kernel.emitter,
                f"{math.prod(kernel.grid)} x {math.prod(kernel.block)}{_times(kernel.launches)}",
                f"{kernel.bytes:,}",
                f"{kernel.seconds * 1e6:.1f}",
                "" if kernel.sectors is None else f"{kernel.sectors:.2f}",
                ", ".join(f"{name} = {str(value).lower()}" for name, value in kernel.schedule.items()),
                f"{kernel.operation}{_at(kernel.source)}",
            )
            for whole in self.kernels
            for kernel, is_whole in ((whole, True), *((part, False) for part in whole.parts))
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)) for row in rows]
        if not self.kernels:
            lines = ["no kernels"]
        for kind in ("measured", "expected"):
            if found := [(kernel.name, text) for kernel in self.kernels if (text := getattr(kernel, kind))]:
                lines += ["", f"{kind}, with what follows the product:"]
                lines += [f"  {name}: {text}" for name, text in found]
        if self.fallbacks:
            lines += ["", "left to XLA:"]
            lines += [
                f"  {each.operation} of type {each.type}{_at(each.source)}: {each.reason}{_because(each)}"
                for each in self.fallbacks
            ]
        return "\n".join(line.rstrip() for line in lines)


def explain(program: Compiled) -> Explanation:
    """Return what ``program`` consists of. Raises `InvalidInput` if it was given at a later level than ``fusions``."""
    if program.planned is None:
        given = f"this one was given at level '{program.given_level}'"
        raise InvalidInput(f"programs of levels up to 'fusions' can be explained; {given}")
    fusions = _functions(program.planned)
    launches: dict[ProgramKernel, list[Launch]] = {}
    for launch in program.launches:
        launches.setdefault(launch.kernel, []).append(launch)
    # Emitters make types: signless ones for integers without a sign.
    with program.planned.context, ir.Location.unknown():
        kernels = tuple(_kernel(each, fusions[kernel.name]) for kernel, each in launches.items())
    left = tuple(
        FallbackReport(
            op.name, ", ".join(str(result.type) for result in op.results), source_of(op), reason, *_times_of(op)
        )
        for op in nested(fusions["main"])
        if op.name.startswith(_DIALECTS) and op.name not in VIEWS and (reason := _reason(op)) is not None
    )
    return Explanation(kernels, left)


def remarks(program: Compiled) -> str:
    """Return what the passes did not do to ``program`` and its kernels, and why, a line for each; empty if nothing."""
    lines = [f"  {kernel.name}: {remark}" for kernel in program.kernels for remark in kernel.remarks()]
    if "loops" in program.modules and program.kernels:
        kernel = program.kernels[0]
        on_loops = remarks_on_loops(program.modules["loops"], kernel.device, kernel.options)
        lines = [*(f"  {remark}" for remark in on_loops), *lines]
    return "\n".join(["remarks:", *lines]) if lines else ""


def plan_reasons(program: Compiled, target: Device, only_stored: bool) -> str:
    """Return what the planner decides on ``program``, and why, a line for each decision.

    ``only_stored``: why kernels store the values that they do. Raises `InvalidInput` for a program given with its plan.
    """
    if "prepared" not in program.modules:
        raise InvalidInput(
            f"the program was given at level '{program.given_level}', already planned: its text has no reasons"
        )
    plan = make_plan(program.modules["prepared"], FAMILIES.values(), target)
    lines = plan.why({Verdict.STORED} if only_stored else set(Verdict)) or ["nothing"]
    return "\n".join(["stored:" if only_stored else "plan:", *(f"  {line}" for line in lines)])


def _functions(module: ir.Module) -> dict[str, ir.Operation]:
    return {ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation for op in module.body.operations}


def summary(program: Compiled) -> str:
    """Return how many kernels of how many operations a program has, and how many operations are left to XLA."""
    launches = f"launches: {len(program.launches)}"
    if program.planned is None:
        return f"kernels: {len(program.kernels)}; {launches}"
    functions = _functions(program.planned)
    left = _operations(functions.pop("main"))
    fused = sum(map(_operations, functions.values()))
    return f"kernels: {len(program.kernels)}, of {fused} operations; {launches}; operations left to XLA: {left}"


def _operations(op: ir.Operation) -> int:
    """Return how many operations of StableHLO and CHLO, but for constants, there are inside ``op``."""
    names = [inner.name for inner in nested(op)]
    return sum(name.startswith(_DIALECTS) and name not in _NO_OPERATION for name in names)


def _reason(op: ir.Operation) -> str | None:
    """Return why ``op`` falls back to XLA; None for a part of another operation, such as the comparison of a sort."""
    is_part = op.name == "stablehlo.return" or (op.parent is not None and op.parent.name not in _AROUND)
    return None if is_part else fallback_reason(op)


def _kernel(launches: Sequence[Launch], fusion: ir.Operation) -> KernelReport:
    kernel = launches[0].kernel
    if not (functions := callees(fusion)):
        return _report(kernel, fusion, kernel.name, kernel.emitter, kernel.grid, kernel.aliases, len(launches))
    emitted = emitter_of(fusion, kernel.device, kernel.options)
    assert isinstance(emitted, PartsEmitter)
    parts = tuple(
        _report(kernel, function, part.fusion.name, part.family.name, grid, part.aliases, len(launches))
        for function, part, grid in zip(functions, emitted.parts, emitted.grids, strict=True)
    )
    moved = sum(part.bytes for part in parts)
    return KernelReport(
        kernel.name,
        kernel.emitter,
        ", ".join(dict.fromkeys(part.operation for part in parts)),
        parts[-1].source,
        kernel.grid,
        kernel.block,
        len(launches),
        moved,
        max(seconds_to_move(moved, kernel.device), *(part.seconds for part in parts)),
        None,
        attributes.schedule_values(fusion.attributes[attributes.SCHEDULE]),
        parts=parts,
    )


def _report(
    kernel: ProgramKernel,
    fusion: ir.Operation,
    name: str,
    emitter: str,
    grid: tuple[int, ...],
    aliases: Sequence[int],
    launches: int,
) -> KernelReport:
    """Return the report of a fusion: that of the whole of ``kernel``, or of a part, which some blocks compute."""
    body = fusion.regions[0].blocks[0]
    touched = sectors_of_loop(fusion, kernel.device)
    moved = moved_bytes(body, aliases, read_by_loop)
    *operations, end = (op.operation for op in body.operations)
    times = [_times_of(op) for op in operations]
    root = next((op for op in reversed(operations) if any(each in end.operands for each in op.results)), end)
    return KernelReport(
        name,
        emitter,
        root.name.removeprefix("stablehlo."),
        source_of(root),
        grid,
        kernel.block,
        launches,
        moved,
        kernel_seconds(fusion, moved, math.prod(grid) * math.prod(kernel.block), kernel.device, kernel.options),
        touched.sectors / touched.least if touched and touched.least else None,
        attributes.schedule_values(fusion.attributes[attributes.SCHEDULE]),
        _joined(measured for measured, _ in times),
        _joined(expected for _, expected in times),
    )


def _times_of(op: ir.Operation) -> tuple[str, str]:
    """Return what was measured of a product, and what was expected; empty text for what was not."""
    given = (op.attributes.get(name) for name in (attributes.MEASURED, attributes.EXPECTED))
    measured, expected = ("" if each is None else ir.StringAttr(each).value for each in given)
    return measured, expected


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


def _because(left: FallbackReport) -> str:
    found = [f"{kind}: {text}" for kind, text in (("measured", left.measured), ("expected", left.expected)) if text]
    return f" ({'; '.join(found)})" if found else ""


def _times(launches: int) -> str:
    return f", {launches} times" if launches > 1 else ""


def _at(source: SourceLocation | None) -> str:
    return "" if source is None else f" ({source.file}:{source.line})"
