"""Indexing maps of a scatter: from an element of the updates to its index vector and to the operand."""

import math

from xgpu import ir
from xgpu.indexing.access import Shape, dims, plain_map, ranges, shape_of
from xgpu.indexing.affine import constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass


@dataclass(frozen=True)
class ScatterMaps:
    """The maps of a scatter with operands of ``operand_shape`` and updates of ``update_shape``.

    ``components`` lead from an element of the updates to the components of its index vector, in the indices. ``bounds``
    are the largest components for which the window of the update lies inside the operand: XLA drops a window that does
    not as a whole. ``operand`` leads from an element of the updates, then the components, to the operand's element.
    ``window_dims`` are the dimensions of the updates that run over a window, in the order of the operand's.
    ``separate_dims`` are those along which no two updates have the same place, whatever the indices: batches, and
    dimensions of the window along which it begins at 0.
    """

    operand_shape: Shape
    update_shape: Shape
    window_dims: tuple[int, ...]
    separate_dims: tuple[int, ...]
    components: tuple[IndexingMap, ...]
    bounds: tuple[int, ...]
    operand: IndexingMap

    @property
    def windows(self) -> int:
        """The number of windows in the updates, each with an index vector of its own."""
        return math.prod(size for i, size in enumerate(self.update_shape) if i not in self.window_dims)

    @property
    def contiguous(self) -> int:
        """The length of aligned runs of elements that are contiguous in updates and operand alike."""
        elements = 1
        left = [i for i, size in enumerate(self.update_shape) if size != 1]
        for result, size in zip(reversed(self.operand.results), reversed(self.operand_shape), strict=True):
            variables = result.variables()[0]
            if size == 1:
                continue
            if not left or left[-1] not in variables or self.update_shape[left[-1]] != size:
                break
            # A window as long as the dimension has only one place; a dimension in a batch has no start.
            elements *= size
            left.pop()
        return elements


def scatter_maps(op: ir.Operation) -> ScatterMaps:
    """Return the maps of a ``stablehlo.scatter`` of one or several operands, as StableHLO specifies it."""
    count = len(op.results)
    operand_shape = shape_of(op.operands[0])
    indices_shape, update_shape = shape_of(op.operands[count]), shape_of(op.operands[count + 1])
    numbers = ir.stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    vector_dim, window_dims = numbers.index_vector_dim, tuple(sorted(numbers.update_window_dims))
    # Dimensions of the updates that run over no window index, in order, the indices' dimensions but for the vector's.
    batch_dims = [i for i in range(len(update_shape)) if i not in window_dims]
    batch = [dim(i) for i in batch_dims]
    components = []
    for component in range(len(numbers.scattered_dims_to_operand_dims)):
        index = list(batch)
        if vector_dim < len(indices_shape):
            index.insert(vector_dim, constant(component))
        components.append(plain_map(update_shape, index))
    left_out = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    whole_dims = [i for i in range(len(operand_shape)) if i not in left_out]
    sizes = dict(zip(whole_dims, (update_shape[i] for i in window_dims), strict=True))
    targets = numbers.scattered_dims_to_operand_dims
    bounds = tuple(operand_shape[target] - sizes.get(target, 1) for target in targets)
    results = [constant(0)] * len(operand_shape)
    for target, source in zip(whole_dims, window_dims, strict=True):
        results[target] = dim(source)
    for target, source in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        results[target] = batch[source - (vector_dim < source)]
    starts = dims(len(update_shape) + len(targets))[len(update_shape) :]
    for target, start in zip(targets, starts, strict=True):
        results[target] = results[target] + start
    domain = ranges(update_shape) + tuple(Interval(0, bound) for bound in bounds)
    moved = {target for target, bound in zip(targets, bounds, strict=True) if bound}
    separate = [source for target, source in zip(whole_dims, window_dims, strict=True) if target not in moved]
    separate += [batch_dims[source - (vector_dim < source)] for source in numbers.scatter_indices_batching_dims]
    operand = IndexingMap(domain, (), tuple(results))
    return ScatterMaps(
        operand_shape, update_shape, window_dims, tuple(sorted(separate)), tuple(components), bounds, operand
    )
