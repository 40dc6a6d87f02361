"""The product emitter: blocks compute tiles of a matrix product, step by step along the contracted dimension.

The hero is a `dot_general`; what it reads and what follows it is computed on tiles too. The kernel is one of level
``tiles``; how threads copy tiles and multiply them is decided by the passes that lower it, as the schedule says.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from xgpu import ir
from xgpu.dialects.attributes import SCHEDULE, schedule_attribute
from xgpu.dialects.block.matrices import ELEMENT_BITS, WARPGROUP_ROWS, accumulator_of, warpgroup_columns
from xgpu.dialects.block.tiles import BlocksOp, InsertTileOp, StepsOp
from xgpu.dialects.xgpu import YieldOp
from xgpu.dtypes import dtype_of_element
from xgpu.emit import requirements
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import KernelBuilder, assign, entry_function
from xgpu.emit.schedule import Schedule, flag, power_of_two, whole_number
from xgpu.emit.tile_program import TileProgram, simplify_results
from xgpu.fusion.grouping.families import Heroes
from xgpu.indexing.access import Shape, ranges, shape_of
from xgpu.indexing.affine import AffineExpr, delinearize, dim, symbol
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tensor_views import TensorView, tensor_view
from xgpu.target_machine import WARP_SIZE

_GROUP_THREADS = 4 * WARP_SIZE
"""Threads of a warp group."""
_ROW_BYTES = 128
"""Bytes of a tile along the contracted dimension: the widest row that shared memory swizzles."""
_BARRIER_BYTES = 2048
"""Shared memory that a kernel takes besides its tiles, at most: mbarriers, and room for tensor maps."""
_COPIED_BITS = (8, 16, 32, 64)
_BAND = 16
"""Rows of tiles that blocks at work share columns of the right operand with, at most."""
MULTIPLIED = frozenset(("bf16", "f16"))
"""Types of elements that the kernels multiply."""
_LARGE_TILES = ((128, 256), (128, 128), (128, 64), (64, 64))
"""Rows and columns of tiles, the largest first: it reads least for each product."""


@dataclass(frozen=True)
class Products:
    """A fusion around one product of batches of matrices: ``batch`` times m x k by k x n."""

    fusion: Fusion

    @property
    def hero(self) -> ir.Operation:
        """The product."""
        return self.fusion.heroes[0]

    @cached_property
    def element(self) -> str:
        """The type of the operands' elements, as instructions multiply them."""
        return str(ir.RankedTensorType(self.hero.operands[0].type).element_type)

    @property
    def element_bytes(self) -> int:
        """The bytes of an element of the operands."""
        return ELEMENT_BITS[self.element] // 8

    @cached_property
    def _shapes(self) -> tuple[Shape, Shape, Shape, Shape]:
        """The sizes of the batch dimensions, of those of the left and of the right operand, of the contracted ones."""
        numbers = ir.stablehlo.DotDimensionNumbers(self.hero.attributes["dot_dimension_numbers"])
        result, left = shape_of(self.hero.results[0]), shape_of(self.hero.operands[0])
        batches = len(numbers.lhs_batching_dimensions)
        split = len(left) - len(numbers.lhs_contracting_dimensions)
        contracted = tuple(left[i] for i in numbers.lhs_contracting_dimensions)
        return result[:batches], result[batches:split], result[split:], contracted

    @property
    def batch(self) -> int:
        """How many products of two matrices there are."""
        return math.prod(self._shapes[0])

    @property
    def m(self) -> int:
        """Rows of the left matrices."""
        return math.prod(self._shapes[1])

    @property
    def n(self) -> int:
        """Columns of the right matrices."""
        return math.prod(self._shapes[2])

    @property
    def k(self) -> int:
        """Elements that are contracted."""
        return math.prod(self._shapes[3])

    def grid(self, rows: int, columns: int) -> tuple[int, int, int]:
        """Return how many tiles there are: matrices, tiles down a matrix, and along its rows."""
        return self.batch, -(-self.m // rows), -(-self.n // columns)

    def result_views(self, tile: "TileSizes") -> list["TensorView | str"]:
        """Return how each result's tiles are copied as boxes, or why they cannot be."""
        map_ = self.result_map(tile)
        types = [ir.RankedTensorType(value.type) for value in self.fusion.results]
        return [
            tensor_view(map_, tuple(each.shape), dtype_of_element(each.element_type).storage_bits // 8, _ROW_BYTES)
            if dtype_of_element(each.element_type).storage_bits in _COPIED_BITS
            else "its elements are not of 8 to 64 bits"
            for each in types
        ]

    def staging_problem(self, tile: "TileSizes") -> str | None:
        """Return why a result cannot be copied as boxes, None if each can."""
        return next((view for view in self.result_views(tile) if isinstance(view, str)), None)

    def staging_bytes(self, rows: int, columns: int) -> int:
        """Return the shared memory that results of a tile take on their way."""
        widths = [dtype_of_element(ir.RankedTensorType(each.type).element_type) for each in self.fusion.results]
        return rows * columns * max(each.storage_bits for each in widths) // 8

    def result_map(self, tile: "TileSizes") -> IndexingMap:
        """Return the map of a tile of the result, from (batch, row of tiles, column of tiles)."""
        row, column = dim(1) * tile.m + symbol(0), dim(2) * tile.n + symbol(1)
        bounds = [(row, self.m, tile.m), (column, self.n, tile.n)]
        grid = self.grid(tile.m, tile.n)
        return _within(grid, (tile.m, tile.n), self._result_indices(row, column), bounds)

    def operand_map(self, number: int, tile: "TileSizes") -> IndexingMap:
        """Return the map of a tile of an operand, m x k or k x n, from (batch, row, column, step)."""
        row, column = dim(1) * tile.m + symbol(0), dim(2) * tile.n + symbol(1)
        position = dim(3) * tile.k + symbol(1 - number)
        contracted = delinearize(position, self._shapes[3])
        access = accesses(self.hero)[number].map
        indices = self._result_indices(row, column)
        results = tuple(each.substitute(indices, contracted) for each in access.results)
        shape = ((tile.m, tile.k), (tile.k, tile.n))[number]
        free = ((row, self.m, tile.m), (column, self.n, tile.n))[number]
        grid = (*self.grid(tile.m, tile.n), -(-self.k // tile.k))
        return _within(grid, shape, results, [free, (position, self.k, tile.k)])

    def _result_indices(self, row: AffineExpr, column: AffineExpr) -> tuple[AffineExpr, ...]:
        batch, left, right, _ = self._shapes
        return (*delinearize(dim(0), batch), *delinearize(row, left), *delinearize(column, right))


@dataclass(frozen=True)
class TileSizes:
    """The tiles that a block multiplies in a step: m x k by k x n."""

    m: int
    n: int
    k: int


def _within(
    dims: Sequence[int],
    shape: Sequence[int],
    results: tuple[AffineExpr, ...],
    bounds: list[tuple[AffineExpr, int, int]],
) -> IndexingMap:
    """Return a map of tiles: of each bound, an expression is below a size, which ``step`` may not divide."""
    constraints = tuple((each, Interval(0, size - 1)) for each, size, step in bounds if size % step)
    return simplify_results(IndexingMap(ranges(tuple(dims)), ranges(tuple(shape)), results, constraints))


@dataclass(frozen=True)
class ProductSchedule(Schedule):
    """How the blocks of a product share it, and how the threads of a block do."""

    tile_m: int = power_of_two("Rows of a block's tile.", least=64, most=256)
    tile_n: int = whole_number("Columns of a block's tile, a multiple of 8.", least=8, most=256)
    tile_k: int = power_of_two("Elements that a step contracts.", least=8, most=128)
    stages: int = whole_number("Steps whose tiles shared memory has room for.", most=16)
    groups: int = whole_number("Warp groups that multiply; each has its share of the rows.", most=3)
    blocks: int = whole_number("Blocks of the launch, each of which computes tiles in turn.", most=1 << 20)
    cluster: int = power_of_two("Blocks one below the other that share tiles of the right operand.", most=8)
    staged: bool = flag("Whether results go through shared memory, to be copied as boxes.")
    band: int = whole_number("Rows of tiles that are computed column by column, for what they share.", most=1 << 20)

    @classmethod
    def of(cls, facts: Products) -> Self:
        """The largest tiles of which there are enough for all multiprocessors; as many stages as there is room for."""
        device, k = facts.fusion.device, _ROW_BYTES // facts.element_bytes
        sizes = [tile for tile in _LARGE_TILES if math.prod(facts.grid(*tile)) >= device.sm_count]
        m, n = sizes[0] if sizes else _LARGE_TILES[-1]
        staged = all(isinstance(view, TensorView) for view in facts.result_views(TileSizes(m, n, k)))
        room = device.shared_bytes_optin - _BARRIER_BYTES - staged * facts.staging_bytes(m, n)
        _, down, along = facts.grid(m, n)
        cluster = 2 if down % 2 == 0 else 1
        tiles = facts.batch * down * along
        blocks = min(tiles, device.sm_count) // cluster * cluster
        down //= cluster
        band = max(each for each in range(1, _BAND + 1) if down % each == 0)
        stages = min(8, room // ((m + n) * _ROW_BYTES))
        return cls(m, n, k, stages, m // WARPGROUP_ROWS, blocks, cluster, staged, band)

    @property
    def sizes(self) -> TileSizes:
        """The tiles of a step."""
        return TileSizes(self.tile_m, self.tile_n, self.tile_k)

    def problems(self, facts: Products) -> Iterator[str]:
        """The tiles are ones that warp groups multiply, and fit the memory of a block."""
        if self.tile_n not in warpgroup_columns(facts.element):
            yield self.wrong("tile_n", "a number of columns that the instruction has")
        if self.tile_k * facts.element_bytes != _ROW_BYTES:
            yield self.wrong("tile_k", f"{_ROW_BYTES // facts.element_bytes}, rows of {_ROW_BYTES} bytes")
        if self.tile_m % (self.groups * WARPGROUP_ROWS):
            yield self.wrong("groups", f"each to have a multiple of {WARPGROUP_ROWS} rows")
        used = self.stages * (self.tile_m + self.tile_n) * _ROW_BYTES + _BARRIER_BYTES
        used += self.staged * facts.staging_bytes(self.tile_m, self.tile_n)
        most = facts.fusion.device.shared_bytes_optin
        if used > most:
            yield self.wrong("stages", f"tiles of at most {most - _BARRIER_BYTES} bytes, the shared memory of a block")
        down = facts.grid(self.tile_m, self.tile_n)[1]
        if down % self.cluster or self.blocks % self.cluster:
            yield self.wrong("cluster", f"a divisor of {down}, the rows of tiles, and of {self.blocks}, the blocks")
        elif down // self.cluster % self.band:
            yield self.wrong("band", f"a divisor of {down // self.cluster}, the rows of tiles, or of clusters")
        if self.staged and (problem := facts.staging_problem(self.sizes)):
            yield self.wrong("staged", f"results that can be copied as boxes, but {problem}")


class ProductEmitter:
    """Emits a fusion around a product."""

    NAME = "product"

    def __init__(self, facts: Products, schedule: ProductSchedule):
        self.facts, self.schedule, self.fusion = facts, schedule, facts.fusion

    def launch_dimensions(self) -> LaunchDimensions:
        """The warp groups that multiply, and one that copies."""
        return LaunchDimensions.along_x(self.schedule.blocks, (self.schedule.groups + 1) * _GROUP_THREADS)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[steps] -> indices."""
        raise NotImplementedError

    def emit(self) -> None:
        """Write the entry function."""
        facts, sizes = self.facts, self.schedule.sizes
        with entry_function(self.fusion, self, []) as kernel:
            kernel.attributes[SCHEDULE] = schedule_attribute(self.schedule.values)
            blocks = BlocksOp.build(facts.grid(sizes.m, sizes.n), [each.value for each in kernel.outputs])
            with ir.InsertionPoint(blocks.body):
                YieldOp.build(self._write_block(kernel, list(blocks.body.arguments)))
            assign(kernel.outputs, blocks.operation.results)

    def _write_block(self, kernel: KernelBuilder, arguments: list[ir.Value]) -> list[ir.Value]:
        at, outputs = arguments[:3], arguments[3:]
        arrays: dict[ir.Value, ir.Value] = dict(zip(self.fusion.body.arguments, kernel.inputs, strict=True))
        result, hero = self.facts.result_map(self.schedule.sizes), self.facts.hero
        program = TileProgram(at, arrays)
        program.know(hero.results[0], result, self._write_steps(arrays, at))
        return [
            InsertTileOp.build(program.tile(value, result), output, at, result)
            for value, output in zip(self.fusion.results, outputs, strict=True)
        ]

    def _write_steps(self, arrays: dict[ir.Value, ir.Value], at: list[ir.Value]) -> ir.Value:
        """Write the loop over the contracted dimension; return the product in the hero's type."""
        facts, sizes, hero = self.facts, self.schedule.sizes, self.facts.hero
        sum_type = ir.RankedTensorType.get([sizes.m, sizes.n], ir.Type.parse(accumulator_of(facts.element)))
        steps = StepsOp.build(-(-facts.k // sizes.k), [_zeros(sum_type)])
        step, partial = steps.body.arguments
        with ir.InsertionPoint(steps.body), hero.location:
            program = TileProgram([*at, step], arrays)
            operands = [program.tile(hero.operands[i], facts.operand_map(i, sizes)) for i in range(2)]
            product = ir.stablehlo.dot_general(
                sum_type, operands[0], operands[1], ir.stablehlo.DotDimensionNumbers.get([], [], [1], [0])
            )
            YieldOp.build([ir.stablehlo.add(partial, product)])
        element = ir.RankedTensorType(hero.results[0].type).element_type
        total: ir.Value = steps.operation.results[0]
        return (
            total
            if element == sum_type.element_type
            else ir.stablehlo.convert(ir.RankedTensorType.get(sum_type.shape, element), total)
        )


def _zeros(type_: ir.RankedTensorType) -> ir.Value:
    element = type_.element_type
    is_float = isinstance(element, ir.FloatType)
    zero = ir.FloatAttr.get(element, 0.0) if is_float else ir.IntegerAttr.get(element, 0)
    return ir.stablehlo.constant(ir.DenseElementsAttr.get_splat(type_, zero))


def _key(op: ir.Operation) -> Hashable | None:
    """Return the product itself: a kernel computes one."""
    if op.name != "stablehlo.dot_general":
        return None
    elements = {str(ir.RankedTensorType(value.type).element_type) for value in op.operands}
    return op if elements <= MULTIPLIED and len(elements) == 1 else None


PRODUCTS = Family(
    heroes=Heroes("one product of bf16, f16 or f32 as tf32", _key),
    emitter=ProductEmitter,
    facts=Products,
    schedule=ProductSchedule,
    results=requirements.results_of_one_shape,
    level="tiles",
)
