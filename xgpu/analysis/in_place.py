"""Operations that update an array in its own memory: scatter, and dynamic_update_slice if the whole array is stored.

The memory is that of a program's argument or of a value that an earlier kernel stored. The kernel reads that value
nowhere else, since what it reads might be updated already.
"""

import math
from collections.abc import Hashable, Mapping

from xgpu import ir
from xgpu.analysis.combiners import combiners, has_own_types, promises
from xgpu.analysis.constants.integers import known_integers
from xgpu.analysis.heroes import is_packed
from xgpu.costs.sectors import overfetch
from xgpu.dialects.attributes import ELEMENTWISE, ORDERED
from xgpu.dtypes import dtype_of_element
from xgpu.indexing.access import Shape, integers, shape_of
from xgpu.indexing.scatter_maps import scatter_maps
from xgpu.structure import backward_slice, defining_op, dtype_of, is_argument, owning_op, users_of
from xgpu.target_machine import WARP_SIZE

SCATTER = "stablehlo.scatter"
UPDATE_SLICE = "stablehlo.dynamic_update_slice"
_LEAST_IN_RUNS = 2**19
"""Elements of updates from which on there are enough threads if each takes several."""
_MOST_TILE_BYTES = 16384
"""Bytes of an operand that blocks have in shared memory, in all its places, at most."""
_LEAST_IN_TILES, _LEAST_OF_PLACE = 1 << 15, 256
"""Elements of updates, in all and of each place, from which on blocks combine theirs first."""
_ACCESS_BITS = 128
"""Bits of the widest access of a lane."""
_MOST_BYTES = 1 << 22
"""Bytes of an array that take less to move, read and stored, than a launch: 1.7 us on an H200."""
_MOST_VISITED = 256
"""Operations that an update is computed by, as far as they are followed."""
_LEAST_SHARE = 2
"""An update in place pays if the array has so many times the sectors that the updated slice touches."""


def can_update_in_place(op: ir.Operation) -> bool:
    """Whether ``op`` is an update that a kernel can make in the memory of its array, if that pays."""
    if op.name == SCATTER:
        count = len(op.results)
        return all(math.prod(shape_of(op.operands[i])) for i in (0, count + 1)) and has_own_types(op)
    if op.name == UPDATE_SLICE and ELEMENTWISE not in op.attributes:
        array, update, *starts = op.operands
        is_known = all(known_integers(each) is not None for each in starts)
        return pays_in_place(shape_of(array), shape_of(update), dtype_of(array).storage_bits, is_known)
    return False


def pays_in_place(whole: Shape, part: Shape, bits: int, is_known: bool) -> bool:
    """Whether a slice of an array, of so many ``bits`` an element, touches few of the array's sectors.

    A column of four touches all of them: to update it in place saves nothing. Nor does it in arrays that one access of
    a warp holds if the place ``is_known``: other kernels compute such an element where they need it, and an update in
    place would be one more launch. At a place that is not, elements count in such arrays, as loops write one after the
    other.
    """
    is_short = math.prod(whole) * bits <= WARP_SIZE * _ACCESS_BITS
    if not math.prod(part) or (is_short and is_known):
        return False
    touched = span = float(bits)
    for size, all_ in zip(reversed(part), reversed(whole), strict=True):
        is_run = touched == span and size < all_ and not is_short
        touched *= size * (overfetch(size * int(span)) if is_run else 1)
        span *= all_
        touched = min(touched, span)
    return touched * _LEAST_SHARE <= span


def chained_updates(block: ir.Block) -> set[ir.Operation]:
    """Return the updates of small arrays, at known places, of which several are made one after the other.

    Those of a loop's state are left: it is updated in place, as what is carried would have to be copied else. To be
    asked before any of them changes, as its hash does with it.
    """
    places: dict[ir.Operation, tuple[ir.Operation, int]] = {}
    links = set[ir.Operation]()
    chained = set[ir.Operation]()
    for op in (view.operation for view in block.operations):
        if op.name not in (SCATTER, UPDATE_SLICE) or len(op.results) != 1:
            continue
        before = defining_op(op.operands[0])
        first, number = places.get(before, (op, 0)) if before is not None else (op, 0)
        places[op] = first, number + 1
        if (
            number < _MOST_VISITED
            and _is_small_and_known(op)
            and not _is_of_state(first)
            and _is_independent(op, places)
        ):
            links.add(op)
            if before in links:
                chained |= {before, op}
    return chained


def _is_small_and_known(op: ir.Operation) -> bool:
    places = [op.operands[1]] if op.name == SCATTER else list(op.operands)[2:]
    size = math.prod(shape_of(op.operands[0])) * dtype_of(op.operands[0]).storage_bits
    return size <= 8 * _MOST_BYTES and all(known_integers(each) is not None for each in places)


def _is_of_state(first: ir.Operation) -> bool:
    """Whether the first of several updates is one of what a loop carries."""
    array = first.operands[0]
    return is_argument(array) and owning_op(array).name != "func.func"


def _is_independent(op: ir.Operation, places: Mapping[ir.Operation, tuple[ir.Operation, int]]) -> bool:
    """Whether an update is computed from no other one, but for the elements that it takes the place of.

    Of updates that are, each element would be computed through all of them. Long computations are not followed.
    ``places`` has the first of the updates that each is one of, and its number there.
    """
    array, update = op.operands[0], _update_of(op)

    def is_of_another(value: ir.Value) -> bool:
        return defining_op(value) is not None and any(
            user != op and user in places and places[user][0] == places[op][0] and _update_of(user) == value
            for user in users_of(value)
        )

    for number, each in enumerate(backward_slice([update], lambda value: value == array)):
        is_other = each.name in (SCATTER, UPDATE_SLICE) or any(map(is_of_another, each.operands))
        if is_other or (array in each.operands and not _is_own_place(op, each)) or number == _MOST_VISITED:
            return False
    return update != array


def _update_of(op: ir.Operation) -> ir.Value:
    return op.operands[-1 if op.name == SCATTER else 1]


def _is_own_place(op: ir.Operation, read: ir.Operation) -> bool:
    """Whether ``read`` is the slice of the array that an update of it takes the place of."""
    if op.name != UPDATE_SLICE or read.name != "stablehlo.slice":
        return False
    starts = [known_integers(each) for each in list(op.operands)[2:]]
    is_there = starts == [[start] for start in integers(read, "start_indices")]
    return is_there and read.results[0].type == op.operands[1].type and set(integers(read, "strides")) <= {1}


def scatter_key(op: ir.Operation) -> Hashable | None:
    """Return what scatters of one kernel have in common, their indices first; None if ``op`` is no scatter in place."""
    if op.name != SCATTER or not can_update_in_place(op):
        return None
    count = len(op.results)
    shapes = tuple(shape_of(op.operands[i]) for i in (0, count, count + 1))
    return op.operands[count], op.attributes["scatter_dimension_numbers"], shapes, is_unique(op)


def updated_operands(op: ir.Operation) -> list[ir.Value]:
    """Return, for each result of an update in place, the operand whose memory it takes over."""
    return list(op.operands)[: len(op.results)]


def updates_of(op: ir.Operation) -> list[ir.Value]:
    """Return, for each result of an update in place, the operand that holds the updates."""
    return [op.operands[1]] if op.name == UPDATE_SLICE else list(op.operands)[len(op.results) + 1 :]


def is_ordered(op: ir.Operation) -> bool:
    """Whether a scatter must apply updates one after the other where the place may be the same.

    Atomic operations are not enough if a result depends on several operands, or two operands must agree on the last
    update.
    """
    if is_unique(op):
        return False
    found = combiners(op)
    overwritten = sum(each.function == "overwrite" for each in found)
    return ORDERED in op.attributes or not all(each.alone for each in found) or overwritten > 1


def has_runs(op: ir.Operation) -> bool:
    """Whether neighbouring updates often have the same place, and are worth combining first."""
    if is_unique(op) or not promises(op, "indices_are_sorted"):
        return False
    return math.prod(scatter_maps(op).update_shape) >= _LEAST_IN_RUNS and can_be_in_runs(op)


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


def has_few_places(op: ir.Operation) -> bool:
    """Whether so many updates of a scatter have the same place that blocks combine theirs first, in shared memory."""
    if op.name != SCATTER or is_unique(op) or not can_update_in_place(op):
        return False
    functions = {each.function for each in combiners(op)}
    if len(op.results) > 1 or functions & {"overwrite", "other"} or not all(each.alone for each in combiners(op)):
        return False
    dtype, places = dtype_of(op.results[0]), math.prod(shape_of(op.results[0]))
    is_word = dtype.storage_bits in (32, 64) and (dtype.is_float or dtype.is_integer)
    updates = math.prod(scatter_maps(op).update_shape)
    is_small = places * dtype.storage_bits <= 8 * _MOST_TILE_BYTES
    return is_word and is_small and updates >= max(_LEAST_IN_TILES, _LEAST_OF_PLACE * places)


def is_unique(op: ir.Operation) -> bool:
    """Whether no two updates of a scatter have the same place, and none shares a byte with another."""
    types = [ir.RankedTensorType(value.type) for value in op.results]
    return has_separate_places(op) and not any(dtype_of_element(type_.element_type).is_packed for type_ in types)


def has_separate_places(op: ir.Operation) -> bool:
    """Whether no two updates of a scatter have the same place."""
    return promises(op, "unique_indices") or scatter_maps(op).windows == 1
