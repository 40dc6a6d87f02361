"""Block programs that are one product with what follows it, for the emitter of products by warp groups."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xgpu import ir
from xgpu.block_language.batching import widened
from xgpu.block_language.program import BlockProgram
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.block.decisions import DECISIONS
from xgpu.dialects.block.tiles import TileOp
from xgpu.emit.families.products.schedule import ProductSchedule
from xgpu.errors import CompilerError, InvalidInput, did_you_mean
from xgpu.hlo.source_location import source_of
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.affine import symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.passes.tiles.block_program import ProductProgram, read_program
from xgpu.structure import defining_op, dtype_of, element_of, replace_op, users_of, walk

EMITTER = "product"
_BAND = 16
_MOST_GROUPS = 2
_MOST_STAGES = 8
_TRANSPOSE = "stablehlo.transpose"
_ANY = ProductSchedule(
    tile_m=64,
    tile_n=64,
    tile_k=64,
    stages=2,
    groups=1,
    blocks=1,
    cluster=1,
    staged=False,
    band=1,
    split=1,
    swapped=False,
)
"""The numbers of some product, of which a program has its own."""


def with_grid_of_matrices(program: BlockProgram) -> BlockProgram:
    """Return a program with a grid of three dimensions, the first ones of one block: matrices, rows and columns."""
    while len(program.grid) < 3:
        program = widened(program)
    return program


def make_product(function: ir.Operation, given: Mapping[str, int], target: Device) -> None:
    """Make a kernel one of the emitter ``product``, with the numbers ``given`` and others that fit its tiles.

    Raises InvalidInput for a program that has another form, for numbers that no schedule has, and for what is decided
    about single tiles.
    """
    name = ir.StringAttr(function.attributes["sym_name"]).value
    stages = _take_stages(function, name)
    for op in walk(function, _TRANSPOSE):
        _read_transposed(op)
    try:
        program = read_program(function, _ANY)
    except CompilerError as error:
        reason = error.message.partition(": ")[2] or error.message
        raise InvalidInput(f"kernel {name} has not the form of emitter '{EMITTER}': {reason}", error.location) from None
    known = ProductSchedule.names()
    if unknown := [each for each in given if each not in known]:
        raise InvalidInput(
            f"kernel {name}: schedule of '{EMITTER}': unknown number '{unknown[0]}'"
            f"{did_you_mean(unknown[0], known)}; it has {', '.join(known)}"
        )
    if given.get("stages", stages) != stages and stages is not None:
        raise InvalidInput(f"kernel {name}: stages are given twice: {stages}, and {given['stages']} in its schedule")
    fixed: dict[str, Any] = {**({} if stages is None else {"stages": stages}), **given}
    schedule = replace(_schedule(program, target, fixed), **fixed)
    for problem in schedule.range_problems():
        raise InvalidInput(f"kernel {name}: schedule of '{EMITTER}': {problem}")
    function.attributes[attributes.EMITTER] = ir.StringAttr.get(EMITTER)
    function.attributes[attributes.SCHEDULE] = attributes.schedule_attribute(schedule.values)
    function.attributes[attributes.GRID] = attributes.int_array((schedule.blocks, 1, 1))
    function.attributes[attributes.BLOCK] = attributes.int_array((schedule.threads, 1, 1))


def _take_stages(function: ir.Operation, name: str) -> int | None:
    """Remove the number of stages as given from a program, and return it; of all else its schedule decides."""
    stages = None
    for op in walk(function):
        for each in DECISIONS:
            if each.name not in op.attributes:
                continue
            value = op.attributes[each.name]
            if each.name != attributes.STAGES:
                wrong = f"expected no '{each.name}' about a tile, got {value}: the schedule says all"
                raise InvalidInput(f"kernel {name}: emitter '{EMITTER}': '{op.name}': {wrong}", source_of(op))
            stages = attributes.int_of(value)
            del op.attributes[each.name]
    return stages


def _schedule(program: ProductProgram[ProductSchedule], target: Device, fixed: Mapping[str, Any]) -> ProductSchedule:
    """Return a schedule of the tiles of a program, with as many stages as there is room for."""
    (rows, columns), contracted = program.shape, shape_of(program.left.tile)[1]
    grid = program.blocks.grid
    one = replace(
        _ANY,
        tile_m=rows,
        tile_n=columns,
        tile_k=contracted,
        groups=max(1, min(_MOST_GROUPS, rows // WARPGROUP_ROWS)),
        blocks=min(math.prod(grid), target.sm_count),
        band=max(each for each in range(1, _BAND + 1) if grid[1] % each == 0),
    )
    one = replace(one, **{name: value for name, value in fixed.items() if name != "stages"})
    if any(one.range_problems()):
        return one
    results = [-(-dtype_of(each.tile).storage_bits // 8) for each in program.stores]
    room, operands = target.shared_bytes_optin, program.operands
    several = (replace(one, stages=stages) for stages in range(_MOST_STAGES, 2, -1))
    return next((each for each in several if each.shared_bytes(results, operands) <= room), one)


def _read_transposed(op: ir.Operation) -> None:
    """Replace the transpose of a tile that nothing else reads by a tile that is read in that order."""
    source = defining_op(op.operands[0])
    if source is None or not isinstance(source.opview, TileOp) or len(users_of(op.operands[0])) > 1:
        return
    view, order = source.opview, integers(op, "permutation")
    symbols = {old: symbol(new) for new, old in enumerate(order)}
    map_ = view.map
    moved = IndexingMap(
        map_.dims,
        tuple(map_.symbols[old] for old in order),
        tuple(each.substitute(None, symbols) for each in map_.results),
        tuple((each.substitute(None, symbols), bound) for each, bound in map_.constraints),
    )
    with ir.InsertionPoint(source), source.location:
        replace_op(op, [TileOp.build(view.array, view.at, moved, element_of(view.tile))])
    source.erase()
