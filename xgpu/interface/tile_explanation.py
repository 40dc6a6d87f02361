"""Explains a kernel of level ``tiles``: what was decided about its tiles, and what limits how fast it is."""

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile

from xgpu import ir
from xgpu.block_plan.kernel import kernels_of
from xgpu.costs.block_programs import block_program_seconds, resident_blocks
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp, IndexTileOp, InsertTileOp, StepsOp, TileOp
from xgpu.driver.kernel import ProgramKernel, advance
from xgpu.emit.families.blocks.schedule import EMITTER_NAME
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.indexing.access import shape_of
from xgpu.interface.api import Compiled
from xgpu.interface.memory_map import MemoryMap
from xgpu.interface.tile_work import multiplied, products_per_second, work_of
from xgpu.levels import pipeline
from xgpu.passes.framework.base import functions
from xgpu.passes.lower_tiles import LowerTiles
from xgpu.structure import dtype_of, walk
from xgpu.target.nvptx.cubin import find_ptxas

_PRODUCT = "stablehlo.dot_general"
_LEVEL = "tiles"


def explain_tiles(program: Compiled) -> str:
    """Return the plan of each kernel of level ``tiles``. Raises InvalidInput for a program that has others."""
    if not all(_LEVEL in kernel.modules for kernel in program.kernels):
        raise InvalidInput(f"expected kernels of level 'tiles'; this one was given at level '{program.given_level}'")
    return "\n\n".join(_Explanation(kernel, program).text for kernel in program.kernels)


def planned_module(kernel: ProgramKernel) -> ir.Module:
    """Return a kernel of level ``tiles`` with all that the planning passes decide about it."""
    module = kernel.module(_LEVEL)
    passes = tuple(takewhile(lambda each: not each[0].startswith(LowerTiles.NAME), pipeline.LOWER_TILES))
    with module.context, ir.Location.unknown():
        return advance(module, pipeline.steps(passes, kernel.device, kernel.options), kernel.times)


class _Explanation:
    """The plan of one kernel as text."""

    def __init__(self, kernel: ProgramKernel, program: Compiled):
        self._kernel = kernel
        self._is_planned = kernel.emitter == EMITTER_NAME
        self._module = planned_module(kernel) if self._is_planned else kernel.module(_LEVEL)
        with self._module.context:
            (self._function,) = functions(self._module)
            names = [each.name for each in (*program.arguments, *program.results)]
            self._names = dict(zip(self._function.entry_block.arguments, names, strict=False))
            (blocks,) = walk(self._function.operation, BlocksOp.OPERATION_NAME)
            assert isinstance(blocks.opview, BlocksOp)
            self._blocks: BlocksOp = blocks.opview

    @property
    def text(self) -> str:
        """The kernel, its tiles, its steps, its shared memory and its limits."""
        with self._module.context, ir.Location.unknown():
            lines = [self._head(), *self._tiles(), *self._steps()]
            if self._is_planned:
                lines += self._memory()
            return "\n".join([*lines, *self._registers(), *self._limits()])

    def _head(self) -> str:
        grid, kernel = " x ".join(map(str, self._blocks.grid)), self._kernel
        values = attributes.schedule_values(self._function.operation.attributes[attributes.SCHEDULE])
        numbers = ", ".join(f"{name} = {str(value).lower()}" for name, value in values.items())
        threads = math.prod(kernel.block)
        return f"kernel {kernel.name}: emitter {kernel.emitter}, grid {grid}, {threads} threads ({numbers})"

    def _ops(self) -> Iterator[tuple[ir.Operation, int]]:
        """Yield the operations of blocks, each with how often a block runs it."""
        for each in list(self._blocks.body.operations)[:-1]:
            view = each.operation.opview
            yield each.operation, 1
            if isinstance(view, StepsOp):
                for inner in list(view.body.operations)[:-1]:
                    yield inner.operation, view.count

    def _tiles(self) -> list[str]:
        rows = [["tile", "type", "product", "place", "strides", "panel", "swizzle", "copy", "source"]]
        for op, _ in self._ops():
            place = _words(op, attributes.PLACE)
            if isinstance(op.opview, InsertTileOp) or (place and set(place) == {attributes.COMPUTED}):
                continue
            if not place and not isinstance(op.opview, TileOp) and op.name != _PRODUCT:
                continue
            numbers = [_numbers(op, name) for name in (attributes.LAYOUT, attributes.PANEL, attributes.SWIZZLE)]
            copy, product = (_entry(_words(op, name), 0) for name in (attributes.COPY, attributes.PRODUCT))
            for number, result in enumerate(op.results):
                decided = [_entry(each, number) for each in (place, *numbers)]
                rows.append([self._name(op, number), _type(result), product, *decided, copy, _at(op)])
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        kept = [column for column in range(len(rows[0])) if any(row[column] for row in rows[1:])]
        return ["  " + "  ".join(row[column].ljust(widths[column]) for column in kept).rstrip() for row in rows]

    def _name(self, op: ir.Operation, number: int) -> str:
        view = op.opview
        if isinstance(view, TileOp):
            return f"{self._names.get(view.array, 'array')}"
        if isinstance(view, StepsOp):
            return f"carried {number}"
        if isinstance(view, IndexTileOp):
            return "numbers"
        return "product" if op.name == _PRODUCT else op.name.removeprefix("stablehlo.")

    def _steps(self) -> list[str]:
        lines = []
        for op, _ in self._ops():
            if not isinstance(op.opview, StepsOp):
                continue
            inside = [each.operation for each in op.opview.body.operations]
            text = f"  steps{_in(op)}: {op.opview.count}"
            if attributes.STAGES in op.attributes:
                text += f", stages {attributes.int_of(op.attributes[attributes.STAGES])}"
            if attributes.PREFETCH in op.attributes:
                text += f", {attributes.int_of(op.attributes[attributes.PREFETCH])} ahead"
            if self._is_planned:
                text += f", barriers a step {sum(attributes.MEET in each.attributes for each in inside)}"
            lines.append(text)
        return lines

    def _memory(self) -> list[str]:
        """Return where tiles are in shared memory, and when."""
        most, used = self._kernel.device.shared_bytes_optin, self._shared_bytes()
        (kernel,) = kernels_of(self._module)
        return [
            f"  shared memory: {used} bytes of {most}",
            *(f"    {line}" for line in MemoryMap(kernel, self._called).lines()),
        ]

    def _called(self, op: ir.Operation, number: int) -> str:
        """Return what a tile is called, or an operation with its line if it has no ``number``."""
        if number >= 0:
            return self._name(op, number)
        place = source_of(op)
        at = f" :{place.line}" if place is not None else ""
        if isinstance(op.opview, StepsOp):
            return f"steps{at}"
        return f"{'store' if isinstance(op.opview, InsertTileOp) else self._name(op, 0)}{at}"

    def _registers(self) -> list[str]:
        """Return what ptxas says of a thread; nothing where it is not installed."""
        if find_ptxas() is None:
            return []
        made = self._kernel.assembled
        return [f"  registers: {made.registers} a thread, {made.spill_store_bytes} bytes of them in memory"]

    def _shared_bytes(self) -> int:
        kernel = self._kernel
        lowered = kernel.module("lowered")
        given = next(op.operation for op in lowered.body.operations if attributes.KERNEL in op.operation.attributes)
        name = attributes.SHARED_BYTES
        return attributes.int_of(given.attributes[name]) if name in given.attributes else 0

    def _limits(self) -> list[str]:
        device, count = self._kernel.device, math.prod(self._blocks.grid)
        arrays = list(self._function.entry_block.arguments)
        least = sum(_bytes(value) for value in arrays)
        tiles = sum(_bytes(op.results[0]) * times for op, times in self._ops() if isinstance(op.opview, TileOp)) * count
        memory, seconds = least / device.memory_bandwidth, 0.0
        products = [(op, times * count) for op, times in self._ops() if op.name == _PRODUCT]
        lines = [f"  memory: {least:,} bytes of arrays, {memory * 1e6:.2f} us; blocks read {tiles:,} bytes of tiles"]
        if products:
            operations = sum(2 * multiplied(op) * times for op, times in products)
            seconds = sum(multiplied(op) * times / products_per_second(op, device) for op, times in products)
            lines.append(f"  products: {operations:,} operations, {seconds * 1e6:.2f} us")
        waves = math.ceil(count / device.sm_count)
        at_least = max(memory, seconds, device.launch_seconds) * 1e6
        lines.append(f"  at least {at_least:.2f} us on {device.name}; {count} blocks, {waves} for each multiprocessor")
        return lines + (self._expected(max(memory, seconds), memory, seconds) if self._is_planned else [])

    def _expected(self, least: float, memory: float, products: float) -> list[str]:
        """Return the time by the cost model, and which part of it the limits alone would take."""
        device, count = self._kernel.device, math.prod(self._blocks.grid)
        (kernel,) = kernels_of(self._module)
        resident = resident_blocks(kernel.threads, self._shared_bytes(), device)
        seconds = max(least, block_program_seconds(work_of(kernel, device), count, resident, device))
        shares = f"memory {memory / seconds:.0%}, products {products / seconds:.0%}"
        return [f"  expected {seconds * 1e6:.2f} us, a rough estimate; limits by themselves: {shares} of it"]


def _bytes(value: ir.Value) -> int:
    return math.prod(shape_of(value)) * -(-dtype_of(value).storage_bits // 8)


def _type(value: ir.Value) -> str:
    return f"{dtype_of(value)}[{','.join(map(str, shape_of(value)))}]"


def _words(op: ir.Operation, name: str) -> list[str]:
    given = op.attributes.get(name)
    entries = list(given) if isinstance(given, ir.ArrayAttr) else [given]
    return [each.value for each in entries if isinstance(each, ir.StringAttr)]


def _numbers(op: ir.Operation, name: str) -> list[str]:
    given = op.attributes.get(name)
    entries = list(given) if isinstance(given, ir.ArrayAttr) else [given]
    return [", ".join(map(str, each)) for each in entries if isinstance(each, ir.DenseI64ArrayAttr)]


def _entry(entries: Sequence[str], number: int) -> str:
    return entries[number] if number < len(entries) else ""


def _at(op: ir.Operation) -> str:
    location = source_of(op)
    return f"{location.file}:{location.line}" if location is not None else ""


def _in(op: ir.Operation) -> str:
    return f" ({_at(op)})" if _at(op) else ""
