"""Kernels side by side in one launch: each block works on one *part*, a fusion that could have a kernel of its own.

A part has its own family and schedule, and as many blocks as its kernel would have. A block finds its part by comparing
its number in as few steps as there are bits in the number of parts, so that the threads of a warp never part ways. All
parts have blocks of one size, whose shared memory is that of the part that needs most.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Self, cast

from xgpu import ir
from xgpu.costs.registers import most_threads
from xgpu.costs.time import bytes_per_instruction
from xgpu.costs.values import elements, instructions
from xgpu.device import Device
from xgpu.dialects.attributes import ALIASES, EMITTER, SCHEDULE, schedule_values
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.families.loop import LOOPS
from xgpu.emit.families.reductions.columns import COLUMN_PROGRAMS
from xgpu.emit.families.reductions.reduce_column import COLUMN_REDUCTIONS
from xgpu.emit.families.reductions.reduce_row import ROW_REDUCTIONS
from xgpu.emit.families.reductions.rows import ROW_PROGRAMS
from xgpu.emit.families.update_slice import SLICE_UPDATES
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import (
    KernelBuilder,
    KernelTile,
    PartBuilder,
    PartEmitter,
    Tensor,
    choose,
    entry_function,
)
from xgpu.emit.reduction_tiling import power_of_two_above
from xgpu.emit.scalar.op import compare_integers, constant
from xgpu.emit.schedule import BlockSchedule, Schedule, whole_number
from xgpu.errors import InvalidInput
from xgpu.fusion.grouping.executed import kernel_work
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import callees

_CALL = "func.call"
_PARTS = (ROW_REDUCTIONS, COLUMN_REDUCTIONS, ROW_PROGRAMS, COLUMN_PROGRAMS, SLICE_UPDATES, LOOPS)
"""The families that parts may be of: their emitters are `PartEmitter`, their schedules `BlockSchedule`."""
_FAMILIES: Mapping[str, Family] = {family.name: family for family in _PARTS}


@dataclass(frozen=True, eq=False)
class Part:
    """A fusion that some blocks of a kernel compute: from its parameters of the numbers ``inputs``, its ``outputs``."""

    function: ir.Operation
    fusion: Fusion
    inputs: tuple[int, ...]
    outputs: range

    @property
    def family(self) -> Family:
        """The family that its function names."""
        return _FAMILIES[ir.StringAttr(self.function.attributes[EMITTER]).value]

    @property
    def aliases(self) -> tuple[int, ...]:
        """For each output, which of its own parameters it is an update in place of; -1 for none."""
        return self.fusion.aliases or (-1,) * len(self.outputs)

    def traffic(self, target: Device) -> float:
        """Return the bytes that a device moves in the time of this part: its own, or those of its instructions."""
        operations = [op.operation for op in self.fusion.body.operations]
        issued = sum(map(instructions, operations))
        largest = max((elements(value) for op in operations for value in op.operands), default=0)
        each, moved = bytes_per_instruction(target), self.fusion.facts.moved_bytes
        if issued * largest * each <= moved:
            return moved
        return max(moved, kernel_work(self.function, self.family, instructions) * each)

    def problem(self) -> str | None:
        """Return why this can be no part of a kernel, None if it can."""
        name = self.function.attributes.get(EMITTER)
        if not isinstance(name, ir.StringAttr) or name.value not in _FAMILIES:
            return f"expected its {EMITTER} to be {', '.join(_FAMILIES)}"
        return self.family.problem(self.fusion)

    @cached_property
    def _known(self) -> dict[Device, Any]:
        return {}

    @cached_property
    def _chosen(self) -> dict[Device, BlockSchedule]:
        return {}

    def facts(self, target: Device) -> Any:
        """Return what its family knows of it on a device, or on a share of one."""
        if target not in self._known:
            self._known[target] = self.family.facts(replace(self.fusion, device=target))
        return self._known[target]

    def schedule(self, target: Device, threads: int | None = None) -> BlockSchedule:
        """Return its schedule on a share of a device, with so many threads in a block if that is given.

        Raises `InvalidInput` for numbers given by the text or the options that it cannot have.
        """
        found = self._own(target)
        if threads is None:
            return found
        if found.block_threads > threads:
            target = replace(target, max_threads_per_block=threads)
            found = self._own(target)
        found = self._made(found.in_block(threads, self.facts(target)).values | self._given, target)
        if found.block_threads != threads:
            raise InvalidInput(f"expected blocks of {threads} threads, as its kernel has, not of {found.block_threads}")
        return found

    @cached_property
    def _given(self) -> dict[str, int]:
        """The numbers of its schedule that the text says, or the options."""
        text = self.function.attributes.get(SCHEDULE)
        given = {} if text is None else schedule_values(text)
        return {**given, **self.fusion.options.schedules.get(self.fusion.name, {})}

    def _own(self, target: Device) -> BlockSchedule:
        """Return the schedule of a kernel of its own."""
        if target not in self._chosen:
            self._chosen[target] = self._made(self._given, target)
        return self._chosen[target]

    def _made(self, given: Mapping[str, int], target: Device) -> BlockSchedule:
        made = self.family.schedule.made(given, self.facts(target))
        assert isinstance(made, BlockSchedule)
        return made


@dataclass(frozen=True)
class Parts:
    """A fusion of calls, each of the fusion of a part."""

    fusion: Fusion

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, in the order of their blocks and results."""
        return tuple(_parts(self.fusion))

    def share(self, part: Part) -> Device:
        """Return the share of the device that a part has by the time that it takes alone."""
        device = self.fusion.device
        return replace(device, sm_count=max(1, round(device.sm_count * self._shares[part])))

    @cached_property
    def _shares(self) -> dict[Part, float]:
        traffic = [part.traffic(self.fusion.device) for part in self.parts]
        return {part: each / max(1, sum(traffic)) for part, each in zip(self.parts, traffic, strict=True)}

    @cached_property
    def _schedules(self) -> dict[int, list[BlockSchedule]]:
        return {}

    def schedules(self, threads: int) -> list[BlockSchedule]:
        """Return the schedules of the parts if the kernel has so many threads in a block.

        Raises `InvalidInput` if a part has none.
        """
        if threads not in self._schedules:
            self._schedules[threads] = [self._schedule(part, threads) for part in self.parts]
        return self._schedules[threads]

    def _schedule(self, part: Part, threads: int) -> BlockSchedule:
        try:
            return part.schedule(self.share(part), threads)
        except InvalidInput as error:
            emitter = part.family.name
            raise InvalidInput(f"part @{part.fusion.name} of emitter '{emitter}': {error.message}") from None


def _parts(fusion: Fusion) -> Iterator[Part]:
    parameters: dict[ir.Value, int] = {value: number for number, value in enumerate(fusion.body.arguments)}
    *calls, _ = (op.operation for op in fusion.body.operations)
    ends = accumulate(len(call.results) for call in calls)
    for call, function, end in zip(calls, callees(fusion.body.owner.operation), ends, strict=True):
        inputs = tuple(parameters[value] for value in call.operands)
        outputs = range(end - len(call.results), end)
        yield Part(function, Fusion.of(function, fusion.device, fusion.options), inputs, outputs)


@dataclass(frozen=True)
class PartsSchedule(Schedule):
    """The size of the blocks, which each part shares by its own schedule."""

    threads: int = whole_number("Threads of a block of every part.", most=1024)

    @classmethod
    def of(cls, facts: Parts) -> Self:
        """Choose the threads of the part that has most in a kernel of its own, if all parts have registers for that."""
        shares = [(part, facts.share(part)) for part in facts.parts]
        own = [part.schedule(share) for part, share in shares]
        threads = {schedule.block_threads for schedule in own}
        if len(threads) == 1:
            return cls(*threads)
        registers = max(each.registers(part.facts(share)) for each, (part, share) in zip(own, shares, strict=True))
        return cls(min(power_of_two_above(max(threads)), most_threads(registers, facts.fusion.device)))

    def problems(self, facts: Parts) -> Iterator[str]:
        """Every part has a schedule for such blocks."""
        try:
            facts.schedules(self.threads)
        except InvalidInput as error:
            yield f"threads = {self.threads}: {error.message}"


class PartsEmitter:
    """Emits kernels side by side in one launch."""

    NAME = "parts"

    def __init__(self, facts: Parts, schedule: PartsSchedule):
        self.fusion = facts.fusion
        self.parts = facts.parts
        self.schedule = schedule
        self._emitters = [_emitter(part) for part in facts.parts]

    def launch_dimensions(self) -> LaunchDimensions:
        """The blocks of each part, one part after the other."""
        return LaunchDimensions.along_x(self._blocks[-1].upper + 1, self.schedule.threads)

    @property
    def grids(self) -> list[tuple[int, int, int]]:
        """The blocks of each part, as (x, y, z)."""
        return [emitter.launch_dimensions().grid for emitter in self._emitters]

    @cached_property
    def _blocks(self) -> list[Interval]:
        """The numbers of the blocks of each part."""
        counts = [blocks for blocks, _, _ in self.grids]
        return [Interval(end - count, end - 1) for count, end in zip(counts, accumulate(counts), strict=True)]

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return the map of the part that an output is of, whose blocks alone the map has."""
        number = next(number for number, part in enumerate(self.parts) if output in part.outputs)
        threads, _ = self.launch_dimensions().ranges
        blocks, emitter = self._blocks[number], self._emitters[number]
        own = IndexingMap((threads, blocks), (), (dim(0), dim(1) - blocks.lower))
        return own.compose(emitter.thread_to_output(output - self.parts[number].outputs.start)).simplify()

    def emit(self) -> None:
        """Write the entry function, then the functions of all parts."""
        functions = [each for emitter in self._emitters for each in emitter.functions]
        with entry_function(self.fusion, self, functions) as kernel:
            tiles = kernel.shared_tiles(_tiles_of_any(self._emitters))
            self._write(kernel, tiles, range(len(self.parts)))

    def _write(self, kernel: KernelBuilder, tiles: Sequence[Tensor], parts: range) -> None:
        """Write some parts, and the branches by which a block finds its own."""
        if len(parts) == 1:
            part = self.parts[parts[0]]
            inputs, outputs = [kernel.inputs[i] for i in part.inputs], [kernel.outputs[i] for i in part.outputs]
            self._emitters[parts[0]].write(PartBuilder(kernel, inputs, outputs, self._blocks[parts[0]], tiles))
            return
        block, middle = kernel.position[1], parts[len(parts) // 2]
        is_before = compare_integers("ult", block, constant(block.type, self._blocks[middle].lower))
        outputs = [kernel.outputs[number] for part in parts for number in self.parts[part].outputs]
        choose(
            is_before,
            outputs,
            lambda: self._write(kernel, tiles, range(parts[0], middle)),
            lambda: self._write(kernel, tiles, range(middle, parts[-1] + 1)),
        )


def _emitter(part: Part) -> PartEmitter:
    numbers = schedule_values(part.function.attributes[SCHEDULE])
    return cast(PartEmitter, part.family.emitter(part.family.facts(part.fusion), part.family.schedule(**numbers)))


def _tiles_of_any(emitters: Sequence[PartEmitter]) -> list[KernelTile]:
    """Return tiles of which each emitter finds one of the type and size of each of its own: blocks are of one only."""
    found: dict[ir.Type, list[int]] = {}
    for emitter in emitters:
        own: dict[ir.Type, list[int]] = {}
        for tile in emitter.tiles:
            own.setdefault(tile.type, []).append(tile.size)
        for type_, sizes in own.items():
            largest = found.setdefault(type_, [])
            largest += [0] * (len(sizes) - len(largest))
            largest[: len(sizes)] = map(max, sizes, largest)
    return [KernelTile(size, type_) for type_, sizes in found.items() for size in sizes]


def _calls_of_parts(fusion: Fusion) -> str | None:
    """Require calls of fusions of the kernel's own, with its parameters, whose results are its own in order."""
    *calls, end = (op.operation for op in fusion.body.operations)
    if not calls or any(call.name != _CALL for call in calls):
        return "expected calls of its parts alone"
    if [value for call in calls for value in call.results] != list(end.operands):
        return "expected the results of its parts, in order"
    parameters = set(fusion.body.arguments)
    if any(value not in parameters for call in calls for value in call.operands):
        return "expected its parts to be called with its parameters"
    if len({*callees(fusion.body.owner.operation)}) != len(calls):
        return "expected each of its parts to be called once"
    for part in _parts(fusion):
        if problem := part.problem():
            return f"part @{part.fusion.name}: {problem}"
    return None


def _aliases_of_parts(fusion: Fusion) -> str | None:
    """Require the aliases of the parts, of parameters that no other part reads."""
    found: list[int] = []
    readers: dict[int, int] = {}
    for part in _parts(fusion):
        found += [part.inputs[number] if number >= 0 else -1 for number in part.aliases]
        for number in part.inputs:
            readers[number] = readers.get(number, 0) + 1
    updated = [number for number in found if number >= 0]
    if tuple(found) != (fusion.aliases or (-1,) * len(found)):
        return f"expected {ALIASES} = {found}, what its parts update"
    if any(readers[number] > 1 for number in updated):
        return "expected what a part updates in place to be given to that part alone, and once"
    return None


PARTS = Family(
    why=Reason("independent kernels, of which each would take less time than its launch"),
    is_cooperative=False,
    parts=_PARTS,
    emitter=PartsEmitter,
    facts=Parts,
    schedule=PartsSchedule,
    results=_calls_of_parts,
    aliases=_aliases_of_parts,
)
