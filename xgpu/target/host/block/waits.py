"""Barriers of a block, of some of its warps and of its cluster, and mbarriers, as kernels call them."""

from ctypes import c_int32, c_uint8, c_uint32

from xgpu.passes.llvm.host_block import FENCES
from xgpu.target.host.access_checks import OVERRUN, UNFENCED, UNSEEN
from xgpu.target.host.block.clocks import (
    CLUSTER_BARRIER,
    acquire,
    advance_agent,
    agent_of,
    fence_writes,
    mbarrier_row,
    move,
    now,
    object_row,
    release,
    sees,
    tables_of,
    tick,
    unit_of,
)
from xgpu.target.host.block.copies import copies_up_to
from xgpu.target.host.block.races import end_copy_of_agent, note_remote, site_fault
from xgpu.target.host.block.state import (
    MBARRIER_MARK,
    MISUSED,
    MOST_MBARRIERS,
    NAMED_BARRIERS,
    NO_MBARRIER,
    OVERRUN_STOP,
    TOO_MANY,
    TRANSFERS,
    Barrier,
    Mbarrier,
    Transfer,
)
from xgpu.target.host.block.tensor_maps import copy_box
from xgpu.target.host.block.threads import is_shared, other_context, state_of, stop, this_thread, wait_for
from xgpu.target.host.context import Header
from xgpu.target.host.language.words import CHECKED, Bytes, Pointer, address, cast, compiled, copy


@compiled
def barrier(context: Pointer[Header], site: int) -> int:
    """Wait for all threads of the block."""
    return meet(0, state_of(context).count, True, context, site)


@compiled
def named_barrier(number: int, threads: int, waits: int, context: Pointer[Header], site: int) -> int:
    """Arrive at a barrier of some warps, and wait for the others."""
    if number < 1 or number >= NAMED_BARRIERS:
        return stop(context, MISUSED, site, number)
    return meet(number, threads, waits != 0, context, site)


@compiled
def meet(number: int, threads: int, waits: bool, context: Pointer[Header], site: int) -> int:
    """Arrive at a barrier of so many threads."""
    met = state_of(context).barriers[number]
    if met.count == 0:
        met.expected = threads
        met.site = site
    elif met.expected != threads:
        return stop(context, MISUSED, site, number)
    round = met.round
    met.count += 1
    if CHECKED:
        release(context, object_row(context, 2 * number))
    if met.count == threads:
        met.count = 0
        met.round = round + 1
        if CHECKED:
            pass_on(context, object_row(context, 2 * number), waits)
        return 0
    if not waits:
        return 0
    if CHECKED:
        this_thread(context).acquires = object_row(context, 2 * number + 1)
    return wait_for(this_thread(context), cast(c_uint32, met), round, site)


@compiled
def pass_on(context: Pointer[Header], gathered: Pointer[c_int32], waits: bool) -> None:
    """Let those see that wait what all have done; in the row that follows."""
    count = 2 * tables_of(context).units
    move(gathered + count, gathered, count)
    if waits:
        acquire(context, gathered + count)


@compiled
def cluster_arrive(context: Pointer[Header], site: int) -> int:
    """Arrive at the barrier of the cluster."""
    state = state_of(context)
    met = cluster_barrier(context)
    thread = this_thread(context)
    if thread.has_arrived != 0:
        return stop(context, MISUSED, site, 2)
    thread.has_arrived = 1
    thread.cluster_round = met.round
    met.count += 1
    if CHECKED:
        release(context, object_row(other_context(context, 0), 2 * CLUSTER_BARRIER))
    if met.count == state.count * state.blocks:
        met.count = 0
        met.round += 1
        if CHECKED:
            pass_on(context, object_row(other_context(context, 0), 2 * CLUSTER_BARRIER), False)
    return 0


@compiled
def cluster_wait(context: Pointer[Header], site: int) -> int:
    """Wait until all threads of the cluster have arrived."""
    met = cluster_barrier(context)
    thread = this_thread(context)
    if thread.has_arrived == 0:
        return stop(context, MISUSED, site, 0)
    thread.has_arrived = 0
    if CHECKED:
        thread.acquires = object_row(other_context(context, 0), 2 * CLUSTER_BARRIER + 1)
    if met.round != thread.cluster_round:
        if CHECKED:
            acquire(context, thread.acquires)
        return 0
    return wait_for(thread, cast(c_uint32, met), met.round, site)


@compiled
def cluster_barrier(context: Pointer[Header]) -> Pointer[Barrier]:
    """The barrier of the cluster, which its first block keeps."""
    return cast(Barrier, state_of(other_context(context, 0)).cluster)


@compiled
def cluster_rank(context: Pointer[Header], site: int) -> int:
    """The rank of the block in its cluster."""
    return state_of(context).rank


@compiled
def cluster_pointer(here: Bytes, rank: int, context: Pointer[Header], site: int) -> Bytes:
    """The same place in the shared memory of another block of the cluster."""
    state = state_of(context)
    if rank < 0 or rank >= state.blocks:
        stop(context, MISUSED, site, rank)
        return here
    return here + (rank - state.rank) * state.stride


@compiled
def mbarrier_init(place: Bytes, count: int, context: Pointer[Header], site: int) -> int:
    """Make an mbarrier; its 8 bytes hold a mark and its number."""
    state = state_of(context)
    if not is_shared(state, address(place), 8) or address(place) % 8 != 0:
        return stop(context, MISUSED, site, 0)
    words = cast(c_uint32, place)
    number = state.mbarrier_count
    if words[0] == MBARRIER_MARK and words[1] < number and state.mbarriers[words[1]].address == address(place):
        number = words[1]
    elif number == MOST_MBARRIERS:
        return stop(context, TOO_MANY, site, MOST_MBARRIERS)
    else:
        state.mbarrier_count += 1
    words[0] = MBARRIER_MARK
    words[1] = number
    made = state.mbarriers[number]
    made.address = address(place)
    made.phase = 0
    made.count = count
    made.site = site
    if CHECKED:
        made.maker = unit_of(context)
        made.made_at = now(context)
        made.is_fenced = 0
        tick(context)
    begin_phase(made)
    return 0


@compiled
def check_made(context: Pointer[Header], there: Pointer[Header], number: int, site: int) -> None:
    """Report the use of an mbarrier of a block, whose context is given, by a thread that does not see that it is."""
    made = state_of(there).mbarriers[number]
    if made.maker != unit_of(context):
        if not sees(context, made.maker, made.made_at):
            site_fault(context, site, UNSEEN, 0)
        elif made.is_fenced == 0:
            site_fault(context, site, UNFENCED, 0)
    if address(there) != address(context):
        note_remote(context, state_of(there).rank, site)


@compiled
def begin_phase(made: Pointer[Mbarrier]) -> None:
    """Begin a phase of an mbarrier."""
    made.pending = made.count
    made.is_awaited = 0
    made.deferred = 0
    made.first_transfer = 0
    made.bytes = 0
    made.under_way = 0


@compiled
def number_of(place: Bytes, context: Pointer[Header], site: int) -> int:
    """The number of an mbarrier of a block, whose context is given; -1 if there is none at that place."""
    state = state_of(context)
    if is_shared(state, address(place), 8) and address(place) % 8 == 0:
        words = cast(c_uint32, place)
        is_made = words[0] == MBARRIER_MARK and words[1] < state.mbarrier_count
        if is_made and state.mbarriers[words[1]].address == address(place):
            return words[1]
    stop(context, NO_MBARRIER, site, address(place) - address(state.shared))
    return -1


@compiled
def complete(context: Pointer[Header], number: int) -> None:
    """Complete the phase of an mbarrier if nothing is missing; copies are made only if somebody waits for it."""
    made = state_of(context).mbarriers[number]
    if made.pending != made.deferred or made.bytes != made.under_way:
        return
    if made.is_awaited == 0 and made.first_transfer != 0:
        return
    transfer_all(context, number)
    if CHECKED:
        gathered = mbarrier_row(context, number, 0)
        move(mbarrier_row(context, number, 1 + made.phase % 2), gathered, 2 * tables_of(context).units)
    made.phase += 1
    begin_phase(made)


@compiled
def transfer_all(context: Pointer[Header], number: int) -> None:
    """Make the copies that complete at an mbarrier, in the order in which they were started."""
    state = state_of(context)
    made = state.mbarriers[number]
    while made.first_transfer != 0:
        each = made.first_transfer
        started = state.transfers[each - 1]
        made.first_transfer = started.next
        started.next = state.free_transfer
        state.free_transfer = each
        transfer(context, started)


@compiled
def transfer(context: Pointer[Header], started: Pointer[Transfer]) -> None:
    """Make a copy that was started."""
    started.is_taken = 0
    agent = -1
    clock = 0
    if CHECKED:
        agent = agent_of(state_of(context), started.mbarrier)
        clock = advance_agent(context, agent)
        mbarrier_row(context, started.mbarrier, 0)[agent] = clock
        if started.is_arrival == 0:
            end_copy_of_agent(context, address(started.to), started.bytes, agent, clock, started.who, started.site)
    if started.is_arrival != 0:
        copies_up_to(started.bytes, started.thread, agent, clock, context)
    elif address(started.map) != 0:
        copy_box(started.map, started.to, started.coordinates, False)
    else:
        copy(started.to, started.source, started.bytes)


@compiled
def new_transfer(number: int, context: Pointer[Header], site: int) -> Pointer[Transfer]:
    """A new copy that completes at an mbarrier of a block, whose context is given; null if there are too many."""
    state = state_of(context)
    each = state.free_transfer
    if each != 0:
        state.free_transfer = state.transfers[each - 1].next
    elif state.highest_transfer == TRANSFERS:
        stop(context, TOO_MANY, site, TRANSFERS)
        return cast(Transfer, 0)
    else:
        state.highest_transfer += 1
        each = state.highest_transfer
    completes = state.mbarriers[number]
    if completes.first_transfer == 0:
        completes.first_transfer = each
    else:
        state.transfers[completes.last_transfer - 1].next = each
    completes.last_transfer = each
    made = state.transfers[each - 1]
    made.next = 0
    made.is_taken = 1
    made.is_arrival = 0
    made.mbarrier = number
    made.site = site
    made.thread = context.thread
    made.map = cast(c_uint8, 0)
    return made


@compiled
def arrive(context: Pointer[Header], there: Pointer[Header], number: int, bytes: int, site: int) -> int:
    """Arrive at an mbarrier of a block, whose context is ``there``; it then expects so many bytes more."""
    made = state_of(there).mbarriers[number]
    if CHECKED:
        check_made(context, there, number, site)
    if made.pending == made.deferred:
        # What is under way is done: it is too late to wait for it.
        if CHECKED:
            site_fault(context, site, OVERRUN, made.count)
        made.is_awaited = 1
        complete(there, number)
        if made.pending == made.deferred:
            return stop(context, OVERRUN_STOP, site, made.count)
    made.pending -= 1
    made.bytes += bytes
    if CHECKED:
        release(context, mbarrier_row(there, number, 0))
    complete(there, number)
    return 0


@compiled
def mbarrier_expect(place: Bytes, bytes: int, context: Pointer[Header], site: int) -> int:
    """Arrive, and let the phase wait for bytes."""
    number = number_of(place, context, site)
    if number < 0:
        return 0
    return arrive(context, context, number, bytes, site)


@compiled
def mbarrier_arrive(place: Bytes, context: Pointer[Header], site: int) -> int:
    """Arrive at an mbarrier."""
    number = number_of(place, context, site)
    if number < 0:
        return 0
    return arrive(context, context, number, 0, site)


@compiled
def mbarrier_arrive_remote(place: Bytes, rank: int, context: Pointer[Header], site: int) -> int:
    """Arrive at the mbarrier at the same place in another block of the cluster."""
    there = cluster_pointer(place, rank, context, site)
    if context.stop != 0:
        return 0
    other = other_context(context, rank)
    number = number_of(there, other, site)
    if number < 0:
        return stop(context, NO_MBARRIER, site, address(place) - address(state_of(context).shared))
    return arrive(context, other, number, 0, site)


@compiled
def mbarrier_arrive_copies(place: Bytes, context: Pointer[Header], site: int) -> int:
    """Arrive as soon as the copies of this thread are made, which is when somebody waits for that."""
    number = number_of(place, context, site)
    if number < 0:
        return 0
    made = state_of(context).mbarriers[number]
    if made.pending == made.deferred:
        return stop(context, OVERRUN_STOP, site, made.count)
    if CHECKED:
        check_made(context, context, number, site)
        release(context, mbarrier_row(context, number, 0))
    started = new_transfer(number, context, site)
    if not started:
        return 0
    started.is_arrival = 1
    started.bytes = this_thread(context).next_copy
    made.deferred += 1
    complete(context, number)
    return 0


@compiled
def mbarrier_wait(place: Bytes, parity: int, context: Pointer[Header], site: int) -> int:
    """Wait until the phase of a parity is complete."""
    number = number_of(place, context, site)
    if number < 0:
        return 1
    made = state_of(context).mbarriers[number]
    if CHECKED:
        check_made(context, context, number, site)
    if made.phase % 2 == parity % 2:
        made.is_awaited = 1
        complete(context, number)
    if made.phase % 2 != parity % 2:
        if CHECKED:
            acquire(context, mbarrier_row(context, number, 1 + parity % 2))
        return 0
    if CHECKED:
        this_thread(context).acquires = mbarrier_row(context, number, 1 + parity % 2)
    phase = cast(c_uint32, cast(c_uint8, made) + PHASE)
    return wait_for(this_thread(context), phase, made.phase, site)


PHASE = Mbarrier.phase.offset


@compiled
def fence(kind: int, context: Pointer[Header], site: int) -> int:
    """Order accesses of this thread, which the host does anyway."""
    if CHECKED:
        if kind == ASYNC_FENCE:
            fence_writes(context)
        elif kind == INIT_FENCE:
            state = state_of(context)
            for number in range(state.mbarrier_count):
                if state.mbarriers[number].maker == unit_of(context):
                    state.mbarriers[number].is_fenced = 1
    return 0


ASYNC_FENCE, INIT_FENCE, _ = range(len(FENCES))


@compiled
def set_registers(count: int, more: int, context: Pointer[Header], site: int) -> int:
    """Threads have all registers here."""
    return 0
