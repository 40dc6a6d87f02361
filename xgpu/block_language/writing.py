"""Writes block programs: a module of level ``tiles`` with one kernel."""

import math
from collections.abc import Sequence
from typing import Any

from xgpu import ir
from xgpu.block_language import product_form
from xgpu.block_language.captured import line_of
from xgpu.block_language.parts import BodyParts, part_of
from xgpu.block_language.program import (
    BlockProgram,
    Decisions,
    NamedArrayType,
    Settings,
    index_p,
    plan_p,
    read_p,
    steps_p,
)
from xgpu.block_language.simple_operations import erase_unused, simply_written, take_turned_operands
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.attributes import schedule_attribute
from xgpu.dialects.block.tiles import BlocksOp, IndexTileOp, InsertTileOp, StepsOp, TileOp
from xgpu.dialects.xgpu import YieldOp
from xgpu.dtypes import dtype_of_numpy
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.families.blocks.schedule import EMITTER_NAME
from xgpu.emit.kernel_builder import assign, entry_function
from xgpu.errors import InvalidInput, SourceLocation
from xgpu.frontend.signature import ArgumentSpec, Source
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework.base import functions
from xgpu.records import dataclass
from xgpu.structure import defining_op, made

_TEXTS = ("copy", "place", "product")
_LISTS = ("layout", "panel", "swizzle", "warps")


@dataclass
class _Signature:
    """The kernel, as builders of entry functions know it."""

    program: BlockProgram
    NAME: str = EMITTER_NAME

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def aliases(self) -> tuple[int, ...]:
        return ()

    @property
    def parameter_types(self) -> list[ir.Type]:
        return [_signless(each) for each in self.program.inputs]

    @property
    def result_types(self) -> list[ir.Type]:
        return [_signless(each) for each in self.program.outputs]

    def launch_dimensions(self) -> LaunchDimensions:
        """One block for each point of the grid."""
        return LaunchDimensions.along_x(math.prod(self.program.grid), self.program.settings.threads)


def _signless(array: NamedArrayType) -> ir.Type:
    return ir.RankedTensorType.get(array.shape, ir.Type.parse(dtype_of_numpy(array.dtype).signless))


def _element(dtype: Any) -> ir.Type:
    return ir.Type.parse(dtype_of_numpy(dtype).mlir)


def tiles_source(program: BlockProgram, target: Device) -> Source:
    """Return a program at level ``tiles``, for the emitter that its settings name, or ``block``."""
    settings = program.settings
    if settings.emitter == product_form.EMITTER:
        program = product_form.with_grid_of_matrices(program)
    context = ir.make_context()
    part = part_of(program.body, program.name, context)
    signature = _Signature(program)
    with context, ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes[attributes.LEVEL] = ir.StringAttr.get("tiles")
        place = ir.InsertionPoint(module.body)
        with place, _location(program.location), entry_function(signature, signature, []) as kernel:
            kernel.attributes[attributes.SCHEDULE] = schedule_attribute({"threads": settings.threads})
            blocks = BlocksOp.build(program.grid, [each.value for each in kernel.outputs])
            with ir.InsertionPoint(blocks.body):
                _Writer(program, list(kernel.inputs)).blocks(blocks, part)
            if settings.emitter != product_form.EMITTER:
                take_turned_operands(blocks.body)
            erase_unused(blocks.body)
            _decide_of_steps(blocks, settings)
            assign(kernel.outputs, blocks.operation.results)
        (function,) = functions(module)
        if settings.emitter == product_form.EMITTER:
            product_form.make_product(function.operation, settings.schedule, target)
    return Source(module, program.name, _specs(program.inputs), _specs(program.outputs))


def _specs(arrays: Sequence[NamedArrayType]) -> tuple[ArgumentSpec, ...]:
    return tuple(ArgumentSpec(each.name, each.shape, dtype_of_numpy(each.dtype)) for each in arrays)


def _location(place: SourceLocation | None) -> ir.Location:
    return ir.Location.unknown() if place is None else ir.Location.file(place.file, place.line, place.column)


class _Writer:
    """Writes the operations of blocks and of steps at the insertion point."""

    def __init__(self, program: BlockProgram, inputs: list[ir.Value]):
        self._program, self._inputs = program, inputs

    def blocks(self, blocks: BlocksOp, part: BodyParts) -> None:
        """Write what a block does."""
        count = len(self._program.grid)
        arguments: list[ir.Value] = list(blocks.body.arguments)
        at, outputs = arguments[:count], arguments[count:]
        tiles = self._write(part, at, [])
        for store, tile in zip(self._program.stores, tiles, strict=True):
            with _location(store.location):
                outputs[store.output] = InsertTileOp.build(tile, outputs[store.output], at, store.map)
        YieldOp.build(outputs)

    def _write(self, part: BodyParts, at: list[ir.Value], arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """Write the operations of a part; return what it returns."""
        block = part.block
        (*_, end) = block.operations
        wanted, given = list(end.operation.operands), list(block.arguments)
        known: dict[ir.Value, ir.Value] = dict(zip(given, arguments, strict=False))
        taken, made_so_far = 0, len(arguments)
        for number, cut in enumerate(part.cuts):
            operands = [_computed(each, known) for each in wanted[taken : taken + len(cut.invars)]]
            taken += len(cut.invars)
            with _location(line_of(cut)):
                results = self._cut(cut, part.inner.get(number), at, operands)
            known.update(zip(given[made_so_far:], results, strict=False))
            made_so_far += len(cut.outvars)
        return [_computed(each, known) for each in wanted[taken:]]

    def _cut(self, cut: Any, inner: BodyParts | None, at: list[ir.Value], operands: list[ir.Value]) -> list[ir.Value]:
        given = cut.params
        if cut.primitive is steps_p:
            assert inner is not None
            return self._steps(given, inner, at, operands)
        if cut.primitive is index_p:
            return [IndexTileOp.build(at, given["map"], _element(given["dtype"]))]
        if cut.primitive is read_p:
            tile = TileOp.build(self._inputs[given["array"]], at, given["map"], _element(given["dtype"]))
            _decide(tile, given["decisions"])
            return [tile]
        assert cut.primitive is plan_p
        _decide(operands[0], given["decisions"])
        return operands

    def _steps(self, given: Any, inner: BodyParts, at: list[ir.Value], operands: list[ir.Value]) -> list[ir.Value]:
        captured, carried = operands[: given["captured"]], operands[given["captured"] :]
        steps = StepsOp.build(given["count"], carried)
        step, *arguments = steps.body.arguments
        with ir.InsertionPoint(steps.body):
            YieldOp.build(self._write(inner, [*at, step], [*captured, *arguments]))
        for name, value in given["decisions"]:
            steps.operation.attributes[f"xgpu.{name}"] = _attribute(name, value, len(carried))
        return list(steps.operation.results)


def _computed(value: ir.Value, known: dict[ir.Value, ir.Value]) -> ir.Value:
    """Return a value of a part where it is written, with all that it is computed from."""

    def operands(each: ir.Value) -> list[ir.Value]:
        return list(_producer(each).operands)

    def copy(each: ir.Value, written: list[ir.Value]) -> ir.Value:
        op = _producer(each)
        if (simple := simply_written(op, written)) is not None:
            return simple
        clone = op.clone().operation
        for number, operand in enumerate(written):
            clone.operands[number] = operand
        known.update(zip(op.results, clone.results, strict=True))
        return known[each]

    return made(value, known, operands, copy)


def _producer(value: ir.Value) -> ir.Operation:
    op = defining_op(value)
    assert op is not None
    return op


def _decide(tile: ir.Value, decisions: Decisions) -> None:
    op = defining_op(tile)
    if op is None or isinstance(op.opview, StepsOp):
        if decisions:
            where = None if op is None else source_of(op)
            raise InvalidInput("block.plan: decisions about what steps carry are keywords of block.steps", where)
        return
    for name, value in decisions:
        attribute = _attribute(name, value)
        if op.attributes.get(f"xgpu.{name}", attribute) != attribute:
            known = op.attributes[f"xgpu.{name}"]
            twice = f"the {name} of this tile is given twice: {known} and {attribute}"
            raise InvalidInput(f"block.plan: {twice}", source_of(op))
        op.attributes[f"xgpu.{name}"] = attribute


def _decide_of_steps(blocks: BlocksOp, settings: Settings) -> None:
    """Write what is decided for all steps, and the tiles that they read, where nothing else is of the single ones."""
    for each in blocks.body.operations:
        steps = each.operation.opview
        if not isinstance(steps, StepsOp):
            continue
        inside = [op.operation for op in steps.body.operations if isinstance(op.operation.opview, TileOp)]
        computed = ir.StringAttr.get(attributes.COMPUTED)
        kept = [op for op in inside if op.attributes.get(attributes.PLACE, ir.UnitAttr.get()) != computed]
        if settings.stages is not None and kept and attributes.STAGES not in steps.operation.attributes:
            steps.operation.attributes[attributes.STAGES] = _attribute("stages", settings.stages)
        for op in kept if settings.copy is not None else ():
            if attributes.COPY not in op.attributes:
                op.attributes[attributes.COPY] = _attribute("copy", settings.copy)


def _attribute(name: str, value: Any, carried: int = 0) -> ir.Attribute:
    """Return a decision as an attribute; those about what steps carry have an entry for each."""
    if name in ("stages", "prefetch"):
        return attributes.int_attribute(int(value))
    if carried and isinstance(value, tuple) and (name in _TEXTS or all(isinstance(each, tuple) for each in value)):
        return ir.ArrayAttr.get([_attribute(name, each) for each in value])
    if carried:
        return ir.ArrayAttr.get([_attribute(name, value)] * carried)
    if name in _TEXTS:
        return ir.StringAttr.get(value)
    assert name in _LISTS
    return attributes.int_array(tuple(value))
