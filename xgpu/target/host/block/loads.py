"""Copies to shared memory that complete at an mbarrier, and the tensor maps that they take."""

from xgpu.indexing.tiles.tensor_views import MAX_TENSOR_RANK
from xgpu.passes.llvm.host_block import FORM_OFFSET
from xgpu.target.host.block.clocks import now, tables_of, tick, unit_of
from xgpu.target.host.block.races import START_COPY, check_source, thread_number, touch
from xgpu.target.host.block.state import MAP_MARK, MISUSED, GivenForm, TensorMap, Transfer
from xgpu.target.host.block.tensor_maps import box_bytes, check_map, is_map, note_map
from xgpu.target.host.block.threads import is_shared, other_context, state_of, stop
from xgpu.target.host.block.waits import check_made, cluster_pointer, complete, new_transfer, number_of
from xgpu.target.host.block.warps import enter
from xgpu.target.host.context import Header
from xgpu.target.host.language.words import CHECKED, Bytes, Pointer, address, cast, compiled, size_of


@compiled
def start(
    to: Bytes, bytes: int, number: int, there: Pointer[Header], context: Pointer[Header], site: int
) -> Pointer[Transfer]:
    """Start a copy to a block, whose context is ``there``."""
    if CHECKED:
        check_made(context, there, number, site)
        touch(context, address(to), bytes, START_COPY, site)
    started = new_transfer(number, there, site)
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
    if CHECKED:
        check_source(context, address(source), bytes, site)
    start(to, bytes, number, context, context, site).source = source
    complete(context, number)
    return 0


@compiled
def tensor_load(
    to: Bytes,
    map: Bytes,
    place: Bytes,
    c0: int,
    c1: int,
    c2: int,
    c3: int,
    c4: int,
    context: Pointer[Header],
    site: int,
) -> int:
    """Start to copy a box."""
    return load_box(to, map, place, c0, c1, c2, c3, c4, context, context, site)


@compiled
def tensor_load_multicast(
    to: Bytes,
    map: Bytes,
    place: Bytes,
    blocks: int,
    c0: int,
    c1: int,
    c2: int,
    c3: int,
    c4: int,
    context: Pointer[Header],
    site: int,
) -> int:
    """Start to copy a box to several blocks of the cluster."""
    count = state_of(context).blocks
    if (blocks & 0xFFFFFFFF) >> count != 0:
        return stop(context, MISUSED, site, blocks)
    for rank in range(count):
        if blocks >> rank & 1 != 0:
            there = cluster_pointer(to, rank, context, site)
            completes = cluster_pointer(place, rank, context, site)
            load_box(there, map, completes, c0, c1, c2, c3, c4, other_context(context, rank), context, site)
    return 0


@compiled
def load_box(
    to: Bytes,
    map: Bytes,
    place: Bytes,
    c0: int,
    c1: int,
    c2: int,
    c3: int,
    c4: int,
    there: Pointer[Header],
    context: Pointer[Header],
    site: int,
) -> int:
    """Start to copy a box to a block, whose context is ``there``."""
    number = number_of(place, there, site)
    if number < 0:
        return stop(context, there.stop, site, there.stop_value)
    if not is_map(map):
        return stop(context, MISUSED, site, 0)
    bytes = box_bytes(map)
    if not is_shared(state_of(there), address(to), bytes) or address(to) % 128 != 0:
        return stop(context, MISUSED, site, bytes)
    if CHECKED:
        check_map(context, map, site)
    started = start(to, bytes, number, there, context, site)
    started.map = map
    started.coordinates[0] = c0
    started.coordinates[1] = c1
    started.coordinates[2] = c2
    started.coordinates[3] = c3
    started.coordinates[4] = c4
    complete(there, number)
    return 0


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
        inside = check_source(context, address(array), bytes, site)
        if not (check_source(context, address(map), size_of(TensorMap), site) and inside):
            return stop(context, MISUSED, site, bytes)
    made = cast(TensorMap, map)
    made.mark = MAP_MARK
    made.array = array
    made.rank = form.rank
    made.element = form.element
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
    if not is_map(map):
        return stop(context, MISUSED, site, 0)
    if CHECKED:
        note_map(context, map, site)
    return 0
