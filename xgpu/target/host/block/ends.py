"""Checks of a sanitized launch as a cluster starts, as threads go on, and as blocks end: is all work done by then?"""

from ctypes import c_int32

from xgpu.target.host.access_checks import UNFINISHED, UNSEEN
from xgpu.target.host.block.clocks import acquire, clock_row, sees, tables_of
from xgpu.target.host.block.copies import copy_at, store_at
from xgpu.target.host.block.races import site_fault
from xgpu.target.host.block.state import GROUP_THREADS, PRODUCTS
from xgpu.target.host.block.threads import state_of, this_thread
from xgpu.target.host.context import Header
from xgpu.target.host.language.words import Pointer, address, cast, compiled, fill


@compiled
def start_checks(first: Pointer[Header]) -> None:
    """Begin a cluster: nobody sees what was done in those before, nor accesses another block."""
    tables = tables_of(first)
    tables.run += 1
    for t in range(tables.threads):
        own = clock_row(tables, t)
        own[t] = own[t] + 1
    fill(tables.remote, 0, 4 * 2 * tables.blocks * tables.units)


@compiled
def see_awaited(context: Pointer[Header]) -> None:
    """Let the thread that goes on see what was passed on by what it waited for."""
    thread = this_thread(context)
    if address(thread.acquires) != 0:
        acquire(context, thread.acquires)
        thread.acquires = cast(c_int32, 0)


@compiled
def end_checks(context: Pointer[Header]) -> None:
    """Report what a block has started and nobody has waited for, and accesses to it that it may not outlive."""
    state = state_of(context)
    for t in range(state.count):
        context.thread = t
        thread = state.threads[t]
        if thread.first_copy < thread.next_copy:
            site_fault(context, copy_at(state, t, thread.first_copy).site, UNFINISHED, 0)
        if thread.first_store < thread.next_store:
            site_fault(context, store_at(state, t, thread.first_store).site, UNFINISHED, 0)
    context.thread = 0
    for t in range(state.highest_transfer):
        if state.transfers[t].is_taken != 0:
            site_fault(context, state.transfers[t].site, UNFINISHED, 0)
    for g in range((state.count + GROUP_THREADS - 1) // GROUP_THREADS):
        group = state.groups[g]
        if group.first_product < group.next_product:
            context.thread = g * GROUP_THREADS
            site_fault(context, group.products[group.first_product % PRODUCTS].site, UNFINISHED, 0)
    end_remote_accesses(context)


@compiled
def end_remote_accesses(context: Pointer[Header]) -> None:
    """Report what other blocks did to this one of which none of its threads knows at its end."""
    state = state_of(context)
    tables = tables_of(context)
    for unit in range(tables.threads):
        done = tables.remote + 2 * (state.rank * tables.units + unit)
        if done[0] != 0:
            is_seen = False
            for t in range(state.count):
                context.thread = t
                if sees(context, unit, done[0]):
                    is_seen = True
                    break
            if not is_seen:
                context.thread = 0
                site_fault(context, done[1], UNSEEN, 0)
