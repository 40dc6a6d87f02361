"""lower-tiles' view of a kernel of level ``tiles``: its blocks, their steps and the product in each."""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from xgpu import ir
from xgpu.dialects.base import DeclaredOp
from xgpu.dialects.block.tiles import (
    BlocksOp,
    GatherTileOp,
    GroupRowsOp,
    IndexTileOp,
    InsertTileOp,
    ReadTile,
    StepsOp,
    TileOp,
)
from xgpu.emit.families.products.facts import Operands
from xgpu.errors import Unsupported
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.source_location import source_of
from xgpu.indexing.access import ranges, shape_of
from xgpu.indexing.affine import Symbol, linearize
from xgpu.indexing.simplify import Simplifier
from xgpu.indexing.tiles.element_tiles import is_plain
from xgpu.indexing.tiles.product_maps import TileSizes
from xgpu.passes.support.refusals import refuse
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of, element_of

PASS = "lower-tiles"
_ADD = "stablehlo.add"
_PRODUCT = "stablehlo.dot_general"
_CONSTANT = "stablehlo.constant"


class TileSchedule(Protocol):
    """The numbers that the schedules of all kernels of tiles have: tiles, threads and blocks."""

    @property
    def sizes(self) -> TileSizes: ...
    @property
    def threads(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def band(self) -> int: ...
    @property
    def cluster(self) -> int: ...


@dataclass(frozen=True)
class ProductProgram[ScheduleT: TileSchedule]:
    """A kernel whose blocks add up products of tiles, step by step, and write what follows.

    ``products`` are those of a step: of one tile, ``left``, with each of the tiles ``rights``. ``totals`` are the sums
    of each after the last step, ``stores`` write what is computed from these, one tile into each of the ``outputs``.
    ``schedule`` has the numbers by which threads share the work. If rows are in groups, ``grouped`` says which
    a tile has. If the left operand is ``computed``, ``left`` is the tile with an element for each of its own.
    """

    function: ir.Operation
    blocks: BlocksOp
    steps: StepsOp
    products: tuple[ir.Operation, ...]
    left: TileOp
    rights: tuple[TileOp, ...]
    stores: tuple[InsertTileOp, ...]
    schedule: ScheduleT
    grouped: GroupRowsOp | None = None
    computed: ir.Value | None = None

    @property
    def operands(self) -> Operands:
        """The operands of the products."""
        narrow = None if self.computed is None else dtype_of(self.left.tile).storage_bits
        groups = 0 if self.grouped is None else self.grouped.groups
        return Operands(dtype_of(self.products[0].operands[0]).mlir, len(self.rights), groups, narrow)

    @property
    def at(self) -> list[ir.Value]:
        """The numbers of a block: those of its tile in the grid, and what its rows are if they are in groups."""
        return _numbers(self.blocks, self.grouped)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values that each of these has."""
        return _sizes(self.blocks, self.grouped)

    @property
    def outputs(self) -> list[ir.Value]:
        """The arrays that blocks write, before they do."""
        return list(self.blocks.operation.operands)

    @property
    def totals(self) -> list[ir.Value]:
        """The sums of each product of all steps."""
        return list(self.steps.operation.results)

    @property
    def sum_element(self) -> ir.Type:
        """The type of the elements of sums."""
        return ir.RankedTensorType(self.totals[0].type).element_type

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the tile that a block computes."""
        rows, columns = ir.RankedTensorType(self.totals[0].type).shape
        return rows, columns


def read_program[ScheduleT: TileSchedule](function: ir.Operation, schedule: ScheduleT) -> ProductProgram[ScheduleT]:
    """Return a function's blocks. Raises `CompilerError` for a form that there is no code for."""
    if len(function.regions[0].blocks) != 1:
        refuse(PASS, function, f"expected a body of one block, got {len(function.regions[0].blocks)}")
    blocks = only(function, function.regions[0].blocks[0], BlocksOp)
    if len(blocks.grid) != 3:
        refuse(PASS, blocks.operation, f"expected a grid of matrices, rows and columns of tiles, got {blocks.grid}")
    if not blocks.operation.operands:
        refuse(PASS, blocks.operation, "expected blocks that write an array, got none")
    steps = only(blocks.operation, blocks.body, StepsOp)
    products = _products(steps)
    grouped = _grouped(blocks)
    at, sizes = _numbers(blocks, grouped), _sizes(blocks, grouped)
    in_step, numbers = [*at, steps.body.arguments[0]], (*sizes, steps.count)
    for product in products[1:]:
        if product.operands[0] != products[0].operands[0]:
            refuse(PASS, product, "expected products of one left tile")
    left, computed = left_operand(products[0], in_step, numbers)
    rights = tuple(tile_operand(product, 1, in_step, numbers) for product in products)
    (*_, end) = blocks.body.operations
    written = list(blocks.body.arguments)[3:]
    stores = tuple(stored(end.operation, number, array, at, sizes) for number, array in enumerate(written))
    return ProductProgram(function, blocks, steps, products, left, rights, stores, schedule, grouped, computed)


def _grouped(blocks: BlocksOp) -> GroupRowsOp | None:
    """Return what says which rows the tiles of a row of the grid have; None if that is the same in each run."""
    found = [view for op in blocks.body.operations if isinstance(view := op.operation.opview, GroupRowsOp)]
    if len(found) > 1 or (found and found[0].number != blocks.body.arguments[1]):
        refuse(PASS, found[-1].operation, "expected one, of the row of tiles that the block's tile is in")
    return found[0] if found else None


def _numbers(blocks: BlocksOp, grouped: GroupRowsOp | None) -> list[ir.Value]:
    return [*list(blocks.body.arguments)[:3], *([] if grouped is None else grouped.operation.results)]


def _sizes(blocks: BlocksOp, grouped: GroupRowsOp | None) -> tuple[int, ...]:
    if grouped is None:
        return blocks.grid
    rows = grouped.total + 1
    return *blocks.grid, rows, grouped.groups + 1, rows, grouped.rows + 1


def only[OpT: DeclaredOp](parent: ir.Operation, block: ir.Block, kind: type[OpT]) -> OpT:
    """Return the one operation of a kind in a block, refuse others."""
    found = [op.operation.opview for op in block.operations if isinstance(op.operation.opview, kind)]
    if len(found) != 1:
        refuse(PASS, parent, f"expected one {kind.OPERATION_NAME} in it, got {len(found)}")
    return found[0]


def _products(steps: StepsOp) -> tuple[ir.Operation, ...]:
    """Return the product that each step adds to each of the values that steps carry, which begin as zero."""
    op = steps.operation
    if steps.count < 1 or not len(op.results):
        refuse(PASS, op, f"expected a value and a step, got {len(op.results)} values and {steps.count} steps")
    (*_, end) = steps.body.operations
    found = []
    for init, carried, yielded in zip(steps.inits, list(steps.body.arguments)[1:], end.operands, strict=True):
        added = defining_op(yielded)
        terms = [] if added is None or added.name != _ADD else list(added.operands)
        products = [made for each in terms if (made := defining_op(each)) is not None and made.name == _PRODUCT]
        if len(products) != 1 or carried not in terms:
            refuse(PASS, op, f"expected each step to add one {_PRODUCT} to what it carries")
        if not _is_zero(init):
            refuse(PASS, op, "expected the first step to take a constant of zeros")
        found += products
    return tuple(found)


def _is_zero(value: ir.Value) -> bool:
    op = defining_op(value)
    if op is None or op.name != _CONSTANT:
        return False
    number: Any = splat_of(op)
    return number is not None and str(float(number.value)) == "0.0"


def tile_operand(product: ir.Operation, number: int, at: Sequence[ir.Value], sizes: Sequence[int]) -> TileOp:
    """Return the tile that is an operand of a product, taken at these numbers."""
    op = defining_op(product.operands[number])
    view = None if op is None else op.opview
    if not isinstance(view, TileOp):
        refuse(PASS, product, f"expected operand {number} to be a tile of an array as it is in memory")
    check_numbers(view, at, sizes)
    return view


def left_operand(product: ir.Operation, at: Sequence[ir.Value], sizes: Sequence[int]) -> tuple[TileOp, ir.Value | None]:
    """Return the tile that the left operand of a product is, or that it is computed from, and then the operand.

    Of the tiles that it is computed from, that is the one with an element for each of the operand's.
    """
    value = product.operands[0]
    op = defining_op(value)
    if op is not None and isinstance(op.opview, TileOp):
        return tile_operand(product, 0, at, sizes), None
    tiles = read_tiles(product, value, "tiles of arrays", ())
    for each in tiles:
        check_numbers(each, at, sizes)
    whole = [each for each in tiles if _is_whole(each)]
    if len(whole) != 1:
        refuse(PASS, product, f"expected operand 0 to be computed from one tile of as many elements, got {len(whole)}")
    return whole[0], value


def read_tiles(user: ir.Operation, value: ir.Value, of: str, known: Collection[ir.Value]) -> list[TileOp]:
    """Return the tiles that a tile of the same shape is computed ``of``, element by element, besides those ``known``.

    Raises `CompilerError` for one that is computed otherwise.
    """
    shape, found = shape_of(value), dict[TileOp, None]()
    pending, seen = [(user, value)], set(known)
    while pending:
        user, each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        op = defining_op(each)
        if op is None or shape_of(each) != shape:
            refuse(PASS, user, f"expected values computed from {of}, of shape {shape}, got one of {each.type}")
        if isinstance(view := op.opview, TileOp):
            found[view] = None
        elif op.name == _CONSTANT:
            if splat_of(op) is None:
                refuse(PASS, op, "expected a constant with equal elements")
        elif op.name not in OPERATIONS or OPERATIONS[op.name].kind != "elementwise" or len(op.regions):
            refuse(PASS, op, "expected an operation on single elements")
        elif not all(is_plain(element_of(part)) for part in (*op.operands, *op.results)):
            raise Unsupported(f"'{op.name}' on tiles: expected elements that are floats or integers", source_of(op))
        else:
            pending += [(op, operand) for operand in op.operands]
    return list(found)


def _is_whole(tile: TileOp) -> bool:
    """Whether no two elements of a tile are the same of the array: both its indices are added up in memory."""
    position = Simplifier(tile.map.dims, tile.map.symbols).simplify(linearize(tile.map.results, shape_of(tile.array)))
    return {0, 1} <= {atom.index for atom, _ in position.terms if isinstance(atom, Symbol)}


def stored(
    end: ir.Operation, number: int, array: ir.Value, at: Sequence[ir.Value], sizes: Sequence[int]
) -> InsertTileOp:
    """Return what writes the array of a number, which blocks end with."""
    op = defining_op(end.operands[number])
    view = None if op is None else op.opview
    if not isinstance(view, InsertTileOp) or view.array != array:
        refuse(PASS, end, f"expected value {number} to be the array of that number with one tile written")
    check_numbers(view, at, sizes)
    return view


def gathered_operand(product: ir.Operation, number: int, at: Sequence[ir.Value], sizes: Sequence[int]) -> ReadTile:
    """Return the tile, of an array as it is or gathered, that is an operand of a product, taken at these numbers."""
    op = defining_op(product.operands[number])
    view = None if op is None else op.opview
    if not isinstance(view, GatherTileOp):
        return tile_operand(product, number, at, sizes)
    check_numbers(view, at, sizes)
    return view


def check_numbers(op: ReadTile | IndexTileOp | InsertTileOp, at: Sequence[ir.Value], sizes: Sequence[int]) -> None:
    """Refuse a tile that is not taken at the numbers of block and step, of which there are ``sizes``."""
    if op.at != list(at):
        refuse(PASS, op.operation, f"expected the {len(at)} numbers of block and step, in their order")
    if op.map.dims[: len(sizes)] != ranges(tuple(sizes)):
        wanted = ", ".join(f"d{number} in [0, {size - 1}]" for number, size in enumerate(sizes))
        refuse(PASS, op.operation, f"expected a map with {wanted}, the numbers that there are, got {op.map}")
