"""Tensor maps, and the copies of boxes between arrays and shared memory."""

from ctypes import c_int32, c_uint8, c_uint32

from xgpu.indexing.tiles.tensor_views import MAX_TENSOR_RANK
from xgpu.passes.llvm.host_block import FORM_OFFSET
from xgpu.target.host.access_checks import UNACQUIRED, UNSEEN
from xgpu.target.host.block.clocks import sees, tables_of
from xgpu.target.host.block.races import check_global, site_fault
from xgpu.target.host.block.state import MAP_MARK, MAPS, MISUSED, TensorMap
from xgpu.target.host.block.threads import state_of, stop, this_thread
from xgpu.target.host.context import Header
from xgpu.target.host.language.words import CHECKED, Bytes, Pointer, address, cast, compiled, copy, fill, size_of

CHUNK = 16
"""Bytes that a swizzle keeps together."""
MAP_ALIGNMENT = 64
"""Alignment that tensor maps need."""
BOX_ALIGNMENT = 128
"""Alignment that boxes need in shared memory."""


@compiled
def swizzled(place: int, swizzle: int) -> int:
    """Return the swizzled address of a chunk; ``swizzle`` is 0 or the bytes of a row in which chunks are permuted."""
    if swizzle == 0:
        return place
    return place ^ ((place // 128 & (swizzle // CHUNK - 1)) * CHUNK)


@compiled
def copy_box(map: Bytes, shared: Bytes, coordinates: Pointer[c_int32], stores: bool) -> None:
    """Copy a box to shared memory, zeros for what is out of bounds, or back."""
    what = cast(TensorMap, map)
    last = what.rank - 1
    rows = 1
    for d in range(last):
        rows = rows * what.box[d]
    for row in range(rows):
        source = cast(c_uint8, what.array)
        rest = row
        is_inside = True
        for reverse in range(last):
            d = last - 1 - reverse
            index = coordinates[d] + rest % what.box[d]
            rest = rest // what.box[d]
            if index < 0 or index >= what.shape[d]:
                is_inside = False
            source = source + index * what.strides[d]
        copy_row(what, source, is_inside, coordinates[last], shared + row * what.box[last] * what.element, stores)


@compiled
def copy_row(
    what: Pointer[TensorMap], source: Bytes, is_inside: bool, column: int, shared: Bytes, stores: bool
) -> None:
    """Copy a row of a box, which begins at a column of the array's row ``source``, chunk by chunk."""
    last = what.rank - 1
    width = what.box[last] * what.element
    first = max(-column, 0) * what.element
    end = min(width, (what.shape[last] - column) * what.element)
    if not is_inside:
        end = 0
    for chunk in range(0, width, CHUNK):
        place = cast(c_uint8, swizzled(address(shared + chunk), what.swizzle))
        begin = max(first - chunk, 0)
        stop = min(end - chunk, CHUNK)
        there = source + (column * what.element + chunk)
        if not stores:
            if begin == 0 and stop == CHUNK:
                copy(place, there, CHUNK)
            else:
                fill(place, 0, CHUNK)
                for b in range(begin, stop):
                    place[b] = there[b]
            if what.is_rounded != 0:
                round_chunk(cast(c_uint32, place))
        else:
            for b in range(begin, stop):
                there[b] = place[b]


@compiled
def round_chunk(numbers: Pointer[c_uint32]) -> None:
    """Round numbers of f32 to the nearest of tf32, to even."""
    for n in range(CHUNK // 4):
        bits = numbers[n]
        if bits & 0x7F800000 != 0x7F800000:
            numbers[n] = bits + 0xFFF + (bits >> 13 & 1) & 0xFFFFE000
        elif bits & 0x7FFFFF != 0:
            numbers[n] = bits | 0x400000


@compiled
def has_map(map: Bytes, rank: int, context: Pointer[Header], site: int) -> bool:
    """Whether there is a tensor map at an address, of this rank if that is not 0; stops the launch if not."""
    is_one = address(map) % MAP_ALIGNMENT == 0
    if CHECKED:
        is_one = check_global(context, address(map), size_of(TensorMap), site) and is_one
    if is_one:
        what = cast(TensorMap, map)
        is_one = what.mark == MAP_MARK and (rank == 0 or what.rank == rank)
    if not is_one:
        stop(context, MISUSED, site, rank)
    elif CHECKED and rank != 0:
        check_acquired(context, map, site)
    return is_one


@compiled
def get_coordinates(into: Pointer[c_int32], context: Pointer[Header]) -> None:
    """Read where a box begins, which the thread has in its registers."""
    copy(into, cast(c_uint8, state_of(context).registers) + FORM_OFFSET, 4 * MAX_TENSOR_RANK)


@compiled
def box_bytes(map: Bytes) -> int:
    """The bytes of a tensor map's boxes."""
    what = cast(TensorMap, map)
    bytes = what.element * 1
    for d in range(what.rank):
        bytes = bytes * what.box[d]
    return bytes


@compiled
def check_acquired(context: Pointer[Header], map: Bytes, site: int) -> None:
    """Report a tensor map that the thread has not acquired."""
    thread = this_thread(context)
    for m in range(MAPS):
        if thread.maps[m] == address(map):
            return
    site_fault(context, site, UNACQUIRED, 0)


@compiled
def note_map(context: Pointer[Header], map: Bytes, site: int) -> None:
    """Remember a tensor map that the thread acquires; reports one of this cluster's that it does not see."""
    what = cast(TensorMap, map)
    if what.run == tables_of(context).run and not sees(context, what.unit, what.clock):
        site_fault(context, site, UNSEEN, 0)
    thread = this_thread(context)
    thread.maps[thread.next_map % MAPS] = address(map)
    thread.next_map += 1
