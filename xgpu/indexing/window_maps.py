"""Indexing maps of operations that combine many elements: reductions, windows, scans, dot products, convolutions."""

from functools import lru_cache
from typing import Any

from xgpu import ir
from xgpu.hlo.chlo import RaggedDimensions
from xgpu.indexing.access import Access, integer, integers, ranges, scalar_map, shape_of, spread_index
from xgpu.indexing.affine import AffineExpr, constant, dim, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.dot_dimensions import OperandDimensions, operand_dimensions
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.window_numbers import window_numbers, window_padding


def reduce(op: ir.Operation) -> tuple[Access, ...]:
    """The inputs, with one symbol for each reduced dimension in ascending order, then the initial values."""
    shape, operand_shape = shape_of(op.results[0]), shape_of(op.operands[0])
    reduced = sorted(integers(op, "dimensions"))
    kept = [i for i in range(len(operand_shape)) if i not in reduced]
    results = tuple(symbol(reduced.index(i)) if i in reduced else dim(kept.index(i)) for i in range(len(operand_shape)))
    symbols = ranges(tuple(operand_shape[i] for i in reduced))
    return _inputs_and_inits(op, IndexingMap(ranges(shape), symbols, results))


def reduce_window(op: ir.Operation) -> tuple[Access, ...]:
    """The inputs, with one symbol for each dimension of the window, then the initial values.

    A window takes in what of it lies on elements: padding, at the edges or between elements, is never read.
    """
    shape, operand_shape = shape_of(op.results[0]), shape_of(op.operands[0])
    rank = len(shape)
    strides, dilations, steps = (
        window_numbers(op, name, rank) for name in ("window_strides", "window_dilations", "base_dilations")
    )
    lows = [low for low, _ in window_padding(op, rank)]
    results: list[AffineExpr] = []
    constraints: list[Constraint] = []
    for i, size in enumerate(operand_shape):
        position = dim(i) * strides[i] + symbol(i) * dilations[i] - lows[i]
        index, on_element = spread_index(position, size, steps[i])
        results.append(index)
        constraints += on_element
    window = ranges(tuple(integers(op, "window_dimensions")))
    return _inputs_and_inits(op, IndexingMap(ranges(shape), window, tuple(results), tuple(constraints)))


def scan(op: ir.Operation) -> tuple[Access, ...]:
    """The arrays, with a symbol for how many elements before the result's own."""
    shape, dimension = shape_of(op.results[0]), integer(op, "dimension")
    size, is_reverse = shape[dimension], bool(ir.BoolAttr(op.attributes["reverse"]).value)
    position = size - 1 - dim(dimension) if is_reverse else dim(dimension)
    results = [dim(i) for i in range(len(shape))]
    results[dimension] = dim(dimension) + symbol(0) if is_reverse else dim(dimension) - symbol(0)
    inside = (position - symbol(0), Interval(0, size - 1))
    map_ = IndexingMap(ranges(shape), ranges((size,)), tuple(results), (inside,))
    return tuple(Access(i, map_) for i in range(len(op.results)))


def _inputs_and_inits(op: ir.Operation, map_: IndexingMap) -> tuple[Access, ...]:
    count = len(op.operands) // 2
    inits = scalar_map(shape_of(op.results[0]))
    return tuple(Access(i, map_ if i < count else inits) for i in range(2 * count))


def dot_general(op: ir.Operation) -> tuple[Access, ...]:
    """Both operands, with one symbol for each pair of contracted dimensions.

    The result's dimensions are the batch ones, then what is left of the left operand, then of the right one.
    """
    return _product(*operand_dimensions(op), shape_of(op.operands[0]), shape_of(op.results[0]))


@lru_cache(maxsize=1024)
def _product(
    left: OperandDimensions, right: OperandDimensions, sizes: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[Access, ...]:
    """Return the accesses of a product of ``shape`` whose left operand has ``sizes``; equal layers have equal ones."""
    rank = len(shape)
    domain = ranges(shape), ranges(tuple(sizes[i] for i in left.contracting))
    batches = len(left.batching)
    labels = left.labels(batches, rank), right.labels(batches + len(left.own), rank)
    indices = ([dim(label) if label < rank else symbol(label - rank) for label in each] for each in labels)
    first, second = (IndexingMap(*domain, tuple(each)) for each in indices)
    return Access(0, first), Access(1, second)


def _wholes(op: ir.Operation) -> tuple[Access, ...]:
    """All elements of all operands."""
    shapes = [shape_of(operand) for operand in op.operands]
    domain = ranges(shape_of(op.results[0])), ranges(tuple(size for shape in shapes for size in shape))
    found, first = [], 0
    for number, shape in enumerate(shapes):
        own = tuple(symbol(first + each) for each in range(len(shape)))
        found.append(Access(number, IndexingMap(*domain, own)))
        first += len(shape)
    return tuple(found)


def ragged_dot(op: ir.Operation) -> tuple[Access, ...]:
    """A row, a column of each group's matrix, of which one counts, and the sizes of all groups.

    Where groups are not ones of rows, which elements are read is not known.
    """
    found = RaggedDimensions.of(op)
    if found is None:
        return _wholes(op)
    sizes = shape_of(op.operands[1])
    domain = ranges(shape_of(op.results[0])), ranges((sizes[found.right_contracted], sizes[found.group]))
    row = {found.rows: dim(0), found.contracted: symbol(0)}
    column = {found.columns: dim(1), found.right_contracted: symbol(0), found.group: symbol(1)}
    read = [tuple(each[number] for number in range(len(each))) for each in (row, column)]
    maps = [IndexingMap(*domain, each) for each in (*read, (symbol(1),))]
    return tuple(Access(number, map_) for number, map_ in enumerate(maps))


def convolution(op: ir.Operation) -> tuple[Access, ...]:
    """The input and the kernel, with a symbol for each spatial dimension of the kernel and one for its input feature.

    Only elements of the input are read, no padding. Output features come in groups, each of which reads a part of the
    input's features, or of its batch.
    """
    numbers = ir.stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    shape, kernel_shape = shape_of(op.results[0]), shape_of(op.operands[1])
    spatial_dims = list(numbers.kernel_spatial_dimensions)
    input_, kernel = ([constant(0)] * len(shape) for _ in range(2))
    constraints: list[Constraint] = []
    for i, (index, on_element) in enumerate(_convolved(op, numbers)):
        input_[numbers.input_spatial_dimensions[i]] = index
        constraints += on_element
    for i, (source, is_reversed) in enumerate(zip(spatial_dims, _window_reversal(op, len(spatial_dims)), strict=True)):
        kernel[source] = kernel_shape[source] - 1 - symbol(i) if is_reversed else symbol(i)
    output_feature, feature = dim(numbers.output_feature_dimension), symbol(len(spatial_dims))
    kernel_features = kernel_shape[numbers.kernel_input_feature_dimension]
    batches, features = shape[numbers.output_batch_dimension], shape[numbers.output_feature_dimension]
    feature_group, batch_group = (
        _group(output_feature, features, integer(op, name)) for name in ("feature_group_count", "batch_group_count")
    )
    input_[numbers.input_feature_dimension] = feature_group * kernel_features + feature
    input_[numbers.input_batch_dimension] = batch_group * batches + dim(numbers.output_batch_dimension)
    kernel[numbers.kernel_input_feature_dimension] = feature
    kernel[numbers.kernel_output_feature_dimension] = output_feature
    symbols = ranges((*(kernel_shape[i] for i in spatial_dims), kernel_features))
    return tuple(
        Access(operand, IndexingMap(ranges(shape), symbols, tuple(results), tuple(constraints)))
        for operand, results in enumerate((input_, kernel))
    )


def _convolved(op: ir.Operation, numbers: Any) -> list[tuple[AffineExpr, tuple[Constraint, ...]]]:
    """Return for each spatial dimension the index in the input, and what holds where it is one."""
    count = len(numbers.input_spatial_dimensions)
    strides, steps, dilations = (
        window_numbers(op, name, count) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    lows = [low for low, _ in window_padding(op, count)]
    input_shape = shape_of(op.operands[0])
    found = []
    for i, (source, target) in enumerate(
        zip(numbers.input_spatial_dimensions, numbers.output_spatial_dimensions, strict=True)
    ):
        position = dim(target) * strides[i] + symbol(i) * dilations[i] - lows[i]
        found.append(spread_index(position, input_shape[source], steps[i]))
    return found


def _window_reversal(op: ir.Operation, count: int) -> list[bool]:
    if "window_reversal" not in op.attributes:
        return [False] * count
    return list(ir.DenseBoolArrayAttr(op.attributes["window_reversal"]))


def _group(output_feature: AffineExpr, features: int, groups: int) -> AffineExpr:
    """Return which of ``groups`` groups of as many output features each an output feature is in."""
    return constant(0) if groups == 1 or features == 0 else output_feature // (features // groups)
