"""The product emitter: blocks compute tiles of a matrix product, step by step along the contracted dimension.

The hero is a `dot_general`; what it reads and what follows it is computed on tiles too. There may be several, of one
left operand: tiles of all right ones are then multiplied by the same tile of it. The kernel is one of level
``tiles``; how threads copy tiles and multiply them is decided by the passes that lower it, as the schedule says.
"""

import math
from collections.abc import Hashable
from dataclasses import replace

from xgpu import ir
from xgpu.analysis.heroes import Form
from xgpu.dialects.attributes import BY_WARP_GROUPS, JOINED, PRODUCT, SCHEDULE, schedule_attribute
from xgpu.dialects.block.tiles import BlocksOp, GroupRowsOp, InsertTileOp, StepsOp
from xgpu.dialects.xgpu import YieldOp
from xgpu.emit import requirements
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.families.products.facts import Products
from xgpu.emit.families.products.prologue import marked_product, tiled
from xgpu.emit.families.products.schedule import ProductSchedule
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import KernelBuilder, assign, entry_function
from xgpu.emit.tile_program import TileProgram
from xgpu.fusion.grouping.families import Heroes
from xgpu.hlo.chlo import RAGGED, RAGGED_DIMENSIONS
from xgpu.hlo.stablehlo_builder import convert, splat
from xgpu.hlo.tensor_cores import ALGORITHM, PRECISION, sum_type
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import AffineExpr, dim, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.dot_dimensions import DIMENSIONS
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.element_tiles import can_be_tiled, is_plain
from xgpu.indexing.tiles.product_maps import Product
from xgpu.indexing.tiles.ragged_maps import RaggedProduct
from xgpu.indexing.tiles.tile_order import tile_order
from xgpu.reasons import Reason
from xgpu.structure import element_of

DOT = "stablehlo.dot_general"
BY_TILES = Reason("a product that kernels compute, by tiles")
_JOINED = Reason("products of one left operand with a common epilogue: its tiles are multiplied by all right ones")


class ProductEmitter:
    """Emits a fusion around a product."""

    NAME = "product"

    def __init__(self, facts: Products, schedule: ProductSchedule):
        self.schedule, self.fusion = schedule, facts.fusion
        self.product = facts.swapped if schedule.swapped else facts.product

    def launch_dimensions(self) -> LaunchDimensions:
        """The threads that the schedule says."""
        return LaunchDimensions.along_x(self.schedule.blocks, self.schedule.threads)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[tile, product of the team, and the thread's elements of it] -> indices.

        The elements are those that the thread adds up, or those of its block's share where others have parts of them.
        """
        schedule, (threads, blocks) = self.schedule, self.launch_dimensions().ranges
        grid, together = self.product.grid(schedule.tile_m, schedule.tile_n), schedule.cluster * schedule.split
        clusters, step = math.prod(grid) // schedule.cluster, schedule.blocks // together
        number = dim(1) // together + symbol(0) * step
        at = tile_order(grid, schedule.cluster, schedule.band)
        row, column, own, bounds = self._elements()
        block = [each.substitute([number, dim(1) % schedule.cluster]) for each in at.results]
        result = self.product.placed_map(schedule.sizes)
        bounds += [(each.substitute(block, [row, column]), bound) for each, bound in result.constraints]
        bounds += [(number, Interval(0, clusters - 1)), (dim(0), Interval(0, schedule.holders.threads - 1))]
        symbols = (Interval(0, -(-clusters // step) - 1), Interval(0, schedule.holders.share - 1), *own)
        results = tuple(each.substitute(block, [row, column]) for each in result.results)
        return IndexingMap((threads, blocks), symbols, results, tuple(bounds)).simplify()

    def _elements(self) -> tuple[AffineExpr, AffineExpr, tuple[Interval, ...], list[Constraint]]:
        """Return row and column, in the tile, of a thread's elements of product ``s1``; ``s2`` and more number them."""
        paired = self.product.has_paired_rows(self.schedule.sizes)
        holders, panels = replace(self.schedule.holders, paired=paired), self.schedule.panels
        if panels.split == 1:
            own = holders.accumulators
            row, column, _ = (each.substitute(None, [symbol(2 + i) for i in range(3)]) for each in own.results)
            return row + holders.first_row(symbol(1)), column + holders.first_column, own.symbols, []
        read = panels.read(panels.most)
        at = [dim(0), dim(1) % panels.split], [symbol(3)]
        row, column, _ = (each.substitute(*at) for each in read.results)
        row, column = row + holders.first_row(symbol(1)), column + symbol(2) * panels.most
        row, column = panels.moved((row, column), symbol(4))
        symbols = (Interval(0, len(panels.parts) - 1), *read.symbols, Interval(0, panels.neighbours - 1))
        return row, column, symbols, [(each.substitute(*at), bound) for each, bound in read.constraints]

    def emit(self) -> None:
        """Write the entry function."""
        product, sizes = self.product, self.schedule.sizes
        with entry_function(self.fusion, self, []) as kernel:
            kernel.attributes[SCHEDULE] = schedule_attribute(self.schedule.values)
            blocks = BlocksOp.build(product.grid(sizes.m, sizes.n), [each.value for each in kernel.outputs])
            with ir.InsertionPoint(blocks.body):
                YieldOp.build(self._write_block(kernel, list(blocks.body.arguments)))
            assign(kernel.outputs, blocks.operation.results)

    def _write_block(self, kernel: KernelBuilder, arguments: list[ir.Value]) -> list[ir.Value]:
        arrays: dict[ir.Value, ir.Value] = dict(zip(self.fusion.body.arguments, kernel.inputs, strict=True))
        at, outputs = self._numbers(arguments[:3], arrays), arguments[3:]
        result = self.product.result_map(self.schedule.sizes)
        program = TileProgram(at, arrays)
        for hero, total in zip(self.fusion.heroes, self._write_steps(arrays, at), strict=True):
            program.know(hero.results[0], result, convert(total, element_of(hero.results[0])))
        return [
            InsertTileOp.build(program.tile(value, result), output, at, result)
            for value, output in zip(self.fusion.results, outputs, strict=True)
        ]

    def _numbers(self, at: list[ir.Value], arrays: dict[ir.Value, ir.Value]) -> list[ir.Value]:
        """Return the numbers of a block, given those in the grid: where rows are in groups, what its rows are, too."""
        product, sizes = self.product, self.schedule.sizes
        if not isinstance(product, RaggedProduct):
            return at
        groups = ranges((product.groups,))
        every = IndexingMap(ranges(product.grid(sizes.m, sizes.n)), groups, (symbol(0),))
        each = TileProgram(at, arrays).tile(product.group_sizes, every)
        return [*at, *GroupRowsOp.build(each, at[1], sizes.m, product.m)]

    def _write_steps(self, arrays: dict[ir.Value, ir.Value], at: list[ir.Value]) -> list[ir.Value]:
        """Write the loop over the contracted dimension; return the sums of each product."""
        product, sizes = self.product, self.schedule.sizes
        type_ = ir.RankedTensorType.get([sizes.m, sizes.n], ir.Type.parse(sum_type(product.dtype).mlir))
        steps = StepsOp.build(-(-product.k // sizes.k), [splat(0, type_)] * len(self.fusion.heroes))
        step, *partial = steps.body.arguments
        with ir.InsertionPoint(steps.body):
            program = TileProgram([*at, step], arrays)
            added = []
            for hero, before in zip(self.fusion.heroes, partial, strict=True):
                one = replace(product, op=hero)
                with hero.location:
                    operands = [program.tile(each, one.operand_map(i, sizes)) for i, each in enumerate(one.operands)]
                    described = _description(one) | {DIMENSIONS: ir.stablehlo.DotDimensionNumbers.get([], [], [1], [0])}
                    made = ir.Operation.create(DOT, [type_], operands, described).results[0]
                    added.append(ir.stablehlo.add(before, made))
            YieldOp.build(added)
        return list(steps.operation.results)


def _description(product: Product) -> dict[str, ir.Attribute]:
    """Return the precision and the algorithm of a product of tiles, of its operands in their order."""
    if product.op.name == RAGGED:
        return {}
    found = {name: product.op.attributes[name] for name in (PRECISION, ALGORITHM) if name in product.op.attributes}
    if product.is_swapped and PRECISION in found:
        found[PRECISION] = ir.ArrayAttr.get(list(ir.ArrayAttr(found[PRECISION]))[::-1])
    if product.is_swapped and ALGORITHM in found:
        given = ir.stablehlo.DotAlgorithm(found[ALGORITHM])
        found[ALGORITHM] = ir.stablehlo.DotAlgorithm.get(
            *(given.rhs_precision_type, given.lhs_precision_type, given.accumulation_type),
            *(given.rhs_component_count, given.lhs_component_count, given.num_primitive_operations),
            given.allow_imprecise_accumulation,
        )
    return found


def is_marked(op: ir.Operation, *instructions: str) -> bool:
    """Whether a product is to be computed by a kernel, with one of these instructions."""
    return PRODUCT in op.attributes and ir.StringAttr(op.attributes[PRODUCT]).value in instructions


def _key(op: ir.Operation) -> Hashable | None:
    """Return what products of one kernel have in common; the product itself if it has a kernel alone."""
    if op.name not in (DOT, RAGGED) or tiled(marked_product(op)).problem() is not None:
        return None
    return (in_common(op), op.attributes[JOINED]) if JOINED in op.attributes else op


def in_common(op: ir.Operation) -> Hashable:
    """Return what products that one kernel computes agree in: a left operand, and how the right one's tiles lie."""
    left, right, *sizes = op.operands
    dimensions = op.attributes[RAGGED_DIMENSIONS if op.name == RAGGED else DIMENSIONS]
    return left, right.type, dimensions, tuple(sizes)


def follows(op: ir.Operation, form: Form) -> bool:
    """Whether ``op`` is computed from the product's tile, element by element at the same place."""
    types = [ir.RankedTensorType(value.type).element_type for value in (*op.operands, *op.results)]
    return form == Form.of_hero(op.results[0]) and can_be_tiled(op) and all(map(is_plain, types))


PRODUCTS = Family(
    heroes=Heroes(
        f"one product that tensor cores compute, of operands that can be copied as boxes, or several with one {JOINED}"
        " and left operand, and with right operands of one type",
        _key,
        operations=(DOT, RAGGED),
        pays=lambda op: is_marked(op, BY_WARP_GROUPS),
    ),
    follows=follows,
    reads_memory=True,
    why=BY_TILES,
    why_joined=_JOINED,
    emitter=ProductEmitter,
    facts=Products,
    schedule=ProductSchedule,
    results=requirements.results_of_one_shape,
    level="tiles",
)
