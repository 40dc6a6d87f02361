"""lower-tiles' checks of a kernel that is written on tiles, as its decisions may be written by hand."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import IndexTileOp, InsertTileOp, StepsOp, TileOp
from xgpu.hlo.operations import OPERATIONS
from xgpu.passes.support.refusals import refuse, refuse_type
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.blocks.memory.stored import has_place
from xgpu.passes.tiles.blocks.program import PRODUCT, ScheduledKernel, product_layout
from xgpu.passes.tiles.kernel_checks import check_launch
from xgpu.structure import block_of, captured, defining_op, dtype_of, element_of

_NEEDED = frozenset(("cp.async", "ldmatrix", "mma"))


def check_block_kernel(kernel: ScheduledKernel, target: Device) -> None:
    """Raise `CompilerError` for a kernel that lacks a decision, or has one that does not fit."""
    blocks = kernel.blocks
    _check_order(blocks.body)
    check_launch(kernel.function, blocks, math.prod(blocks.grid), kernel.threads)
    at = list(blocks.body.arguments)[: len(blocks.grid)]
    _check_operations(kernel, blocks.body, at)
    for steps in kernel.steps:
        _check_operations(kernel, steps.body, [*at, steps.body.arguments[0]])
    _check_outputs(kernel)
    _check_tiles(kernel)
    missing = sorted(_NEEDED - target.machine.instructions)
    if missing:
        refuse(PASS, kernel.function, f"expected a GPU with {missing[0]}, got {target.name}")
    if kernel.shared_bytes > target.shared_bytes_optin:
        most = f"tiles in at most {target.shared_bytes_optin} bytes of shared memory, all that {target.name} has"
        refuse(PASS, kernel.function, f"expected {most} for a block, got {kernel.shared_bytes}")


def _check_order(block: ir.Block) -> None:
    """Check that what operations read is made before them: a person may have moved them."""
    known: set[ir.Value] = set(block.arguments)
    for each in block.operations:
        op = each.operation
        if any(value not in known and block_of(value) == block for value in (*op.operands, *captured(op))):
            refuse(PASS, op, "expected what it reads to be made before it")
        if isinstance(op.opview, StepsOp):
            _check_order(op.opview.body)
        known |= set(op.results)


def _check_operations(kernel: ScheduledKernel, block: ir.Block, at: Sequence[ir.Value]) -> None:
    """Check that operations are ones on tiles, of inputs at the numbers of block and step."""
    arguments = list(kernel.function.regions[0].blocks[0].arguments)
    inputs = arguments[: attributes.int_of(kernel.function.attributes[attributes.INPUTS])]
    for each in list(block.operations)[:-1]:
        op, view = each.operation, each.operation.opview
        if isinstance(view, StepsOp):
            if block != kernel.blocks.body:
                refuse(PASS, op, "expected steps that have no steps inside")
        elif isinstance(view, TileOp | IndexTileOp | InsertTileOp):
            if any(value not in at for value in view.at):
                refuse(PASS, op, f"expected a tile at numbers of block and step, {len(at)} in all")
            if isinstance(view, TileOp) and view.array not in inputs:
                refuse(PASS, op, "expected a tile of an input of the kernel")
            if isinstance(view, InsertTileOp) and block != kernel.blocks.body:
                refuse(PASS, op, "expected tiles to be written after the steps")
        elif op.name not in OPERATIONS:
            refuse(
                PASS, op, "expected an operation on tiles, element by element, or one that moves or reduces elements"
            )


def _check_outputs(kernel: ScheduledKernel) -> None:
    """Check that blocks yield their arrays, each with tiles written into it, one after the other."""
    (*_, end) = kernel.blocks.body.operations
    written = list(kernel.blocks.body.arguments)[len(kernel.blocks.grid) :]
    for number, (value, array) in enumerate(zip(end.operation.operands, written, strict=True)):
        made = value
        while made != array:
            op = defining_op(made)
            if op is None or not isinstance(op.opview, InsertTileOp):
                refuse(
                    PASS, end.operation, f"expected value {number} to be the array of that number with tiles written"
                )
            made = op.opview.array


def _check_tiles(kernel: ScheduledKernel) -> None:
    """Check what is decided of each tile."""
    for value, op, number in kernel.tiles():
        if not has_place(dtype_of(value)):
            refuse_type(op, "tiles", element_of(value))
        place = kernel.places[value]
        if number >= 0 and place == attributes.COMPUTED:
            what = f"expected what steps carry to be in {attributes.SHARED} or {attributes.FRAGMENTS}"
            refuse(PASS, op, f"attribute '{attributes.PLACE}': {what}, got {place}")
        if place == attributes.SHARED:
            _ = kernel.layouts[value]
        if place == attributes.FRAGMENTS and kernel.fragments(value) is None:
            refuse(PASS, op, f"attribute '{attributes.PLACE}': expected {place} only for what follows a product")
        if op.name == PRODUCT:
            if place == attributes.COMPUTED:
                what = f"expected {attributes.SHARED} or {attributes.FRAGMENTS} for a product"
                refuse(PASS, op, f"attribute '{attributes.PLACE}': {what}, got {place}")
            product_layout(op, kernel.warps)
