"""Copies that a thread starts for itself: from global to shared memory, and those of whole boxes back."""

from ctypes import c_uint8

from xgpu.target.host.block.races import (
    END_COPY,
    END_READ,
    START_COPY,
    START_READ,
    check_global,
    end_copy_of_agent,
    touch,
)
from xgpu.target.host.block.state import (
    COPIES_PER_THREAD,
    MISUSED,
    STORES_PER_THREAD,
    TOO_MANY,
    BlockState,
    Store,
    ThreadCopy,
)
from xgpu.target.host.block.tensor_maps import BOX_ALIGNMENT, box_bytes, copy_box, get_coordinates, has_map
from xgpu.target.host.block.threads import is_shared, state_of, stop, this_thread
from xgpu.target.host.context import UNWRITTEN_BYTE, Header
from xgpu.target.host.language.words import CHECKED, Bytes, Pointer, address, cast, compiled, copy, fill


@compiled
def copy_at(state: Pointer[BlockState], thread: int, number: int) -> Pointer[ThreadCopy]:
    """A thread's copy of a number, in its ring."""
    return state.copies[thread * COPIES_PER_THREAD + number % COPIES_PER_THREAD]


@compiled
def async_copy(to: Bytes, source: Bytes, valid: int, bytes: int, context: Pointer[Header], site: int) -> int:
    """Start to copy a few bytes."""
    thread = this_thread(context)
    if thread.next_copy - thread.first_copy == COPIES_PER_THREAD:
        return stop(context, TOO_MANY, site, COPIES_PER_THREAD)
    state = state_of(context)
    is_aligned = (address(to) | address(source)) & (bytes - 1) == 0
    if valid < 0 or valid > bytes or not is_aligned or not is_shared(state, address(to), bytes):
        return stop(context, MISUSED, site, valid)
    if CHECKED:
        if not check_global(context, address(source), valid, site):
            return stop(context, MISUSED, site, valid)
        touch(context, address(to), bytes, START_COPY, site)
    made = copy_at(state, context.thread, thread.next_copy)
    made.to = to
    made.source = source
    made.bytes = bytes
    made.valid = valid
    made.group = thread.copy_group
    made.site = site
    thread.next_copy += 1
    return 0


@compiled
def copies_up_to(end: int, number: int, agent: int, clock: int, context: Pointer[Header]) -> None:
    """Make a thread's copies up to a number; ``agent`` is the unit that does, -1 for the thread."""
    state = state_of(context)
    thread = state.threads[number]
    while thread.first_copy < end:
        made = copy_at(state, number, thread.first_copy)
        copy(made.to, made.source, made.valid)
        fill(made.to + made.valid, 0, made.bytes - made.valid)
        if CHECKED:
            if agent < 0:
                touch(context, address(made.to), made.bytes, END_COPY, made.site)
            else:
                who = context.block * state.count + number + 1
                end_copy_of_agent(context, address(made.to), made.bytes, agent, clock, who, made.site)
        thread.first_copy += 1


@compiled
def async_commit(context: Pointer[Header], site: int) -> int:
    """End this thread's group of copies."""
    this_thread(context).copy_group += 1
    return 0


@compiled
def async_wait(pending: int, context: Pointer[Header], site: int) -> int:
    """Make this thread's copies but for those of its last groups."""
    state = state_of(context)
    thread = this_thread(context)
    end = thread.first_copy
    while end < thread.next_copy and copy_at(state, context.thread, end).group < thread.copy_group - pending:
        end += 1
    copies_up_to(end, context.thread, -1, 0, context)
    return 0


@compiled
def store_at(state: Pointer[BlockState], thread: int, number: int) -> Pointer[Store]:
    """A thread's store of a number, in its ring."""
    return state.stores[thread * STORES_PER_THREAD + number % STORES_PER_THREAD]


@compiled
def start_store(
    to: Bytes, map: Bytes, source: Bytes, bytes: int, alignment: int, context: Pointer[Header], site: int
) -> int:
    """Start a store of this thread, in its open group, from an address of this alignment."""
    thread = this_thread(context)
    state = state_of(context)
    if not is_shared(state, address(source), bytes) or address(source) % alignment != 0:
        return stop(context, MISUSED, site, bytes)
    if thread.next_store - thread.first_store == STORES_PER_THREAD:
        return stop(context, TOO_MANY, site, STORES_PER_THREAD)
    if CHECKED:
        touch(context, address(source), bytes, START_READ, site)
    made = store_at(state, context.thread, thread.next_store)
    made.to = to
    made.map = map
    made.source = source
    made.bytes = bytes
    get_coordinates(made.coordinates, context)
    made.group = thread.store_group
    made.site = site
    thread.next_store += 1
    return 0


@compiled
def bulk_store(to: Bytes, source: Bytes, bytes: int, context: Pointer[Header], site: int) -> int:
    """Start to copy consecutive bytes to global memory."""
    if (address(to) | bytes) % 16 != 0:
        return stop(context, MISUSED, site, bytes)
    if CHECKED and not check_global(context, address(to), bytes, site):
        return stop(context, MISUSED, site, bytes)
    return start_store(to, cast(c_uint8, 0), source, bytes, 16, context, site)


@compiled
def tensor_store(map: Bytes, source: Bytes, rank: int, context: Pointer[Header], site: int) -> int:
    """Start to copy a box to an array, whose coordinates the thread has in its registers."""
    if not has_map(map, rank, context, site):
        return 0
    return start_store(cast(c_uint8, 0), map, source, box_bytes(map), BOX_ALIGNMENT, context, site)


@compiled
def stores_up_to(end: int, number: int, context: Pointer[Header]) -> None:
    """Make a thread's stores up to a number."""
    state = state_of(context)
    thread = state.threads[number]
    while thread.first_store < end:
        made = store_at(state, number, thread.first_store)
        if address(made.map) != 0:
            copy_box(made.map, made.source, made.coordinates, True)
        else:
            copy(made.to, made.source, made.bytes)
        if CHECKED:
            touch(context, address(made.source), made.bytes, END_READ, made.site)
        thread.first_store += 1


@compiled
def bulk_commit(context: Pointer[Header], site: int) -> int:
    """End this thread's group of stores."""
    this_thread(context).store_group += 1
    return 0


@compiled
def bulk_wait(pending: int, done: int, context: Pointer[Header], site: int) -> int:
    """Make this thread's stores but for those of its last groups."""
    state = state_of(context)
    thread = this_thread(context)
    end = thread.first_store
    while end < thread.next_store and store_at(state, context.thread, end).group < thread.store_group - pending:
        end += 1
    stores_up_to(end, context.thread, context)
    return 0


@compiled
def end_block(context: Pointer[Header]) -> None:
    """Make the stores that nobody waited for, of shared memory that is no more."""
    state = state_of(context)
    is_clean = True
    for t in range(state.count):
        if state.threads[t].first_store < state.threads[t].next_store:
            if is_clean:
                fill(state.shared, UNWRITTEN_BYTE, state.shared_bytes)
                is_clean = False
            stores_up_to(state.threads[t].next_store, t, context)
