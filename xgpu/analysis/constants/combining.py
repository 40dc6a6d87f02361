"""Reductions, scans and scatters of integers and truth values, which are exact in any order, on NumPy arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.analysis.combiners import combiners, has_own_types
from xgpu.analysis.constants.arrays import Array, dtype_of_array
from xgpu.hlo.scan_op import SCAN
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.indexing.scatter_maps import scatter_maps

_FUNCTIONS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_OF_BOOLEANS: Mapping[str, np.ufunc] = {
    "add": np.logical_or,
    "multiply": np.logical_and,
    "maximum": np.logical_or,
    "minimum": np.logical_and,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_REDUCE, _SCATTER = "stablehlo.reduce", "stablehlo.scatter"
NAMES = (_REDUCE, _SCATTER, SCAN)
"""The operations of this file."""


def is_exact(op: ir.Operation) -> bool:
    """Whether `combined` knows an operation of `NAMES`, on arrays of readable types."""
    (combiner, *others) = combiners(op)
    dtype = dtype_of_array(op.results[0].type)
    if others or not combiner.alone or not shape_of(op.operands[0]):
        return False
    if op.name == _SCATTER and not has_own_types(op):
        return False
    if combiner.function == "overwrite":
        return op.name == _SCATTER
    return dtype.kind != "float" and combiner.function in _FUNCTIONS


def combined(op: ir.Operation, operands: list[Array]) -> Array:
    """Return the result of a reduction, scan or scatter that is known."""
    name = combiners(op)[0].function
    if op.name == _SCATTER:
        return _scattered(op, operands, name)
    array = operands[0]
    function = (_OF_BOOLEANS if array.dtype == np.bool_ else _FUNCTIONS)[name]
    if op.name == SCAN:
        along, step = integer(op, "dimension"), -1 if ir.BoolAttr(op.attributes["reverse"]).value else 1
        turned = np.flip(array, along) if step < 0 else array
        found = function.accumulate(turned, axis=along, dtype=array.dtype)
        return np.flip(found, along) if step < 0 else found
    axes = tuple(integers(op, "dimensions"))
    # All of these functions have an identity or arrays that have elements: the initial value is one of them.
    start = operands[1].reshape(())[()]
    return np.asarray(function.reduce(array, axis=axes, dtype=array.dtype, initial=start))


def _scattered(op: ir.Operation, operands: list[Array], name: str) -> Array:
    """Return what a scatter makes; of updates of one place that overwrite the last one counts."""
    array, indices, updates = operands
    maps, shape = scatter_maps(op), shape_of(op.operands[2])
    grid: list[Any] = list(np.ogrid[tuple(slice(size) for size in shape)]) if shape else []
    components: list[Any] = [
        np.broadcast_to(indices[tuple(expr.evaluate(grid) for expr in each.results)], shape).astype(np.int64)
        for each in maps.components
    ]
    inside = np.broadcast_to(np.array(True), shape)
    for component, bound in zip(components, maps.bounds, strict=True):
        inside = inside & (component >= 0) & (component <= bound)
    places = [expr.evaluate([*grid, *components]) for expr in maps.operand.results]
    kept = tuple(np.broadcast_to(np.asarray(place), shape)[inside] for place in places)
    result, values = array.copy(), np.broadcast_to(updates, shape)[inside]
    if name == "overwrite":
        result[kept] = values
    else:
        (_OF_BOOLEANS if array.dtype == np.bool_ else _FUNCTIONS)[name].at(result, kept, values)
    return result
