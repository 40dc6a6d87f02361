"""Runs blocks whose threads wait at different places: any thread that need not wait goes on, in turn.

Blocks of a cluster run together, each in a context of its own; the clusters run one after the other.
"""

from ctypes import Structure, c_int64, c_uint8

from xgpu.target.host.block.copies import end_block
from xgpu.target.host.block.ends import end_checks, see_awaited, start_checks
from xgpu.target.host.block.state import (
    ACCUMULATORS,
    COPIES_PER_THREAD,
    DEADLOCK,
    GROUP_THREADS,
    PRODUCTS,
    STORES_PER_THREAD,
    Barrier,
    BlockState,
    Meeting,
    Store,
    Thread,
    ThreadCopy,
    Warp,
    WarpGroup,
)
from xgpu.target.host.block.threads import address_of_go, address_of_stay
from xgpu.target.host.context import ALIGNMENT, FRAME_ALIGNMENT, SHARED, UNWRITTEN_BYTE, WARP, Header
from xgpu.target.host.language.words import (
    CHECKED,
    Bytes,
    Pointer,
    cast,
    compiled,
    copy,
    fill,
    make_thread,
    resume,
    size_of,
)


class Shape(Structure):
    """A launch: sizes, and where in a context shared memory ends, and the state and the frames begin."""

    _fields_ = [
        ("block", c_int64 * 3),
        ("grid", c_int64 * 3),
        ("cluster", c_int64 * 3),
        ("shared_end", c_int64),
        ("state", c_int64),
        ("frames", c_int64),
    ]


@compiled
def run_clusters(make: Bytes, buffers: Bytes, first: int, last: int, context: Bytes, shape: Pointer[Shape]) -> None:
    """Run the clusters numbered from ``first`` to before ``last``, x fastest."""
    threads = shape.block[0] * shape.block[1] * shape.block[2]
    blocks = shape.cluster[0] * shape.cluster[1] * shape.cluster[2]
    frame = make_thread(make, buffers, 0, 0, 0, context, cast(c_uint8, 0))
    frame = (frame + FRAME_ALIGNMENT - 1) // FRAME_ALIGNMENT * FRAME_ALIGNMENT
    stride = (shape.frames + threads * frame + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    for rank in range(blocks):
        here = context + rank * stride
        if rank > 0:
            copy(here, context, size_of(Header))
        place_state(cast(Header, here), context, rank, blocks, stride, threads, shape)
        make_threads(make, buffers, here, frame, shape)
    for cluster in range(first, last):
        if CHECKED:
            start_checks(cast(Header, context))
        for rank in range(blocks):
            start_block(cast(Header, context + rank * stride), cluster, shape)
        if not run_cluster(context, blocks, stride, threads, frame, shape.frames):
            return


@compiled
def place_state(
    header: Pointer[Header], first: Bytes, rank: int, blocks: int, stride: int, threads: int, shape: Pointer[Shape]
) -> None:
    """Say where the parts of a block's state are."""
    here = cast(c_uint8, header)
    state = cast(BlockState, here + shape.state)
    header.state = state
    state.context = header
    state.first = first
    state.stride = stride
    state.rank = rank
    state.blocks = blocks
    state.count = threads
    state.shared = here + SHARED
    state.shared_bytes = shape.shared_end - SHARED
    state.threads = cast(Thread, here + shape.state + size_of(BlockState))
    state.copies = cast(ThreadCopy, state.threads + threads)
    state.stores = cast(Store, state.copies + threads * COPIES_PER_THREAD)
    state.warps = cast(Warp, state.stores + threads * STORES_PER_THREAD)
    state.groups = cast(WarpGroup, state.warps + (threads + WARP - 1) // WARP)


@compiled
def make_threads(make: Bytes, buffers: Bytes, here: Bytes, frame: int, shape: Pointer[Shape]) -> None:
    """Make the coroutines of a block's threads."""
    number = 0
    for z in range(shape.block[2]):
        for y in range(shape.block[1]):
            for x in range(shape.block[0]):
                make_thread(make, buffers, x, y, z, here, here + (shape.frames + number * frame))
                number += 1


@compiled
def start_block(header: Pointer[Header], cluster: int, shape: Pointer[Shape]) -> None:
    """Prepare a block of a cluster: which it is, its state, and shared memory without any content."""
    state = cast(BlockState, header.state)
    columns = shape.grid[0] // shape.cluster[0]
    rows = shape.grid[1] // shape.cluster[1]
    x = cluster % columns * shape.cluster[0] + state.rank % shape.cluster[0]
    y = cluster // columns % rows * shape.cluster[1] + state.rank // shape.cluster[0] % shape.cluster[1]
    z = cluster // columns // rows * shape.cluster[2] + state.rank // shape.cluster[0] // shape.cluster[1]
    header.block = x + shape.grid[0] * (y + shape.grid[1] * z)
    header.block_index[0] = x
    header.block_index[1] = y
    header.block_index[2] = z
    header.epoch = header.epoch + 1
    header.first_epoch = header.epoch
    fill(state.shared, UNWRITTEN_BYTE, state.shared_bytes)
    state.go = 0
    state.stay = 0
    state.mbarrier_count = 0
    state.highest_transfer = 0
    state.free_transfer = 0
    fill(state.barriers, 0, 16 * size_of(Barrier))
    fill(state.cluster, 0, size_of(Barrier))
    fill(state.threads, 0, state.count * size_of(Thread))
    for t in range(state.count):
        thread = state.threads[t]
        thread.waits_for = address_of_go(state)
        thread.value = 1
    for w in range((state.count + WARP - 1) // WARP):
        fill(state.warps[w].meeting, 0, size_of(Meeting))
    for g in range((state.count + GROUP_THREADS - 1) // GROUP_THREADS):
        start_group(state.groups[g])


@compiled
def start_group(group: Pointer[WarpGroup]) -> None:
    """Prepare a warp group."""
    fill(group.meeting, 0, size_of(Meeting))
    group.first_product = 0
    group.next_product = 0
    group.last_serial = 0
    for a in range(ACCUMULATORS):
        group.accumulators[a].serial = 0
    for p in range(PRODUCTS):
        group.products[p].arrived = 0


@compiled
def run_cluster(first: Bytes, blocks: int, stride: int, threads: int, frame: int, frames: int) -> bool:
    """Run a cluster to its end; false if it stops before."""
    live = blocks * threads
    while live > 0:
        has_moved = False
        for rank in range(blocks):
            here = first + rank * stride
            header = cast(Header, here)
            state = cast(BlockState, header.state)
            for t in range(threads):
                thread = state.threads[t]
                if thread.waits_for[0] != thread.value:
                    has_moved = True
                    header.thread = t
                    if CHECKED:
                        see_awaited(header)
                    thread.waits_for = address_of_go(state)
                    thread.value = 1
                    resume(here + (frames + t * frame))
                    thread.site = header.site
                    if header.stop != 0:
                        report(cast(Header, first), header, rank)
                        return False
                    if header.site == 0:
                        thread.waits_for = address_of_stay(state)
                        thread.value = 0
                        live -= 1
        if not has_moved:
            cast(Header, first).stop = DEADLOCK
            report(cast(Header, first), cast(Header, first), 0)
            return False
    for rank in range(blocks):
        if CHECKED:
            end_checks(cast(Header, first + rank * stride))
        end_block(cast(Header, first + rank * stride))
    return True


@compiled
def report(first: Pointer[Header], header: Pointer[Header], rank: int) -> None:
    """Say in the context of the cluster's first block why it stops, and in which block."""
    first.diverged = 1
    first.stop = header.stop
    first.stop_thread = header.stop_thread
    first.stop_site = header.stop_site
    first.stop_value = header.stop_value
    first.stop_rank = rank
