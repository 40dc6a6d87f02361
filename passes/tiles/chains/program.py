"""What lower-tiles makes of a kernel of level ``tiles`` whose steps have two products, one after the other."""

from dataclasses import dataclass
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.attention import DOT
from xgpu.dialects.attributes import HIDDEN
from xgpu.dialects.block.tiles import BlocksOp, IndexTileOp, InsertTileOp, StepsOp, TileOp
from xgpu.emit.families.attention.schedule import AttentionSchedule
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import integers, shape_of
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS, check_numbers, only, stored, tile_operand
from xgpu.structure import block_of, body_of, defining_op, is_result_of, producer, users_of

_ADD = "stablehlo.add"


@dataclass(frozen=True)
class ChainProgram:
    """A kernel whose steps multiply a tile that all of them share, and then what is computed of that product.

    ``first`` is the product of ``queries`` and ``keys``, ``second`` has ``values`` for its right operand, and is added
    to what steps carry. ``store`` writes what is computed of that after the last one.
    """

    function: ir.Operation
    blocks: BlocksOp
    steps: StepsOp
    first: ir.Operation
    second: ir.Operation
    queries: TileOp
    keys: TileOp
    values: TileOp
    store: InsertTileOp
    schedule: AttentionSchedule

    @property
    def output(self) -> ir.Value:
        """The array that blocks write, before they do."""
        return self.blocks.operation.operands[0]

    @property
    def rows(self) -> int:
        """The rows of a block's tile."""
        return shape_of(self.store.tile)[0]

    @property
    def columns(self) -> int:
        """The columns of what a block writes."""
        return shape_of(self.store.tile)[1]

    @cached_property
    def added(self) -> ir.Operation:
        """The operation that adds the second product to what steps carry."""
        return users_of(self.second.results[0])[0]

    @cached_property
    def largest(self) -> ir.Value:
        """What steps carry as the largest of each row: what they yield as a maximum with what they take."""
        (*_, end) = self.steps.body.operations
        arguments = list(self.steps.body.arguments)[1:]
        found = [
            number
            for number, (value, argument) in enumerate(zip(end.operation.operands, arguments, strict=True))
            if is_result_of(value, "stablehlo.maximum") and argument in producer(value).operands
        ]
        if len(found) != 1:
            refuse(PASS, self.steps.operation, f"expected steps that carry the largest of each row, for {HIDDEN}")
        return self.steps.operation.results[found[0]]

    @property
    def carried(self) -> ir.Value:
        """What the second product is added to."""
        left, right = self.added.operands
        return right if left == self.second.results[0] else left


def read_chain(function: ir.Operation, schedule: AttentionSchedule) -> ChainProgram:
    """Return a function's blocks. Raises `CompilerError` for a form that there is no code for."""
    if len(function.regions[0].blocks) != 1:
        refuse(PASS, function, f"expected a body of one block, got {len(function.regions[0].blocks)}")
    blocks = only(function, function.regions[0].blocks[0], BlocksOp)
    if len(blocks.grid) != 3 or len(blocks.operation.operands) != 1:
        refuse(PASS, blocks.operation, "expected a grid of matrices, rows and columns of tiles, and one array")
    steps = only(blocks.operation, blocks.body, StepsOp)
    products = [each.operation for each in steps.body.operations if each.operation.name == DOT]
    if steps.count < 1 or len(products) != 2:
        refuse(PASS, steps.operation, f"expected steps of two products, got {steps.count} of {len(products)}")
    first, second = products
    at = list(blocks.body.arguments)[:3]
    in_step, sizes = [*at, steps.body.arguments[0]], (*blocks.grid, steps.count)
    queries = tile_operand(first, 0, at, blocks.grid)
    keys, values = (tile_operand(product, 1, in_step, sizes) for product in products)
    users = users_of(second.results[0])
    if len(users) != 1 or users[0].name != _ADD or users[0].operands[0] == users[0].operands[1]:
        refuse(PASS, second, f"expected its result to be added, by one {_ADD}")
    rounded = defining_op(second.operands[0])
    if rounded is None or rounded.name != "stablehlo.convert" or len(users_of(rounded.results[0])) != 1:
        refuse(PASS, second, "expected its left operand to be rounded from what is computed, and read by nothing else")
    (*_, end) = blocks.body.operations
    store = stored(end.operation, 0, blocks.body.arguments[3], at, blocks.grid)
    program = ChainProgram(function, blocks, steps, first, second, queries, keys, values, store, schedule)
    for block in (blocks.body, steps.body):
        _check_operations(program, block)
    return program


def _check_operations(program: ChainProgram, block: ir.Block) -> None:
    """Check that all other operations are on single elements, on rows, or write the one tile."""
    special = {program.steps.operation, program.first, program.second, program.store.operation}
    for each in (view.operation for view in list(block.operations)[:-1]):
        if each in special or isinstance(each.opview, TileOp | IndexTileOp):
            _check_at(program, each, block)
            continue
        if any(block_of(value) != block for value in each.operands):
            refuse(PASS, each, "expected operands that are computed in the same step, or in none")
        for value in (*each.operands, *each.results):
            shape = shape_of(value)
            if shape and (shape[0] != program.rows or len(shape) > 2):
                refuse(PASS, each, f"expected tiles of {program.rows} rows, got {value.type}")
        if problem := _problem(each):
            refuse(PASS, each, problem)


def _check_at(program: ChainProgram, op: ir.Operation, block: ir.Block) -> None:
    """Check that a tile is taken at the numbers of block and step."""
    view = op.opview
    if isinstance(view, TileOp | IndexTileOp):
        at, sizes = list(program.blocks.body.arguments)[:3], program.blocks.grid
        if block == program.steps.body:
            at, sizes = [*at, block.arguments[0]], (*sizes, program.steps.count)
        check_numbers(view, at, sizes)


def _problem(op: ir.Operation) -> str | None:
    """Return why there is no code for an operation on tiles that threads hold."""
    if op.name == "stablehlo.constant":
        return None if splat_of(op) is not None else "expected a constant with equal elements"
    if op.name == "stablehlo.broadcast_in_dim":
        is_of_rows = len(shape_of(op.operands[0])) == 1 and integers(op, "broadcast_dimensions") == [0]
        return None if is_of_rows else "expected a broadcast of rows"
    if op.name == "stablehlo.reduce":
        is_of_rows = len(op.results) == 1 and integers(op, "dimensions") == [1]
        is_one = is_of_rows and len(list(body_of(op).operations)) == 2
        start = defining_op(op.operands[1])
        is_known = is_one and start is not None and start.name == "stablehlo.constant"
        return None if is_known else "expected a reduction of rows by one operation, from a constant"
    if op.name in OPERATIONS and OPERATIONS[op.name].kind == "elementwise" and not len(op.regions):
        return None
    return "expected an operation on single elements, or on rows"
