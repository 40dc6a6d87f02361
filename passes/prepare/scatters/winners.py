"""Rewrites scatters that overwrite so that the last update of each place wins, whichever thread is first.

Where the windows' places are either the same or apart, a first scatter finds the last window of each place by its
number, and the others are then moved out of the operand, which drops them. So no two updates have the same place any
more. What is found is a number for each place that a window can have, not for each element.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, broadcast, convert, hlo, linear_index, shape_of, splat, splat_like, tensor
from xgpu.indexing.scatter_maps import scatter_maps
from xgpu.passes.prepare.scatters.builder import Places
from xgpu.structure import element_of

_NOWHERE = -1
"""An index outside every array."""


def keep_last_updates(op: ir.Operation) -> bool:
    """Drop all updates of a scatter but the last of each place, and mark it unique. Returns whether that was possible.

    It is not where windows can overlap in part, nor where no index says where they go.
    """
    maps, places = scatter_maps(op), Places.of(op)
    is_apart = all(i in maps.separate_dims or maps.update_shape[i] == 1 for i in maps.window_dims)
    if not maps.bounds or not is_apart:
        return False
    with ir.InsertionPoint(op), op.location:
        index = "i32" if maps.windows < 2**31 else "i64"
        indices = _signed(places.indices)
        single = Places(indices, _of_single_elements(places), (1,) * len(maps.operand_shape), places.is_sorted, False)
        own = linear_index([size for i, size in enumerate(maps.update_shape) if i not in maps.window_dims], index)
        nothing = splat(_NOWHERE, tensor(_starts(places, maps.operand_shape), index))
        last = single.combine(nothing, own, hlo.maximum)
        wins = hlo.compare(single.gather(last), own, hlo.ComparisonDirectionAttr.get("EQ"))
        axes = [i for i in range(len(shape_of(indices))) if i != places.numbers.index_vector_dim]
        wins = broadcast(wins, shape_of(indices), axes)
        op.operands[len(op.results)] = hlo.select(wins, indices, splat_like(_NOWHERE, indices))
        op.attributes["unique_indices"] = ir.BoolAttr.get(True)
        # Those that are moved out of the operand are in no order.
        op.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
    return True


def _of_single_elements(places: Places) -> ir.stablehlo.ScatterDimensionNumbers:
    """Return how indices are used for windows of one element each, without dimensions."""
    numbers = places.numbers
    batched = numbers.input_batching_dims
    return hlo.ScatterDimensionNumbers.get(
        update_window_dims=[],
        inserted_window_dims=[i for i in range(len(places.window)) if i not in batched],
        input_batching_dims=batched,
        scatter_indices_batching_dims=numbers.scatter_indices_batching_dims,
        scattered_dims_to_operand_dims=numbers.scattered_dims_to_operand_dims,
        index_vector_dim=numbers.index_vector_dim,
    )


def _starts(places: Places, shape: Sequence[int]) -> list[int]:
    """Return how many places a window can begin at along each dimension of an operand."""
    numbers = places.numbers
    return [
        size - window + 1
        if i in numbers.scattered_dims_to_operand_dims
        else size
        if i in numbers.input_batching_dims
        else 1
        for i, (size, window) in enumerate(zip(shape, places.window, strict=True))
    ]


def _signed(indices: Value) -> Value:
    """Return indices in a type that has an index outside every array; one too large becomes another such."""
    element = element_of(indices)
    bits = ir.IntegerType(element).width
    is_unsigned = ir.IntegerType(element).is_unsigned
    return convert(indices, "i64" if bits == 64 or (bits == 32 and is_unsigned) else "i32")
