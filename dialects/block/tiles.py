"""Operations of the xgpu dialect on whole tiles, of level ``tiles``: blocks, their steps, and what they read and write.

All has value semantics. What is computed from tiles is StableHLO, whose operands are then the tiles' elements.
"""

from collections.abc import Iterator, Mapping, Sequence

from xgpu import ir
from xgpu.dialects.attributes import INTEGER, INTEGERS, MAP
from xgpu.dialects.base import ANY, INDEX, TENSOR, Attribute, BodyOp, DeclaredOp, Values, declare
from xgpu.dialects.discardable import MAX_GRID
from xgpu.dialects.namespace import XgpuDialect, carried_problems
from xgpu.dialects.traits import Traits
from xgpu.indexing.indexing_map import IndexingMap

_AT = Values("at", INDEX, "The numbers of the block and the step: the dimensions of the map.", variadic=True)


@ir.register_operation(XgpuDialect)
@declare
class BlocksOp(BodyOp):
    """The blocks of a kernel: runs its body for each point of a grid, in any order, or all at once.

    The body takes the block's numbers and the arrays as blocks before have left them, and yields these. No two blocks
    write the same element, and none reads what is written.

    ```mlir
    %product = "xgpu.blocks"(%out) ({
    ^bb0(%i: index, %j: index, %array: tensor<512x512xf32>):
      ...
      "xgpu.yield"(%updated) : (tensor<512x512xf32>) -> ()
    }) {grid = array<i64: 4, 2>} : (tensor<512x512xf32>) -> tensor<512x512xf32>
    ```
    """

    OPERATION_NAME = "xgpu.blocks"
    TRAITS = Traits(loop=True, passes_on=True)
    OPERANDS = (Values("outputs", TENSOR, "The arrays that blocks write.", variadic=True),)
    RESULTS = (Values("written", TENSOR, "The arrays once all have run.", variadic=True),)
    ATTRIBUTES = (Attribute("grid", INTEGERS, "How many blocks there are along each dimension of the grid."),)
    grid: tuple[int, ...]

    @classmethod
    def build(cls, grid: Sequence[int], outputs: Sequence[ir.Value], loc: ir.Location | None = None) -> "BlocksOp":
        """Create the operation with an empty body; the caller fills it and ends it with `YieldOp`."""
        types = [value.type for value in outputs]
        op: BlocksOp = cls.create(outputs, types, {"grid": tuple(grid)}, loc)
        op.operation.regions[0].blocks.append(*[ir.IndexType.get()] * len(grid), *types)
        return op

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """There are blocks; the body takes their numbers and the arrays, and yields the arrays."""
        if not self.grid or any(not 1 <= size <= MAX_GRID[0] for size in self.grid):
            yield f"attribute 'grid': expected numbers of blocks from 1 to {MAX_GRID[0]}, got {self.grid}"
            return
        yield from carried_problems(self.operation, self.operation.operands, len(self.grid))


@ir.register_operation(XgpuDialect)
@declare
class StepsOp(BodyOp):
    """The steps of a block: runs its body ``count`` times, each with the values that the one before has yielded.

    `xgpu.visible` may say that only some change these: its map has a dimension for each of the ``limits``, numbers that
    are clamped to it.

    ```mlir
    %sum = "xgpu.steps"(%zero) ({
    ^bb0(%step: index, %partial: tensor<128x256xf32>):
      ...
      "xgpu.yield"(%next) : (tensor<128x256xf32>) -> ()
    }) {count = 64 : i64} : (tensor<128x256xf32>) -> tensor<128x256xf32>
    ```
    """

    OPERATION_NAME = "xgpu.steps"
    TRAITS = Traits(loop=True, passes_on=True)
    OPERANDS = (
        Values("inits", ANY, "What the first step takes.", count=lambda op: len(op.operation.results)),
        Values("limits", TENSOR, "Integers without dimensions.", variadic=True),
    )
    RESULTS = (Values("finals", ANY, "What the last step yields.", variadic=True),)
    ATTRIBUTES = (Attribute("count", INTEGER, "The number of steps, from 0."),)
    count: int
    inits: list[ir.Value]
    limits: list[ir.Value]

    @classmethod
    def build(
        cls,
        count: int,
        inits: Sequence[ir.Value],
        limits: Sequence[ir.Value] = (),
        loc: ir.Location | None = None,
    ) -> "StepsOp":
        """Create the operation with an empty body; the caller fills it and ends it with `YieldOp`."""
        types = [value.type for value in inits]
        op: StepsOp = cls.create([*inits, *limits], types, {"count": count}, loc)
        op.operation.regions[0].blocks.append(ir.IndexType.get(), *types)
        return op

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The body takes the step's number and the values, and yields the values."""
        if self.count < 0:
            yield f"attribute 'count': expected a number from 0, got {self.count}"
            return
        for each in self.limits:
            type_ = ir.RankedTensorType(each.type)
            if type_.rank or not isinstance(type_.element_type, ir.IntegerType) or type_.element_type.width == 1:
                wanted = f"of which {len(self.inits)} are results, and then integers without dimensions"
                yield f"expected what is carried, {wanted}, got {type_}"
                return
        yield from carried_problems(self.operation, self.inits, 1)


@ir.register_operation(XgpuDialect)
@declare
class TileOp(DeclaredOp):
    """A tile of an array: the element at the tile's indices, the range variables of the map, is the array's there.

    Where a constraint of the map does not hold, the element is zero. Arrays have signless integers, and tiles those of
    the program.

    ```mlir
    %x = "xgpu.tile"(%array, %i, %step) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 128 + s0, d1 * 64 + s1),
        d0 in [0, 3], d1 in [0, 7], s0 in [0, 127], s1 in [0, 63], d0 * 128 + s0 in [0, 499]>}
        : (tensor<500x512xbf16>, index, index) -> tensor<128x64xbf16>
    ```
    """

    OPERATION_NAME = "xgpu.tile"
    TRAITS = Traits(reads=0)
    OPERANDS = (Values("array", TENSOR, "What to read."), _AT)
    RESULTS = (Values("tile", TENSOR, "Its shape is that of the map's range variables."),)
    ATTRIBUTES = (Attribute("map", MAP, "From block and step, and the indices in the tile, to those in the array."),)
    map: IndexingMap
    array: ir.Value
    at: list[ir.Value]
    tile: ir.Value

    @classmethod
    def build(
        cls,
        array: ir.Value,
        at: Sequence[ir.Value],
        map_: IndexingMap,
        element: ir.Type,
        loc: ir.Location | None = None,
    ) -> ir.Value:
        """Create the operation and return the tile, whose elements' type is given."""
        type_ = ir.RankedTensorType.get(_shape(map_), element)
        return cls.create([array, *at], [type_], {"map": map_}, loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The map fits the array, the tile and the numbers."""
        yield from _map_problems(self.map, self.array, self.tile, self.at)


@ir.register_operation(XgpuDialect)
@declare
class GatherTileOp(DeclaredOp):
    """A tile of an array at indices that are numbers of other tiles, as a cache in pages has its keys.

    The dimensions of the map are the numbers of block and step, then one for each of ``numbers``, tiles of the same
    shape: those that an element has there, clamped to the dimension. Where a constraint of the map does not hold, the
    element is zero, whatever its numbers are.

    ```mlir
    %page = "xgpu.tile"(%table, %i, %step) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0, d1 * 2 + s0 floordiv 64),
        d0 in [0, 7], d1 in [0, 31], s0 in [0, 127], s1 in [0, 63]>} : (tensor<8x64xi32>, ...) -> tensor<128x64xi32>
    %k = "xgpu.gather_tile"(%pages, %page, %i, %step) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2, s0 mod 64, s1),
        d0 in [0, 7], d1 in [0, 31], d2 in [0, 4095], s0 in [0, 127], s1 in [0, 63]>}
        : (tensor<4096x64x64xbf16>, tensor<128x64xi32>, index, index) -> tensor<128x64xbf16>
    ```
    """

    OPERATION_NAME = "xgpu.gather_tile"
    TRAITS = Traits(reads=0)
    OPERANDS = (
        Values("array", TENSOR, "What to read."),
        Values("numbers", TENSOR, "Tiles of integers.", count=lambda op: _count_of_numbers(op)),
        _AT,
    )
    RESULTS = (Values("tile", TENSOR, "Its shape is that of the map's range variables."),)
    ATTRIBUTES = (
        Attribute("map", MAP, "From block, step and numbers, and the indices in the tile, to those in the array."),
    )
    map: IndexingMap
    array: ir.Value
    numbers: list[ir.Value]
    at: list[ir.Value]
    tile: ir.Value

    @classmethod
    def build(
        cls,
        array: ir.Value,
        numbers: Sequence[ir.Value],
        at: Sequence[ir.Value],
        map_: IndexingMap,
        element: ir.Type,
    ) -> ir.Value:
        """Create the operation and return the tile, whose elements' type is given."""
        type_ = ir.RankedTensorType.get(_shape(map_), element)
        return cls.create([array, *numbers, *at], [type_], {"map": map_}).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The map fits the array, the tile and the numbers, which are integers from 0."""
        count, numbers = len(self.at), len(self.numbers)
        if len(self.map.dims) != count + numbers:
            wanted = f"{len(self.map.dims)} numbers, one for each dimension of the map"
            yield f"expected {wanted}, got {count} of block and step and {numbers} tiles"
            return
        yield from _map_problems(self.map, self.array, self.tile, [*self.at, *self.numbers])
        for position, value in enumerate(self.numbers, count):
            type_, clamp = ir.RankedTensorType(value.type), self.map.dims[position]
            if not isinstance(type_.element_type, ir.IntegerType) or type_.element_type.width == 1:
                yield f"expected numbers that are integers, got {type_}"
            elif list(type_.shape) != _shape(self.map):
                yield f"expected numbers for each element of the tile, of shape {_shape(self.map)}, got {type_}"
            elif clamp.lower:
                yield f"expected numbers from 0, got a map with d{position} in {clamp}"


def _count_of_numbers(op: GatherTileOp) -> int:
    """Return how many tiles follow the array among the operands."""
    return sum(isinstance(each.type, ir.RankedTensorType) for each in list(op.operation.operands)[1:])


@ir.register_operation(XgpuDialect)
@declare
class IndexTileOp(DeclaredOp):
    """A tile of numbers: the element at the tile's indices, the range variables of the map, is where that leads to.

    ```mlir
    %column = "xgpu.index_tile"(%i, %step) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d1 * 64 + s1),
        d0 in [0, 3], d1 in [0, 7], s0 in [0, 127], s1 in [0, 63]>} : (index, index) -> tensor<128x64xi32>
    ```
    """

    OPERATION_NAME = "xgpu.index_tile"
    OPERANDS = (_AT,)
    RESULTS = (Values("tile", TENSOR, "Its shape is that of the map's range variables."),)
    ATTRIBUTES = (Attribute("map", MAP, "From block and step, and the indices in the tile, to the number."),)
    map: IndexingMap
    at: list[ir.Value]
    tile: ir.Value

    @classmethod
    def build(
        cls, at: Sequence[ir.Value], map_: IndexingMap, element: ir.Type, loc: ir.Location | None = None
    ) -> ir.Value:
        """Create the operation and return the tile, whose elements' type is given."""
        type_ = ir.RankedTensorType.get(_shape(map_), element)
        return cls.create(at, [type_], {"map": map_}, loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The map leads to one number, and fits the tile and the numbers."""
        tile = ir.RankedTensorType(self.tile.type)
        if len(self.map.dims) != len(self.at):
            yield f"expected {len(self.map.dims)} numbers of block and step, one for each dimension of the map"
        elif len(self.map.results) != 1 or self.map.constraints:
            yield f"expected a map to one number, without constraints, got {self.map}"
        elif list(tile.shape) != _shape(self.map) or any(each.lower for each in self.map.symbols):
            yield f"expected a tile of shape {_shape(self.map)}, that of the range variables from 0, got {tile}"
        elif not isinstance(tile.element_type, ir.IntegerType | ir.FloatType):
            yield f"expected a tile of integers or floats, got {tile}"


@ir.register_operation(XgpuDialect)
@declare
class InsertTileOp(DeclaredOp):
    """Writes a tile into an array, but for the elements where a constraint of the map does not hold.

    ```mlir
    %updated = "xgpu.insert_tile"(%tile, %array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 128 + s0),
        d0 in [0, 3], s0 in [0, 127], d0 * 128 + s0 in [0, 499]>} : (tensor<128xf32>, tensor<500xf32>, index)
        -> tensor<500xf32>
    ```
    """

    OPERATION_NAME = "xgpu.insert_tile"
    TRAITS = Traits(updates=1)
    OPERANDS = (Values("tile", TENSOR, "What to write."), Values("array", TENSOR, "Where to write it."), _AT)
    RESULTS = (Values("updated", TENSOR, "The array afterwards."),)
    ATTRIBUTES = (Attribute("map", MAP, "From block and step, and the indices in the tile, to those in the array."),)
    map: IndexingMap
    array: ir.Value
    at: list[ir.Value]
    tile: ir.Value

    @classmethod
    def build(
        cls,
        tile: ir.Value,
        array: ir.Value,
        at: Sequence[ir.Value],
        map_: IndexingMap,
        loc: ir.Location | None = None,
    ) -> ir.Value:
        """Create the operation and return the updated array."""
        return cls.create([tile, array, *at], [array.type], {"map": map_}, loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The map fits the array, the tile and the numbers; the result is of the array's type."""
        yield from _map_problems(self.map, self.array, self.tile, self.at)
        result = self.operation.results[0]
        if result.type != self.array.type:
            yield f"expected a result of the array's type {self.array.type}, got {result.type}"


@ir.register_operation(XgpuDialect)
@declare
class GroupRowsOp(DeclaredOp):
    """The rows of an array that a tile has, where rows are in groups and no tile has rows of two.

    Of ``total`` rows, groups have as many as ``sizes`` says, one after the other, as far as there are so many; less
    than none is none. What is left is a group, too, after the last. Each group is divided into tiles of ``rows`` rows,
    the last of which may have less, and these are counted through: of tile ``number`` returns where its rows are read,
    their group, the first of them, and how many there are. What is left is read where the array has no more rows: at
    ``total``. After the last tile there are none of these: ``count`` is zero.

    ```mlir
    %source, %group, %first, %count = "xgpu.group_rows"(%sizes, %i) {rows = 128 : i64, total = 4096 : i64}
        : (tensor<8xi32>, index) -> (index, index, index, index)
    ```
    """

    OPERATION_NAME = "xgpu.group_rows"
    TRAITS = Traits(reads=0)
    OPERANDS = (
        Values("sizes", TENSOR, "How many rows each group has: a tile of one dimension."),
        Values("number", INDEX, "The number of the tile, of all of them."),
    )
    RESULTS = (
        Values("source", INDEX, "The row where those of the tile are read."),
        Values("group", INDEX, "The number of their group."),
        Values("first", INDEX, "The first row."),
        Values("count", INDEX, "How many there are."),
    )
    ATTRIBUTES = (
        Attribute("rows", INTEGER, "The rows of a tile."),
        Attribute("total", INTEGER, "The rows of the array."),
    )
    rows: int
    total: int
    sizes: ir.Value
    number: ir.Value

    @classmethod
    def build(
        cls, sizes: ir.Value, number: ir.Value, rows: int, total: int, loc: ir.Location | None = None
    ) -> list[ir.Value]:
        """Create the operation and return its results."""
        described = {"rows": rows, "total": total}
        return list(cls.create([sizes, number], [ir.IndexType.get()] * 4, described, loc).operation.results)

    @property
    def groups(self) -> int:
        """The number of groups, without what is left."""
        return ir.RankedTensorType(self.sizes.type).shape[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """There are groups, of rows that i32 counts, and tiles have rows."""
        type_ = ir.RankedTensorType(self.sizes.type)
        if type_.rank != 1 or not type_.shape[0] or str(type_.element_type) not in ("i32", "i64"):
            yield f"expected sizes of groups, numbers of type i32 or i64, got {type_}"
        if not (1 <= self.rows < _MOST_ROWS and 1 <= self.total < _MOST_ROWS):
            yield f"expected rows, of a tile and in all, from 1 to {_MOST_ROWS - 1}, got {self.rows} and {self.total}"


_MOST_ROWS = 1 << 30
"""Rows up to which i32 counts those of tiles, too, that end with less."""
type ReadTile = TileOp | GatherTileOp
"""A tile of an array, at indices that are known or read from others."""
TILE_OPS: tuple[type[DeclaredOp], ...] = (
    BlocksOp,
    StepsOp,
    TileOp,
    GatherTileOp,
    IndexTileOp,
    InsertTileOp,
    GroupRowsOp,
)
"""The operations of this file."""


def _shape(map_: IndexingMap) -> list[int]:
    return [each.size for each in map_.symbols]


def _signless(element: ir.Type) -> ir.Type:
    if not isinstance(element, ir.IntegerType):
        return element
    return ir.IntegerType.get_signless(element.width, context=element.context)


def _map_problems(map_: IndexingMap, array: ir.Value, tile: ir.Value, at: Sequence[ir.Value]) -> Iterator[str]:
    whole, part = ir.RankedTensorType(array.type), ir.RankedTensorType(tile.type)
    if len(map_.dims) != len(at):
        yield f"expected {len(map_.dims)} numbers of block and step, one for each dimension of the map, got {len(at)}"
    elif len(map_.results) != whole.rank:
        yield f"expected a map to {whole.rank} indices for {whole}, got {len(map_.results)}"
    elif list(part.shape) != _shape(map_) or any(each.lower for each in map_.symbols):
        yield f"expected a tile of shape {_shape(map_)}, that of the range variables from 0, got {part}"
    elif _signless(part.element_type) != _signless(whole.element_type):
        yield f"expected a tile of the array's elements {whole.element_type}, got {part}"
    elif any(
        bound.lower < 0 or bound.upper >= size for bound, size in zip(map_.result_ranges(), whole.shape, strict=True)
    ):
        yield f"expected indices within {whole} where the map's constraints hold, got {map_}"
