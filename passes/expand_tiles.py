"""The pass expand-tiles."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from xgpu import ir
from xgpu.block_plan.kernel import instruction_of
from xgpu.dialects import attributes
from xgpu.dialects.attributes import BY_THREADS
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
from xgpu.hlo.stablehlo_builder import broadcast, convert, scalar_at, splat, tensor
from xgpu.hlo.tensor_cores import as_tf32, product_problem
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import AffineExpr, delinearize, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.framework.base import MAIN, Pass, functions
from xgpu.passes.support.refusals import refuse
from xgpu.records import dataclass
from xgpu.structure import dtype_of, element_of, replace_op


@dataclass(frozen=True)
class ExpandTiles(Pass):
    """Converts a kernel of level ``tiles`` to StableHLO that computes the same, for XLA to run as the reference.

    Blocks run one after the other, and so do their steps. A tile is gathered, and scattered where it is written.
    Operands of a product of f32 are rounded to tf32, unless it asks for more. The outputs, which begin as zeros, are
    results only. The result is never lowered to a GPU.

    ```mlir
    %r = "xgpu.blocks"(%out) ({
    ^bb0(%i: index, %array: tensor<500xf32>):
      %t = "xgpu.tile"(%x, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 128 + s0), ...>} : ... -> tensor<128xf32>
      ...
    }) {grid = array<i64: 4>} : (tensor<500xf32>) -> tensor<500xf32>
    // becomes
    %r:2 = stablehlo.while(%n = %zero, %array = %zeros) : tensor<i64>, tensor<500xf32>
      cond { %c = stablehlo.compare LT, %n, %four ... }
      do { %t = "stablehlo.gather"(%x, %indices) ... }
    ```
    """

    NAME: ClassVar[str] = "expand-tiles"

    def apply(self, module: ir.Module) -> None:
        """Expand the one kernel of the module."""
        kernels = functions(module)
        if len(kernels) != 1 or attributes.INPUTS not in kernels[0].operation.attributes:
            refuse(self.NAME, module.operation, f"expected one function, with {attributes.INPUTS}, got {len(kernels)}")
        (function,) = kernels
        _Expansion().block(function.operation.regions[0].blocks[0])
        _make_program(function.operation)
        if attributes.LEVEL in module.operation.attributes:
            del module.operation.attributes[attributes.LEVEL]


def _make_program(function: ir.Operation) -> None:
    """Take the outputs from the parameters of a kernel, and all that says that it is one."""
    entry = function.regions[0].blocks[0]
    inputs = attributes.int_of(function.attributes[attributes.INPUTS])
    with ir.InsertionPoint.at_block_begin(entry), function.location:
        for argument in list(entry.arguments)[inputs:]:
            argument.replace_all_uses_with(splat(0, argument.type))
    for number in reversed(range(inputs, len(entry.arguments))):
        entry.erase_argument(number)
    results = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
    type_ = ir.FunctionType.get([each.type for each in entry.arguments], results)
    for name in [name for name in function.attributes if name.startswith("xgpu.")]:
        del function.attributes[name]
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    function.attributes["sym_name"] = ir.StringAttr.get(MAIN)


class _Expansion:
    """Expands operations; ``_numbers`` has the value for each number of a block or step, which was an index."""

    def __init__(self) -> None:
        self._numbers: dict[ir.Value, ir.Value] = {}

    def block(self, block: ir.Block) -> None:
        """Expand the operations of a block, and those inside."""
        grouped = list[ir.Operation]()
        for each in list(block.operations):
            op, view = each.operation, each.operation.opview
            with ir.InsertionPoint(op), op.location:
                if isinstance(view, BlocksOp):
                    self._loop(op, list(op.operands), view.body, view.grid)
                elif isinstance(view, StepsOp):
                    self._loop(op, view.inits, view.body, (view.count,))
                elif isinstance(view, TileOp | GatherTileOp):
                    replace_op(op, [self._read(view)])
                elif isinstance(view, IndexTileOp):
                    (numbers,), _ = self._parts(view)
                    replace_op(op, [ir.stablehlo.convert(view.tile.type, numbers)])
                elif isinstance(view, GroupRowsOp):
                    self._numbers |= dict(zip(op.results, _group_rows(view, self._numbers[view.number]), strict=True))
                    grouped.append(op)
                elif isinstance(view, InsertTileOp):
                    replace_op(op, [self._write(view)])
                elif op.name == "stablehlo.dot_general" and _is_cut_off(op):
                    for number, operand in enumerate(list(op.operands)):
                        op.operands[number] = as_tf32(operand)
        for op in grouped:
            op.erase()

    def _loop(self, op: ir.Operation, inits: Sequence[ir.Value], body: ir.Block, sizes: Sequence[int]) -> None:
        """Replace an operation by a loop over all its numbers."""
        number = _constant(0)
        types = [number.type, *(each.type for each in op.results)]
        loop = ir.Operation.create("stablehlo.while", types, [number, *inits], regions=2)
        condition, inside = (region.blocks.append(*types) for region in loop.regions)
        with ir.InsertionPoint(condition):
            ir.stablehlo.return_([_compare("LT", condition.arguments[0], _constant(math.prod(sizes)))])
        counter, *carried = inside.arguments
        with ir.InsertionPoint(inside):
            for value, part in zip(body.arguments, delinearize(dim(0), tuple(sizes)), strict=False):
                self._numbers[value] = _evaluate(part, [counter], [])
            following = ir.stablehlo.add(counter, _constant(1))
        for old, new in zip(list(body.arguments)[len(sizes) :], carried, strict=True):
            old.replace_all_uses_with(new)
        *operations, end = [each.operation for each in body.operations]
        for each in operations:
            inside.append(each)
        with ir.InsertionPoint(inside):
            ir.stablehlo.return_([following, *end.operands])
        end.erase()
        self.block(inside)
        replace_op(op, list(loop.results)[1:])

    def _read(self, tile: ReadTile) -> ir.Value:
        """Return the tile, with zeros where a constraint does not hold."""
        found = self._gather(tile)
        return found if found.type == tile.tile.type else ir.stablehlo.bitcast_convert(tile.tile.type, found)

    def _gather(self, tile: ReadTile) -> ir.Value:
        shape = shape_of(tile.tile)
        parts, holds = self._parts(tile)
        found = _gathered(tile.array, parts, shape)
        return found if holds is None else ir.stablehlo.select(holds, found, splat(0, found.type))

    def _write(self, insert: InsertTileOp) -> ir.Value:
        """Return the array with the tile; where a constraint does not hold, indices are outside."""
        indices, holds = self._indices(insert)
        if indices is None:
            return self._write_number(insert, holds)
        if holds is not None:
            everywhere = list(range(len(insert.map.symbols)))
            outside = splat(-1, indices.type)
            holds = broadcast(holds, shape_of(indices), everywhere)
            indices = ir.stablehlo.select(holds, indices, outside)
        rank = list(range(len(shape_of(insert.array))))
        numbers = f"inserted_window_dims = {rank}, scatter_dims_to_operand_dims = {rank}"
        numbers += f", index_vector_dim = {len(insert.map.symbols)}"
        described = {"scatter_dimension_numbers": ir.Attribute.parse(f"#stablehlo.scatter<{numbers}>")}
        given = tensor(shape_of(insert.tile), element_of(insert.array))
        tile = insert.tile if insert.tile.type == given else ir.stablehlo.bitcast_convert(given, insert.tile)
        operands = [insert.array, indices, tile]
        op = ir.Operation.create("stablehlo.scatter", [insert.array.type], operands, described, regions=1)
        scalar = ir.RankedTensorType.get([], ir.RankedTensorType(insert.array.type).element_type)
        update = op.regions[0].blocks.append(scalar, scalar)
        with ir.InsertionPoint(update):
            ir.stablehlo.return_([update.arguments[1]])
        return op.results[0]

    @staticmethod
    def _write_number(insert: InsertTileOp, holds: ir.Value | None) -> ir.Value:
        """Return an array without dimensions with the one element of a tile."""
        if math.prod(shape_of(insert.tile)) != 1:
            refuse(ExpandTiles.NAME, insert.operation, f"expected a tile of one element, got {insert.tile.type}")
        number = ir.stablehlo.reshape(tensor([], element_of(insert.tile)), insert.tile)
        if number.type != insert.array.type:
            number = ir.stablehlo.bitcast_convert(insert.array.type, number)
        if holds is None:
            return number
        return ir.stablehlo.select(ir.stablehlo.reshape(tensor([], element_of(holds)), holds), number, insert.array)

    def _indices(self, op: InsertTileOp) -> tuple[ir.Value | None, ir.Value | None]:
        """Return the indices of each element of a tile, along one more dimension, and where constraints hold.

        An array without dimensions has no indices.
        """
        parts, holds = self._parts(op)
        return _joined(parts, [each.size for each in op.map.symbols]), holds

    def _parts(self, op: ReadTile | IndexTileOp | InsertTileOp) -> tuple[list[ir.Value], ir.Value | None]:
        """Return where the map of each element of a tile leads to, one array for each index, and where it holds."""
        map_: IndexingMap = op.map
        if unknown := [value for value in op.at if value not in self._numbers]:
            refuse(ExpandTiles.NAME, op.operation, f"expected numbers of block and step, got {unknown[0]}")
        shape = [each.size for each in map_.symbols]
        type_ = ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(64))
        dims = [broadcast(self._numbers[value], shape, []) for value in op.at]
        symbols = [ir.stablehlo.iota(type_, number) for number in range(len(shape))]
        holds = None
        if isinstance(op, GatherTileOp):
            clamps = map_.dims[len(op.at) :]
            dims += [_clamped(value, clamp) for value, clamp in zip(op.numbers, clamps, strict=True)]
        parts = [_evaluate(each, dims, symbols, shape) for each in map_.results]
        for expression, bound in map_.constraints:
            value = _evaluate(expression, dims, symbols, shape)
            for direction, limit in (("GE", bound.lower), ("LE", bound.upper)):
                each = _compare(direction, value, _constant(limit, shape))
                holds = each if holds is None else ir.stablehlo.and_(holds, each)
        return parts, holds


def _clamped(value: ir.Value, clamp: Interval) -> ir.Value:
    """Return numbers within an interval, of i64: those without signs are large at most."""
    unsigned = ir.IntegerType(element_of(value)).is_unsigned
    if unsigned and dtype_of(value).bits == 64:
        value = ir.stablehlo.minimum(value, splat(clamp.upper, value.type))
    return ir.stablehlo.clamp(_constant(clamp.lower), convert(value, "i64"), _constant(clamp.upper))


def _gathered(array: ir.Value, places: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """Return the elements of an array at some indices, of which there is an array of a shape for each dimension."""
    type_, rank = tensor(shape, element_of(array)), list(range(len(places)))
    indices = _joined(places, shape)
    if indices is None:
        return broadcast(array, shape, [])
    numbers = f"collapsed_slice_dims = {rank}, start_index_map = {rank}, index_vector_dim = {len(shape)}"
    described = {
        "dimension_numbers": ir.Attribute.parse(f"#stablehlo.gather<{numbers}>"),
        "slice_sizes": ir.DenseI64ArrayAttr.get([1] * len(places)),
    }
    return ir.Operation.create("stablehlo.gather", [type_], [array, indices], described).results[0]


def _joined(places: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value | None:
    """Return the indices of elements along one more dimension; None if there are none."""
    wide = [broadcast(each, [*shape, 1], list(range(len(shape)))) for each in places]
    return ir.stablehlo.concatenate(wide, len(shape)) if wide else None


def _group_rows(op: GroupRowsOp, number: ir.Value) -> list[ir.Value]:
    """Return what the rows of a tile are, group after group."""
    sizes = convert(op.sizes, "i64")
    total, zero, row, tiles = _constant(op.total), _constant(0), _constant(0), _constant(0)
    found = [total, _constant(op.groups), total, zero]
    for group in range(op.groups + 1):
        left = ir.stablehlo.subtract(total, row)
        size = left
        if group < op.groups:
            size = ir.stablehlo.minimum(ir.stablehlo.maximum(scalar_at(sizes, group), zero), left)
        after = ir.stablehlo.subtract(number, tiles)
        rows = _constant(op.rows)
        own = ir.stablehlo.divide(ir.stablehlo.add(size, _constant(op.rows - 1)), rows)
        is_inside = ir.stablehlo.and_(_compare("GE", after, zero), _compare("LT", after, own))
        begin = ir.stablehlo.multiply(after, rows)
        first = ir.stablehlo.add(row, begin)
        count = ir.stablehlo.minimum(ir.stablehlo.subtract(size, begin), rows)
        new = [first if group < op.groups else total, _constant(group), first, count]
        found = [ir.stablehlo.select(is_inside, *each) for each in zip(new, found, strict=True)]
        row, tiles = ir.stablehlo.add(row, size), ir.stablehlo.add(tiles, own)
    return found


def _evaluate(
    expression: AffineExpr, dims: Sequence[ir.Value], symbols: Sequence[ir.Value], shape: Sequence[int] = ()
) -> ir.Value:
    """Return an expression of values of one shape."""
    given: list[list[Any]] = [[_Number(value) for value in values] for values in (dims, symbols)]
    each: Any = expression.evaluate(*given)
    return each.value if isinstance(each, _Number) else _constant(each, shape)


@dataclass(frozen=True)
class _Number:
    """A value of i64, to be computed with as with a number."""

    value: ir.Value

    def _with(self, other: int) -> ir.Value:
        return _constant(other, shape_of(self.value))

    def __add__(self, other: "_Number | int") -> "_Number":
        if isinstance(other, int) and not other:
            return self
        return _Number(ir.stablehlo.add(self.value, other.value if isinstance(other, _Number) else self._with(other)))

    __radd__ = __add__

    def __rmul__(self, factor: int) -> "_Number":
        if factor == 1:
            return self
        return _Number(ir.stablehlo.multiply(self.value, self._with(factor)))

    def __mod__(self, divisor: int) -> "_Number":
        rest = ir.stablehlo.remainder(self.value, self._with(divisor))
        is_below = _compare("LT", rest, self._with(0))
        return _Number(ir.stablehlo.select(is_below, ir.stablehlo.add(rest, self._with(divisor)), rest))

    def __floordiv__(self, divisor: int) -> "_Number":
        whole = ir.stablehlo.subtract(self.value, (self % divisor).value)
        return _Number(ir.stablehlo.divide(whole, self._with(divisor)))


def _is_cut_off(product: ir.Operation) -> bool:
    """Whether tensor cores multiply the operands of a product as numbers of tf32."""
    by_threads = instruction_of(product) == BY_THREADS
    return dtype_of(product.operands[0]).hlo == "f32" and product_problem(product) is None and not by_threads


def _constant(value: int, shape: Sequence[int] = ()) -> ir.Value:
    return splat(value, tensor(shape, "i64"))


def _compare(direction: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return ir.stablehlo.compare(left, right, ir.stablehlo.ComparisonDirectionAttr.get(direction))
