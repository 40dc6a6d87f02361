"""lower-tiles' view of a kernel of level ``tiles`` whose steps have several products, one after the other."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.places import DOT
from xgpu.dialects.attributes import HIDDEN, VISIBLE, map_of
from xgpu.dialects.block.tiles import (
    BlocksOp,
    GatherTileOp,
    IndexTileOp,
    InsertTileOp,
    ReadTile,
    StepsOp,
    TileOp,
)
from xgpu.emit.families.attention.schedule import AttentionSchedule, ChainSchedule
from xgpu.emit.families.attention.sums_schedule import SumsSchedule
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import integers, ranges, shape_of
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import (
    PASS,
    check_numbers,
    gathered_operand,
    only,
    read_tiles,
    stored,
    tile_operand,
)
from xgpu.passes.tiles.chains.powers import Powers
from xgpu.passes.tiles.chains.spreads import ScalarForm
from xgpu.records import dataclass
from xgpu.structure import (
    backward_slice,
    block_of,
    body_of,
    defining_op,
    dtype_of,
    is_argument,
    is_result_of,
    producer,
    users_of,
)

_ENDS = 2
_Reads = TileOp | GatherTileOp | IndexTileOp
_ADD = "stablehlo.add"
_TRANSPOSE = "stablehlo.transpose"
_MANTISSAS = {"bf16": 8, "f16": 11, "f32": 11}
"""The bits of numbers to which weights of a type are rounded, by the element that threads hold as a left operand."""


@dataclass(frozen=True)
class ChainProduct:
    """A product ``op`` of a step by the tile ``right`` of that step, which lies transposed in memory if ``is_turned``.

    Its ``left`` operand is a tile that all steps share; or it is computed in the step, where that is None, and the
    product is then ``added`` to what steps carry.
    """

    op: ir.Operation
    left: TileOp | None
    right: ReadTile
    is_turned: bool
    added: ir.Operation | None

    @property
    def result(self) -> ir.Value:
        """The sum that the product computes."""
        return self.op.results[0]

    @property
    def columns(self) -> int:
        """The columns of the result."""
        return shape_of(self.result)[1]

    @property
    def contracted(self) -> int:
        """The dimension of the right tile that is contracted."""
        return 1 if self.is_turned else 0

    @property
    def keys(self) -> int:
        """The dimension of the right tile along which steps go."""
        return self.contracted if self.left is None else 1 - self.contracted

    @property
    def computed(self) -> ir.Value:
        """The left operand, where it is computed."""
        return self.op.operands[0]

    @property
    def carried(self) -> ir.Value:
        """The value that the product is added to."""
        assert self.added is not None
        left, right = self.added.operands
        return right if left == self.result else left


@dataclass(frozen=True)
class ChainProgram:
    """A kernel whose steps multiply tiles that all of them share, and then what is computed from these products.

    ``fixed`` are the tiles that all steps share, ``fed`` those of each step. ``stores`` write what is computed after
    the last step of what these carry, or, where steps carry the array, what each of them computes.
    """

    function: ir.Operation
    blocks: BlocksOp
    steps: StepsOp
    products: tuple[ChainProduct, ...]
    stores: tuple[InsertTileOp, ...]
    schedule: ChainSchedule

    @cached_property
    def fixed(self) -> tuple[TileOp, ...]:
        """The tiles that products of all steps share, in their order."""
        return tuple(dict.fromkeys(each.left for each in self.products if each.left is not None))

    @cached_property
    def fed(self) -> tuple[ReadTile, ...]:
        """The tiles of each step that are multiplied, in their order."""
        return tuple(dict.fromkeys(each.right for each in self.products))

    @property
    def outputs(self) -> list[ir.Value]:
        """The arrays that blocks write, before they do."""
        return list(self.blocks.operation.operands)

    def output_of(self, store: InsertTileOp) -> ir.Value:
        """Return the array that a store writes, before blocks do."""
        return self.outputs[self.stores.index(store)]

    @cached_property
    def step_stores(self) -> Mapping[ir.Operation, InsertTileOp]:
        """The stores of each step, by their operations."""
        return {each.operation: each for each in self.stores if block_of(each.operation.results[0]) == self.steps.body}

    @cached_property
    def carried(self) -> tuple[int, ...]:
        """The numbers of those values that threads carry from step to step: all but arrays."""
        (*_, end) = self.steps.body.operations
        made = [defining_op(value) for value in end.operation.operands]
        return tuple(number for number, op in enumerate(made) if op is None or op not in self.step_stores)

    @property
    def rows(self) -> int:
        """The rows of a block's tile."""
        return shape_of(self.fixed[0].tile)[0]

    @property
    def started(self) -> tuple[ChainProduct, ...]:
        """The products of tiles."""
        return tuple(each for each in self.products if each.left is not None)

    @property
    def summed(self) -> tuple[ChainProduct, ...]:
        """The products of what is computed, which are added up."""
        return tuple(each for each in self.products if each.left is None)

    @property
    def overlaps(self) -> bool:
        """Whether the second product of a step runs beside the first one of the next."""
        return isinstance(self.schedule, AttentionSchedule) and self.schedule.overlap

    @property
    def reuses(self) -> bool:
        """Whether results are handed on in the memory of the first tile that all steps share."""
        return isinstance(self.schedule, AttentionSchedule) and self.schedule.reuse

    @property
    def has_turns(self) -> bool:
        """Whether warp groups start their products in turn."""
        return isinstance(self.schedule, AttentionSchedule | SumsSchedule) and self.schedule.turns

    @cached_property
    def form(self) -> ScalarForm:
        """The form in which a step's code between its products is written."""
        # Elements are computed one after the other where no reduction needs all of a row.
        deep = not any(each.operation.name == "stablehlo.reduce" for each in self.steps.body.operations)
        if not isinstance(self.schedule, AttentionSchedule):
            return ScalarForm(deep=deep)
        powers = Powers(self.schedule.computed, _MANTISSAS[dtype_of(self.summed[0].computed).hlo])
        return ScalarForm(self.schedule.branched, deep, set(self.added_rows.values()), powers)

    @cached_property
    def added_rows(self) -> dict[int, ir.Operation]:
        """The carried values that are sums of rows, by their numbers, with the reduction that a step adds.

        The sum so far is multiplied at most: lanes may keep parts of it until all steps are done.
        """
        (*_, end) = self.steps.body.operations
        arguments = list(self.steps.body.arguments)[1:]
        carried = zip(self.steps.inits, end.operation.operands, arguments, strict=True)
        found = {number: _added_row(*each) for number, each in enumerate(carried)}
        return {number: op for number, op in found.items() if op is not None}

    @cached_property
    def largest(self) -> ir.Value:
        """The carried values that are the largest of each row: a maximum with what they take, or a choice, of rows."""
        (*_, end) = self.steps.body.operations
        arguments = list(self.steps.body.arguments)[1:]
        found = [
            number
            for number, (value, argument) in enumerate(zip(end.operation.operands, arguments, strict=True))
            if _is_largest(value, argument)
        ]
        if not found:
            refuse(PASS, self.steps.operation, f"expected steps that carry the largest of each row, for {HIDDEN}")
        return self.steps.operation.results[found[-1]]


def _added_row(start: ir.Value, value: ir.Value, argument: ir.Value) -> ir.Operation | None:
    """Return the reduction by addition that a value carried has added to a multiple of itself; None if it is other."""
    made = defining_op(start)
    zero = splat_of(made) if made is not None and made.name == "stablehlo.constant" else None
    is_zero = isinstance(zero, ir.FloatAttr) and zero.value == 0
    if not is_zero or not is_result_of(value, _ADD) or len(users_of(argument)) != 1 or len(users_of(value)) != 1:
        return None
    for added, kept in (producer(value).operands, list(producer(value).operands)[::-1]):
        multiplied = is_result_of(kept, "stablehlo.multiply") and argument in producer(kept).operands
        if (kept == argument or multiplied) and is_result_of(added, "stablehlo.reduce") and _adds(producer(added)):
            return producer(added) if len(users_of(added)) == 1 and len(users_of(kept)) == 1 else None
    return None


def _adds(reduce: ir.Operation) -> bool:
    start = splat_of(producer(reduce.operands[1]))
    first = next(iter(body_of(reduce).operations))
    return first.operation.name == _ADD and isinstance(start, ir.FloatAttr) and start.value == 0


def _is_largest(value: ir.Value, argument: ir.Value) -> bool:
    """Whether a value is a maximum with an argument, or a choice between another value and the argument."""
    if is_result_of(value, "stablehlo.select"):
        return bool(producer(value).operands[2] == argument)
    return is_result_of(value, "stablehlo.maximum") and argument in producer(value).operands


def read_chain(function: ir.Operation, schedule: ChainSchedule) -> ChainProgram:
    """Return a function's blocks. Raises `CompilerError` for a form that there is no code for."""
    if len(function.regions[0].blocks) != 1:
        refuse(PASS, function, f"expected a body of one block, got {len(function.regions[0].blocks)}")
    blocks = only(function, function.regions[0].blocks[0], BlocksOp)
    if len(blocks.grid) != 3 or not len(blocks.operation.operands):
        refuse(PASS, blocks.operation, "expected a grid of matrices, rows and columns of tiles, and an array")
    steps = only(blocks.operation, blocks.body, StepsOp)
    at = list(blocks.body.arguments)[:3]
    in_step, sizes = [*at, steps.body.arguments[0]], (*blocks.grid, steps.count)
    dots = [each.operation for each in steps.body.operations if each.operation.name == DOT]
    products = tuple(_read_product(op, (at, blocks.grid), (in_step, sizes)) for op in dots)
    if steps.count < 1 or not any(each.left for each in products) or all(each.left for each in products):
        got = f"{steps.count} steps of {len(products)}"
        refuse(
            PASS, steps.operation, f"expected steps of products of tiles, and of what is computed from them, got {got}"
        )
    (*_, end) = blocks.body.operations
    arrays = list(blocks.body.arguments)[3:]
    stores = tuple(
        _step_stored(end.operation, number, array, steps, (in_step, sizes))
        or stored(end.operation, number, array, at, blocks.grid)
        for number, array in enumerate(arrays)
    )
    _check_visible(steps, blocks.grid)
    program = ChainProgram(function, blocks, steps, products, stores, schedule)
    if program.overlaps and program.step_stores:
        refuse(PASS, steps.operation, "expected steps that write no arrays, as their products overlap")
    for block in (blocks.body, steps.body):
        _check_operations(program, block)
    return program


type _Taken = tuple[Sequence[ir.Value], Sequence[int]]
"""The numbers at which tiles are taken, and how many there are of each."""


def _read_product(op: ir.Operation, block: _Taken, step: _Taken) -> ChainProduct:
    turned = defining_op(op.operands[1])
    is_turned = turned is not None and turned.name == _TRANSPOSE
    right = gathered_operand(turned if is_turned and turned is not None else op, 0 if is_turned else 1, *step)
    made = defining_op(op.operands[0])
    if made is not None and isinstance(made.opview, TileOp):
        return ChainProduct(op, tile_operand(op, 0, *block), right, is_turned, None)
    users = users_of(op.results[0])
    if len(users) != 1 or users[0].name != _ADD or users[0].operands[0] == users[0].operands[1]:
        refuse(PASS, op, f"expected its result to be added, by one {_ADD}")
    if made is None or dtype_of(op.operands[0]).hlo not in _MANTISSAS:
        refuse(PASS, op, f"expected its left operand to be computed, in {', '.join(_MANTISSAS)}")
    return ChainProduct(op, None, right, is_turned, users[0])


def _step_stored(end: ir.Operation, number: int, array: ir.Value, steps: StepsOp, step: _Taken) -> InsertTileOp | None:
    """Return what each step writes into the array of a number; None if steps do not carry the array."""
    written = end.operands[number]
    if defining_op(written) != steps.operation:
        return None
    position = list(steps.operation.results).index(written)
    if steps.operation.operands[position] != array:
        refuse(PASS, end, f"expected value {number} to be the array of that number with tiles written")
    (*_, last) = steps.body.operations
    return stored(last.operation, position, steps.body.arguments[1 + position], *step)


def _check_operations(program: ChainProgram, block: ir.Block) -> None:
    """Check that all other operations are on single elements, on rows, or write the tiles."""
    special = {program.steps.operation, *(each.op for each in program.products)}
    special |= {each.operation for each in program.stores}
    special |= {producer(each.op.operands[1]) for each in program.products}
    special |= _numbers(program, block)
    for each in (view.operation for view in list(block.operations)[:-1]):
        if each in special or isinstance(each.opview, _Reads):
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


def _check_visible(steps: StepsOp, grid: Sequence[int]) -> None:
    """Check that visible steps are those of the block's numbers, and of limits that it can compute."""
    op = steps.operation
    if steps.limits and VISIBLE not in op.attributes:
        refuse(PASS, op, f"expected {VISIBLE}, which says what the limits are")
    if VISIBLE not in op.attributes:
        return
    map_, count = map_of(op.attributes[VISIBLE]), len(grid)
    is_from_zero = all(not each.lower for each in map_.dims[count:])
    if map_.dims[:count] != ranges(tuple(grid)) or len(map_.dims) != count + len(steps.limits) or not is_from_zero:
        wanted = f"the {count} numbers of the block, and then {len(steps.limits)} limits from 0"
        refuse(PASS, op, f"attribute '{VISIBLE}': expected {wanted}, got {map_}")
    if map_.symbols or map_.constraints or len(map_.results) < _ENDS:
        refuse(PASS, op, f"attribute '{VISIBLE}': expected the first step and the one after the last, got {map_}")
    for value in steps.limits:
        read_tiles(op, value, "tiles of integers", ())


def _numbers(program: ChainProgram, block: ir.Block) -> set[ir.Operation]:
    """Return the operations that compute where tiles are gathered, by the thread that copies them."""
    gathered = [each for each in program.fed if isinstance(each, GatherTileOp)]
    values = [value for each in gathered for value in each.numbers]
    return {op for op in backward_slice(values, lambda value: is_argument(value)) if op.block == block}


def _check_at(program: ChainProgram, op: ir.Operation, block: ir.Block) -> None:
    """Check that a tile is taken at the numbers of block and step."""
    view = op.opview
    if isinstance(view, _Reads):
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
