"""Operations that update an array in its own memory: scatter, and dynamic_update_slice if the whole array is stored.

The memory is that of a program's argument or of a value that an earlier kernel stored. The kernel reads that value
nowhere else, since what it reads might be updated already.
"""

import math

from xgpu import ir
from xgpu.analysis.combiners import combiners, has_own_types, promises
from xgpu.analysis.heroes import HeroKind, is_packed
from xgpu.dialects.attributes import ORDERED
from xgpu.dtypes import dtype_of_element
from xgpu.indexing.access import shape_of
from xgpu.indexing.scatter_maps import scatter_maps

SCATTER = "stablehlo.scatter"
UPDATE_SLICE = "stablehlo.dynamic_update_slice"
IN_PLACE = ("scatter", "scatter_sorted", "scatter_ordered", "update_slice")
"""Emitters of kernels that update arrays in their own memory, and the kinds of their groups."""
_LEAST_IN_RUNS = 2**19
"""Elements of updates from which on there are enough threads if each takes several."""
LEAST_SHARE = 2
"""How many times smaller than its array an updated slice must be for an update in place to pay."""


def in_place_kind(op: ir.Operation) -> HeroKind | None:
    """Return the kind of hero that ``op`` is if it can update its array in place, else None.

    One kernel computes several scatters of equal indices, or updates of slices of one shape.
    """
    if op.name == SCATTER:
        count = len(op.results)
        if not all(math.prod(shape_of(op.operands[i])) for i in (0, count + 1)) or not has_own_types(op):
            return None
        shapes = tuple(shape_of(op.operands[i]) for i in (0, count, count + 1))
        numbers = op.attributes["scatter_dimension_numbers"]
        return HeroKind(scatter_order(op), (op.operands[count], numbers, shapes, is_unique(op)))
    if op.name == UPDATE_SLICE:
        whole, part = shape_of(op.operands[0]), shape_of(op.operands[1])
        if 0 < math.prod(part) * LEAST_SHARE <= math.prod(whole):
            return HeroKind("update_slice", part)
    return None


def updated_operands(op: ir.Operation) -> list[ir.Value]:
    """Return, for each result of an update in place, the operand whose memory it takes over."""
    return list(op.operands)[: len(op.results)]


def updates_of(op: ir.Operation) -> list[ir.Value]:
    """Return, for each result of an update in place, the operand that holds the updates."""
    return [op.operands[1]] if op.name == UPDATE_SLICE else list(op.operands)[len(op.results) + 1 :]


def scatter_order(op: ir.Operation) -> str:
    """Return the emitter for the order in which a scatter must apply its updates.

    ``scatter``: in any order, each with an atomic operation where two may have the same place.

    ``scatter_ordered``: one after the other where the place may be the same. Atomic operations are not enough if a
    result depends on several operands, or two operands must agree on the last update.

    ``scatter_sorted``: as ``scatter``, but neighbouring updates of one place are combined first.
    """
    if is_unique(op):
        return "scatter"
    found = combiners(op)
    overwritten = sum(each.function == "overwrite" for each in found)
    if ORDERED in op.attributes or not all(each.alone for each in found) or overwritten > 1:
        return "scatter_ordered"
    return "scatter_sorted" if _has_runs(op) else "scatter"


def _has_runs(op: ir.Operation) -> bool:
    """Whether neighbouring updates often have the same place, and are worth combining first."""
    is_long = math.prod(scatter_maps(op).update_shape) >= _LEAST_IN_RUNS
    return promises(op, "indices_are_sorted") and is_long and can_be_in_runs(op)


def can_be_in_runs(op: ir.Operation) -> bool:
    """Whether updates of the same place can be combined first: those of the minor dimensions."""
    maps, (found, *others) = scatter_maps(op), combiners(op)
    rank = len(maps.update_shape)
    return (
        not others
        and found.function not in ("overwrite", "other")
        and maps.window_dims == tuple(range(rank))[rank - len(maps.window_dims) :]
        and not is_packed(op.results[0])
    )


def is_unique(op: ir.Operation) -> bool:
    """Whether no two updates of a scatter have the same place, and none shares a byte with another."""
    types = [ir.RankedTensorType(value.type) for value in op.results]
    return has_separate_places(op) and not any(dtype_of_element(type_.element_type).is_packed for type_ in types)


def has_separate_places(op: ir.Operation) -> bool:
    """Whether no two updates of a scatter have the same place."""
    return promises(op, "unique_indices") or scatter_maps(op).windows == 1
