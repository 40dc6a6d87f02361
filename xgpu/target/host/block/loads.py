"""Copies to shared memory that complete at an mbarrier, and the tensor maps that they take."""

from xgpu.indexing.tiles.tensor_views import MAX_TENSOR_RANK
from xgpu.passes.llvm.host_block import FORM_OFFSET
from xgpu.target.host.block.clocks import now, tables_of, tick, unit_of
from xgpu.target.host.block.races import START_COPY, check_global, thread_number, touch
from xgpu.target.host.block.state import MAP_MARK, MISUSED, GivenForm, TensorMap, Transfer
from xgpu.target.host.block.tensor_maps import BOX_ALIGNMENT, box_bytes, get_coordinates, has_map, note_map
from xgpu.target.host.block.threads import is_shared, other_context, state_of, stop
from xgpu.target.host.block.waits import check_made, cluster_pointer, complete, new_transfer, number_of
from xgpu.target.host.block.warps import enter
from xgpu.target.host.context import Header
from xgpu.target.host.language.words import CHECKED, Bytes, Pointer, address, cast, compiled, size_of


@compiled
def start(
    to: Bytes, bytes: int, number: int, there: Pointer[Header], context: Pointer[Header], site: int
) -> Pointer[Transfer]:
    """Start a copy to a block, whose context is ``there``; null if the launch is stopped instead."""
    if CHECKED:
        check_made(context, there, number, site)
        touch(context, address(to), bytes, START_COPY, site)
    started = new_transfer(number, there, site)
    if not started:
        stop(context, there.stop, site, there.stop_value)
        return started
    started.to = to
    started.bytes = bytes
    if CHECKED:
        started.who = thread_number(context)
    state_of(there).mbarriers[number].under_way += bytes
    return started


@compiled
def bulk_load(to: Bytes, source: Bytes, bytes: int, place: Bytes, context: Pointer[Header], site: int) -> int:
    """Start to copy consecutive bytes."""
    number = number_of(place, context, site)
    if number < 0:
        return 0
    if not is_shared(state_of(context), address(to), bytes) or (address(to) | address(source) | bytes) % 16 != 0:
        return stop(context, MISUSED, site, bytes)
    if CHECKED and not check_global(context, address(source), bytes, site):
        return stop(context, MISUSED, site, bytes)
    started = start(to, bytes, number, context, context, site)
    if started:
        started.source = source
        complete(context, number)
    return 0


@compiled
def tensor_load(to: Bytes, map: Bytes, place: Bytes, rank: int, context: Pointer[Header], site: int) -> int:
    """Start to copy a box, whose coordinates the thread has in its registers."""
    if has_map(map, rank, context, site):
        load_box(to, map, place, context, context, site)
    return 0


@compiled
def tensor_load_multicast(
    to: Bytes, map: Bytes, place: Bytes, blocks: int, rank: int, context: Pointer[Header], site: int
) -> int:
    """Start to copy a box to several blocks of the cluster."""
    count = state_of(context).blocks
    if (blocks & 0xFFFFFFFF) >> count != 0:
        return stop(context, MISUSED, site, blocks)
    if not has_map(map, rank, context, site):
        return 0
    for block in range(count):
        if blocks >> block & 1 != 0:
            there = cluster_pointer(to, block, context, site)
            completes = cluster_pointer(place, block, context, site)
            load_box(there, map, completes, other_context(context, block), context, site)
    return 0


@compiled
def load_box(to: Bytes, map: Bytes, place: Bytes, there: Pointer[Header], context: Pointer[Header], site: int) -> None:
    """Start to copy a box to a block, whose context is ``there``."""
    number = number_of(place, there, site)
    if number < 0:
        stop(context, there.stop, site, there.stop_value)
        return
    bytes = box_bytes(map)
    if not is_shared(state_of(there), address(to), bytes) or address(to) % BOX_ALIGNMENT != 0:
        stop(context, MISUSED, site, bytes)
        return
    started = start(to, bytes, number, there, context, site)
    if started:
        started.map = map
        get_coordinates(started.coordinates, context)
        complete(there, number)


@compiled
def stride_of(form: Pointer[GivenForm], dimension: int) -> int:
    """Bytes from one element to the next in a dimension."""
    if dimension + 1 == form.rank:
        return form.element
    return form.strides[dimension]


@compiled
def encode_tensor_map(map: Bytes, staging: Bytes, array: Bytes, context: Pointer[Header], site: int) -> int:
    """Write a tensor map of the form that the thread has in its registers; all lanes of a warp do it together."""
    form = cast(GivenForm, state_of(context).registers + FORM_OFFSET)
    if address(map) % 64 != 0:
        return stop(context, MISUSED, site, address(map) % 64)
    if enter(context, site) != 0:
        return 1
    if CHECKED:
        bytes = form.element * 1
        for d in range(form.rank):
            bytes = bytes + (form.shape[d] - 1) * stride_of(form, d)
        inside = check_global(context, address(array), bytes, site)
        if not (check_global(context, address(map), size_of(TensorMap), site) and inside):
            return stop(context, MISUSED, site, bytes)
    made = cast(TensorMap, map)
    made.mark = MAP_MARK
    made.array = array
    made.rank = form.rank
    made.element = form.element
    made.is_rounded = form.is_rounded
    made.swizzle = form.swizzle
    for d in range(MAX_TENSOR_RANK):
        made.shape[d] = form.shape[d]
        made.strides[d] = form.strides[d]
        made.box[d] = form.box[d]
    if CHECKED:
        made.unit = unit_of(context)
        made.clock = now(context)
        made.run = tables_of(context).run
        tick(context)
    return 0


@compiled
def acquire_tensor_map(map: Bytes, context: Pointer[Header], site: int) -> int:
    """See a tensor map that was written."""
    if has_map(map, 0, context, site) and CHECKED:
        note_map(context, map, site)
    return 0
