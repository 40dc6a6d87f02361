"""lower-tiles' checks of a kernel before it writes code, as everything may be written by hand."""

from typing import Any

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp, GroupRowsOp, TileOp
from xgpu.emit.families.attention.schedule import ChainSizes
from xgpu.emit.families.products.schedule import ProductSchedule
from xgpu.emit.families.products.warp_schedule import WarpProductSchedule
from xgpu.emit.schedule import Schedule
from xgpu.hlo.tensor_cores import product_problem, sum_type
from xgpu.indexing.access import shape_of
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.indexing.tiles.prologues import NARROW_BITS, narrow_text
from xgpu.indexing.tiles.warp_tiles import type_problem
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS, ProductProgram, TileSchedule, check_numbers, read_tiles
from xgpu.passes.tiles.chains.program import ChainProgram
from xgpu.passes.tiles.warp_copies import operand_rows
from xgpu.structure import defining_op, dtype_of, element_of, walk

_COMPUTED_BITS = 16
"""Bits of the elements of left operands that threads hold in fragments."""


def schedule_of[ScheduleT: Schedule](function: ir.Operation, kind: type[ScheduleT]) -> ScheduleT:
    """Return the numbers of a kernel. Raises `CompilerError` unless it has each, in its range."""
    given = function.attributes.get(attributes.SCHEDULE)
    values: dict[str, Any] = {} if given is None else attributes.schedule_values(given)
    names = kind.names()
    if sorted(values) != sorted(names):
        got = ", ".join(values) or "none"
        refuse(PASS, function, f"expected {attributes.SCHEDULE} with the numbers {', '.join(names)}, got {got}")
    schedule = kind(**values)
    for problem in schedule.range_problems():
        refuse(PASS, function, f"{attributes.SCHEDULE}: {problem}")
    return schedule


def check_program(program: ProductProgram[TileSchedule]) -> None:
    """Raise `CompilerError` for a kernel that no threads compute, or that is none of its schedule's tiles."""
    _check_function(program)
    _check_products(program)
    if program.grouped is not None:
        _check_groups(program, program.grouped)
    for store in program.stores:
        if shape_of(store.tile) != program.shape:
            refuse(
                PASS,
                store.operation,
                f"expected a tile of shape {program.shape}, that of the sum, got {store.tile.type}",
            )
        for tile in read_tiles(store.operation, store.tile, "the sum", program.totals):
            check_numbers(tile, program.at, program.sizes)
            _check_array(program, tile)
    rows, contracted = shape_of(program.left.tile)
    wanted, sizes = (rows, program.shape[1], contracted), program.schedule.sizes
    if (sizes.m, sizes.n, sizes.k) != wanted:
        found = f"expected tile_m, tile_n, tile_k = {wanted}, its tiles, got others"
        refuse(PASS, program.function, f"{attributes.SCHEDULE}: {found}")


def check_groups(program: ProductProgram[ProductSchedule], device: Device) -> None:
    """Raise `CompilerError` for a schedule by which no warp groups compute a kernel."""
    results = [-(-dtype_of(each.tile).storage_bits // 8) for each in program.stores]
    grid, steps = program.blocks.grid, program.steps.count
    for problem in () if program.grouped is None else program.schedule.group_problems():
        refuse(PASS, program.function, f"{attributes.SCHEDULE}: {problem}")
    for problem in program.schedule.kernel_problems(program.operands, grid, steps, results, device):
        refuse(PASS, program.function, f"{attributes.SCHEDULE}: {problem}")


def check_warps(program: ProductProgram[WarpProductSchedule], device: Device) -> None:
    """Raise `CompilerError` for a product, or a schedule, by which no warps compute a kernel."""
    product, *others = program.products
    if program.computed is not None:
        refuse(PASS, product, "expected operand 0 to be a tile of an array as it is in memory, in a kernel of warps")
    if program.grouped is not None:
        refuse(PASS, program.grouped.operation, "expected no groups of rows, of a kernel of warps")
    if others:
        refuse(PASS, others[0], "expected one product, of a kernel of warps")
    if problem := type_problem(dtype_of(program.left.tile)):
        refuse(PASS, product, problem)
    left, right = (operand_rows(tile) for tile in (program.left, *program.rights))
    for problem in program.schedule.kernel_problems(program.blocks.grid[1], (left.unit, right.unit), device):
        refuse(PASS, program.function, f"{attributes.SCHEDULE}: {problem}")


def check_chain(program: ChainProgram, device: Device) -> None:
    """Raise `CompilerError` for a kernel of two products, or a schedule, that no warp groups compute."""
    schedule = program.schedule
    check_launch(program.function, program.blocks, schedule.blocks, schedule.threads)
    for product in program.products:
        _check_operands(product.op)
    count = len(list(program.function.regions[0].blocks[0].arguments)) - len(program.outputs)
    inputs = list(program.function.regions[0].blocks[0].arguments)[:count]
    for op in walk(program.blocks.operation, TileOp.OPERATION_NAME):
        if op.operands[0] not in inputs:
            refuse(PASS, op, "expected a tile of an input of the kernel")
    sizes = chain_sizes(program)
    for product in program.products:
        keys = shape_of(product.computed)[1] if product.left is None else product.columns
        tile = (shape_of(product.result)[0], keys)
        if (schedule.tile_m, schedule.tile_n) != tile:
            refuse(PASS, program.function, f"{attributes.SCHEDULE}: expected tile_m, tile_n = {tile}, its tiles")
    for problem in schedule.kernel_problems(sizes, device):
        refuse(PASS, program.function, f"{attributes.SCHEDULE}: {problem}")


def chain_sizes(program: ChainProgram) -> ChainSizes:
    """Return the sizes of the tiles of a kernel."""
    fixed = tuple(shape_of(each.tile)[1] for each in program.fixed)
    keys = {product.right: product.keys for product in program.products}
    fed = tuple(shape_of(each.tile)[1 - keys[each]] for each in program.fed)
    results = tuple(each.columns for each in program.summed)
    return ChainSizes(fixed, fed, results, len(program.started))


def _check_function(program: ProductProgram[TileSchedule]) -> None:
    check_launch(program.function, program.blocks, program.schedule.blocks, program.schedule.threads)


def check_launch(function: ir.Operation, of: BlocksOp, count: int, threads: int) -> None:
    """Raise `CompilerError` unless blocks are all that a kernel does, and its outputs are what they write.

    The launch is of ``count`` blocks of so many threads.
    """
    blocks = of.operation
    entry = function.regions[0].blocks[0]
    first, *others = (op.operation for op in entry.operations)
    if first != blocks or len(others) != 1:
        refuse(PASS, function, "expected nothing but its blocks, and to return what they write")
    inputs = function.attributes.get(attributes.INPUTS)
    given = len(entry.arguments) - len(blocks.operands)
    is_whole = list(blocks.operands) == list(entry.arguments)[given:] and list(others[0].operands) == list(
        blocks.results
    )
    if inputs is None or attributes.int_of(inputs) != given or not is_whole:
        refuse(
            PASS, function, f"expected {attributes.INPUTS} inputs, then the outputs, which its blocks write in order"
        )
    if attributes.ALIASES in function.attributes:
        refuse(PASS, function, f"expected no {attributes.ALIASES}: blocks read inputs while others write")
    for argument in entry.arguments:
        element = element_of(argument)
        if isinstance(element, ir.IntegerType) and not element.is_signless:
            refuse(PASS, function, f"expected arrays of signless integers, got {argument.type}")
    launch = {
        attributes.GRID: (count, 1, 1),
        attributes.BLOCK: (threads, 1, 1),
    }
    for name, expected in launch.items():
        got = function.attributes.get(name)
        if got is None or attributes.int_array_of(got) != expected:
            refuse(
                PASS, function, f"attribute '{name}': expected {expected}, as its schedule says, got {got or 'none'}"
            )


def _check_products(program: ProductProgram[TileSchedule]) -> None:
    for product in program.products:
        _check_operands(product)
    for tile in (program.left, *program.rights):
        _check_array(program, tile)
    if program.computed is not None:
        _check_computed(program, program.computed)
    first = program.rights[0]
    for tile in program.rights[1:]:
        if tile.tile.type != first.tile.type:
            refuse(PASS, tile.operation, f"expected a tile of {first.tile.type}, as the first product's")


def _check_computed(program: ProductProgram[TileSchedule], operand: ir.Value) -> None:
    """Check that a left operand is one that threads compute of elements that they read from shared memory."""
    for tile in read_tiles(program.products[0], operand, "tiles of arrays", ()):
        _check_array(program, tile)
    made, read = dtype_of(operand), dtype_of(program.left.tile)
    if made.bits != _COMPUTED_BITS or read.storage_bits not in NARROW_BITS:
        wanted = f"an operand of {_COMPUTED_BITS} bits, computed from elements of {narrow_text()}"
        refuse(PASS, program.products[0], f"expected {wanted}, got {made} of {read}")


def _check_operands(product: ir.Operation) -> None:
    left, right = operand_dimensions(product)
    if left.batching or (left.contracting, right.contracting) != ((1,), (0,)):
        refuse(PASS, product, "expected a product of two matrices, contracting_dims = [1] x [0]")
    if problem := product_problem(product):
        refuse(PASS, product, problem)
    total, got = sum_type(dtype_of(product.operands[0])), dtype_of(product.results[0])
    if got != total:
        refuse(PASS, product, f"expected a sum of {total}, got {got}")


def _check_array(program: ProductProgram[TileSchedule], tile: TileOp) -> None:
    """Check that a tile is one of an input."""
    entry = program.function.regions[0].blocks[0]
    if tile.array not in list(entry.arguments)[: len(entry.arguments) - len(program.outputs)]:
        refuse(PASS, tile.operation, "expected a tile of an input of the kernel")


def _check_groups(program: ProductProgram[TileSchedule], grouped: GroupRowsOp) -> None:
    """Check that the sizes of groups are a tile of an input, and tiles have as many rows as it says."""
    view = None if (op := defining_op(grouped.sizes)) is None else op.opview
    if not isinstance(view, TileOp):
        refuse(PASS, grouped.operation, "expected sizes that are a tile of an array as it is in memory")
    check_numbers(view, list(program.blocks.body.arguments)[:3], program.blocks.grid)
    _check_array(program, view)
    batch, down, _ = program.blocks.grid
    tiles = (grouped.total + (grouped.groups + 1) * (grouped.rows - 1)) // grouped.rows
    if grouped.rows != program.shape[0] or batch != 1 or down < min(grouped.total, tiles):
        wanted = f"tiles of {program.shape[0]} rows, and a grid of one matrix with all tiles that there may be"
        refuse(PASS, grouped.operation, f"expected {wanted}, got {grouped.rows}, and {program.blocks.grid}")
