"""What lower-tiles makes of a kernel of level ``tiles``: its blocks, their steps and the product in each."""

from dataclasses import dataclass

from xgpu import ir
from xgpu.dialects.attributes import SCHEDULE, schedule_values
from xgpu.dialects.base import DeclaredOp
from xgpu.dialects.block.tiles import BlocksOp, InsertTileOp, StepsOp, TileOp
from xgpu.passes.support.refusals import refuse
from xgpu.structure import defining_op

PASS = "lower-tiles"
_PRODUCT = "stablehlo.dot_general"


@dataclass(frozen=True)
class BlockProgram:
    """A kernel whose blocks add up products of tiles, step by step, and write what follows.

    ``left`` and ``right`` are the tiles of a step, ``total`` is the sum after the last one, ``stores`` write what is
    computed of it, one tile into each of the ``outputs``. ``schedule`` has the numbers by which threads share the work.
    """

    function: ir.Operation
    blocks: BlocksOp
    steps: StepsOp
    left: TileOp
    right: TileOp
    stores: tuple[InsertTileOp, ...]
    schedule: dict[str, int]

    @property
    def outputs(self) -> list[ir.Value]:
        """The arrays that blocks write, before they do."""
        return list(self.blocks.operation.operands)

    @property
    def total(self) -> ir.Value:
        """The sum of the products of all steps."""
        return self.steps.operation.results[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the tile that a block computes."""
        rows, columns = ir.RankedTensorType(self.total.type).shape
        return rows, columns


def read_program(function: ir.Operation) -> BlockProgram:
    """Return a function's blocks. Raises `CompilerError` for a form that there is no code for."""
    entry = [op.operation for op in function.regions[0].blocks[0].operations]
    blocks = _only(function, entry, BlocksOp)
    body = [op.operation for op in blocks.body.operations]
    steps = _only(blocks.operation, body, StepsOp)
    step = [op.operation for op in steps.body.operations]
    products = [op for op in step if op.name == _PRODUCT]
    if len(products) != 1 or len(steps.operation.results) != 1:
        refuse(PASS, steps.operation, f"expected one product and one sum, got {len(products)} products")
    left, right = (_tile(products[0], number) for number in range(2))
    added = defining_op(step[-1].operands[0])
    if added is None or added.name != "stablehlo.add":
        refuse(PASS, steps.operation, "expected each step to add the product to what it carries")
    stores = tuple(_store(body[-1], number, argument) for number, argument in enumerate(_outputs(blocks)))
    schedule = schedule_values(function.attributes[SCHEDULE])
    return BlockProgram(function, blocks, steps, left, right, stores, schedule)


def _only[OpT: DeclaredOp](parent: ir.Operation, operations: list[ir.Operation], kind: type[OpT]) -> OpT:
    found = [op.opview for op in operations if isinstance(op.opview, kind)]
    if len(found) != 1:
        refuse(PASS, parent, f"expected one {kind.OPERATION_NAME} in it, got {len(found)}")
    return found[0]


def _outputs(blocks: BlocksOp) -> list[ir.Value]:
    return [*list(blocks.body.arguments)[len(blocks.grid) :]]


def _store(end: ir.Operation, number: int, array: ir.Value) -> InsertTileOp:
    op = defining_op(end.operands[number])
    view = None if op is None else op.opview
    if not isinstance(view, InsertTileOp) or view.array != array:
        refuse(PASS, end, f"expected value {number} to be the array of that number with one tile written")
    return view


def _tile(product: ir.Operation, number: int) -> TileOp:
    op = defining_op(product.operands[number])
    if op is None or op.name != TileOp.OPERATION_NAME:
        refuse(PASS, product, f"expected operand {number} to be a tile of an array as it is in memory")
    view = op.opview
    assert isinstance(view, TileOp)
    return view
