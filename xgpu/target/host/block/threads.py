"""Shared parts of the functions that kernels call: the running thread, its waits, and the stop of a launch."""

from ctypes import c_uint8, c_uint32

from xgpu.target.host.block.state import DIVERGED, BlockState, Meeting, Thread
from xgpu.target.host.context import Header
from xgpu.target.host.language.words import Bytes, Pointer, address, cast, compiled

PAUSES = 1
"""The result of a function after which the thread must wait; otherwise it is 0."""


@compiled
def address_of_go(state: Pointer[BlockState]) -> Pointer[c_uint32]:
    """The word that a thread waits for that need not wait."""
    return cast(c_uint32, cast(c_uint8, state) + GO)


@compiled
def address_of_stay(state: Pointer[BlockState]) -> Pointer[c_uint32]:
    """The word that a thread waits for that has ended."""
    return cast(c_uint32, cast(c_uint8, state) + STAY)


GO = BlockState.go.offset
STAY = BlockState.stay.offset


@compiled
def state_of(context: Pointer[Header]) -> Pointer[BlockState]:
    """The state of the block that runs."""
    return cast(BlockState, context.state)


@compiled
def this_thread(context: Pointer[Header]) -> Pointer[Thread]:
    """The thread that runs."""
    return state_of(context).threads[context.thread]


@compiled
def wait_for(thread: Pointer[Thread], word: Pointer[c_uint32], value: int, site: int) -> int:
    """Let a thread wait until a word is not ``value`` any more."""
    thread.waits_for = word
    thread.value = value
    thread.wait_site = site
    return PAUSES


@compiled
def meet_all(met: Pointer[Meeting], threads: int, context: Pointer[Header], site: int) -> int:
    """Come to an operation that so many threads do together: 0 for the last one, which now does it; others wait."""
    if met.count == 0:
        met.site = site
    elif met.site != site:
        return stop(context, DIVERGED, site, met.site)
    met.count += 1
    if met.count < threads:
        return wait_for(this_thread(context), cast(c_uint32, met), met.round, site)
    met.count = 0
    met.round += 1
    return 0


@compiled
def stop(context: Pointer[Header], reason: int, site: int, value: int) -> int:
    """Stop the launch: the thread that runs did what cannot be gone on with."""
    if context.stop == 0:
        context.stop = reason
        context.stop_thread = context.thread
        context.stop_site = site
        context.stop_value = value
    return wait_for(this_thread(context), address_of_stay(state_of(context)), 0, site)


@compiled
def is_shared(state: Pointer[BlockState], place: int, count: int) -> bool:
    """Whether bytes are in the block's shared memory."""
    first = address(state.shared)
    return count >= 0 and place >= first and place + count <= first + state.shared_bytes


@compiled
def other_context(context: Pointer[Header], rank: int) -> Pointer[Header]:
    """The context of another block of the cluster."""
    state = state_of(context)
    return cast(Header, cast(c_uint8, state.first) + rank * state.stride)


@compiled
def registers(context: Pointer[Header], site: int) -> Bytes:
    """The memory in which the thread that runs gives vectors and finds results, at once before and after a call."""
    return cast(c_uint8, state_of(context).registers)
