"""The product emitter: blocks compute tiles of a matrix product, step by step along the contracted dimension.

The hero is a `dot_general`; what it reads and what follows it is computed on tiles too. There may be several, of one
left operand: tiles of all right ones are then multiplied by the same tile of it. The kernel is one of level
``tiles``; how threads copy tiles and multiply them is decided by the passes that lower it, as the schedule says.
"""

import math
from collections.abc import Hashable

from xgpu import ir
from xgpu.analysis.heroes import Form
from xgpu.dialects.attributes import BY_WARP_GROUPS, JOINED, PRODUCT, SCHEDULE, schedule_attribute
from xgpu.dialects.block.tiles import BlocksOp, InsertTileOp, StepsOp
from xgpu.dialects.xgpu import YieldOp
from xgpu.emit import requirements
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.families.products.facts import Products
from xgpu.emit.families.products.schedule import ProductSchedule
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import KernelBuilder, assign, entry_function
from xgpu.emit.tile_program import TileProgram, can_be_tiled, is_plain
from xgpu.fusion.grouping.families import Heroes
from xgpu.hlo.stablehlo_builder import convert, splat
from xgpu.hlo.tensor_cores import ALGORITHM, PRECISION, sum_type
from xgpu.indexing.affine import dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.product_maps import Product
from xgpu.indexing.tiles.tile_order import tile_order
from xgpu.reasons import Reason
from xgpu.structure import element_of

DOT = "stablehlo.dot_general"
DIMENSIONS = "dot_dimension_numbers"
BY_TILES = Reason("a product that kernels compute, by tiles")
_JOINED = Reason("products of one left operand that meet in it, whose tiles are multiplied by those of all right ones")


class ProductEmitter:
    """Emits a fusion around a product."""

    NAME = "product"

    def __init__(self, facts: Products, schedule: ProductSchedule):
        self.product, self.schedule, self.fusion = facts.product, schedule, facts.fusion

    def launch_dimensions(self) -> LaunchDimensions:
        """The threads that the schedule says."""
        return LaunchDimensions.along_x(self.schedule.blocks, self.schedule.threads)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[tile, product of the team, and the thread's elements of it] -> indices."""
        schedule, (threads, blocks) = self.schedule, self.launch_dimensions().ranges
        grid, holders = self.product.grid(schedule.tile_m, schedule.tile_n), schedule.holders
        clusters = math.prod(grid) // schedule.cluster
        step = schedule.blocks // schedule.cluster
        number = dim(1) // schedule.cluster + symbol(0) * step
        at = tile_order(grid, schedule.cluster, schedule.band)
        own = holders.accumulators
        row, column, _ = (each.substitute(None, [symbol(2 + i) for i in range(3)]) for each in own.results)
        row, column = row + holders.first_row(symbol(1)), column + holders.first_column
        block = [each.substitute([number, dim(1) % schedule.cluster]) for each in at.results]
        result = self.product.result_map(schedule.sizes)
        bounds = [(each.substitute(block, [row, column]), bound) for each, bound in result.constraints]
        bounds += [(number, Interval(0, clusters - 1)), (dim(0), Interval(0, holders.threads - 1))]
        symbols = (Interval(0, -(-clusters // step) - 1), Interval(0, holders.share - 1), *own.symbols)
        results = tuple(each.substitute(block, [row, column]) for each in result.results)
        return IndexingMap((threads, blocks), symbols, results, tuple(bounds)).simplify()

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
        at, outputs = arguments[:3], arguments[3:]
        arrays: dict[ir.Value, ir.Value] = dict(zip(self.fusion.body.arguments, kernel.inputs, strict=True))
        result = self.product.result_map(self.schedule.sizes)
        program = TileProgram(at, arrays)
        for hero, total in zip(self.fusion.heroes, self._write_steps(arrays, at), strict=True):
            program.know(hero.results[0], result, convert(total, element_of(hero.results[0])))
        return [
            InsertTileOp.build(program.tile(value, result), output, at, result)
            for value, output in zip(self.fusion.results, outputs, strict=True)
        ]

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
                with hero.location:
                    operands = [program.tile(hero.operands[i], product.operand_map(i, sizes)) for i in range(2)]
                    added.append(ir.stablehlo.add(before, _product_of(hero, type_, operands)))
            YieldOp.build(added)
        return list(steps.operation.results)


def _product_of(hero: ir.Operation, type_: ir.Type, operands: list[ir.Value]) -> ir.Value:
    """Write the product of two tiles as precisely as the hero is."""
    described = {name: hero.attributes[name] for name in (PRECISION, ALGORITHM) if name in hero.attributes}
    described[DIMENSIONS] = ir.stablehlo.DotDimensionNumbers.get([], [], [1], [0])
    return ir.Operation.create(DOT, [type_], operands, described).results[0]


def is_marked(op: ir.Operation, instruction: str) -> bool:
    """Whether a product is to be computed by a kernel, with these instructions."""
    return PRODUCT in op.attributes and ir.StringAttr(op.attributes[PRODUCT]).value == instruction


def _key(op: ir.Operation) -> Hashable | None:
    """Return what products of one kernel have in common; the product itself if it has a kernel alone."""
    if op.name != DOT or Product(op).problem() is not None:
        return None
    return (in_common(op), op.attributes[JOINED]) if JOINED in op.attributes else op


def in_common(op: ir.Operation) -> Hashable:
    """Return what products that one kernel computes agree in: a left operand, and how the right one's tiles lie."""
    left, right = op.operands
    return left, right.type, op.attributes[DIMENSIONS]


def follows(op: ir.Operation, form: Form) -> bool:
    """Whether ``op`` is computed of the product's tile, element by element at the same place."""
    types = [ir.RankedTensorType(value.type).element_type for value in (*op.operands, *op.results)]
    return form == Form.of_hero(op.results[0]) and can_be_tiled(op) and all(map(is_plain, types))


PRODUCTS = Family(
    heroes=Heroes(
        f"one product that tensor cores compute, of operands that can be copied as boxes, or several with one {JOINED}"
        " and left operand, and with right operands of one type",
        _key,
        operations=(DOT,),
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
