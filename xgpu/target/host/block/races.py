"""A sanitized launch's records for each granule of an array: the last accesses, and what is under way there.

An access is a race if another one of the same bytes, one of the two a write, is not seen by its thread (`clocks`).
Copies and products access memory from their start to the wait that covers them: meanwhile nobody may write what they
read, or touch what they write. What they read must have been fenced by whoever wrote it.
"""

from ctypes import Structure, c_int32, c_uint8, c_uint64

from xgpu.dialects.messages import MARK
from xgpu.target.host.access_checks import (
    ATOMIC,
    AWAITS,
    FAULTS,
    IN_FLIGHT,
    MISALIGNED,
    OUT_OF_BOUNDS,
    RACE,
    READ_ONLY,
    READS,
    REUSED,
    UNFENCED,
    UNPUBLISHED,
    UNWRITTEN,
    WRITES,
    FaultRecord,
    Memory,
)
from xgpu.target.host.block.clocks import BlockTables, now, sees, sees_fenced, tables_of, unit_of
from xgpu.target.host.block.threads import state_of
from xgpu.target.host.context import SCRATCH, SCRATCH_BYTES, Header
from xgpu.target.host.language.words import Bytes, Pointer, address, cast, compiled

READERS = 4


class AccessEntry(Structure):
    """An access: by which unit, when, in which cluster that ran, its number and kind, and its thread's (from 1)."""

    _fields_ = [
        ("unit", c_int32),
        ("clock", c_int32),
        ("run", c_int32),
        ("access", c_int32),
        ("who", c_int32),
        ("kind", c_int32),
    ]


class Record(Structure):
    """A granule: its last write, readers since, the copy under way that writes it, and how many read it."""

    _fields_ = [
        ("write", AccessEntry),
        ("readers", AccessEntry * READERS),
        ("copying", AccessEntry),
        ("reading", AccessEntry),
        ("reading_count", c_int32),
        ("next_reader", c_int32),
    ]


GENERIC, ASYNCHRONOUS = 0, 16
"""Kinds of writes besides those of accesses: by a thread, or by a copy, which others need no fence to see."""

START_COPY, END_COPY, START_READ, END_READ = range(4)
"""The kinds of accesses to a range of shared memory; those that start are even."""


@compiled
def thread_number(context: Pointer[Header]) -> int:
    """The number of the thread that runs in the grid, from 1."""
    return context.block * state_of(context).count + context.thread + 1


@compiled
def record_fault(
    context: Pointer[Header], access: int, fault: int, memory: int, offset: int, other: Pointer[AccessEntry]
) -> None:
    """Count a fault of an access, and keep the first."""
    tables = tables_of(context)
    record = cast(FaultRecord, tables.faults) + (access * FAULT_COUNT + fault)
    record.count += 1
    if record.count > 1:
        return
    record.thread = thread_number(context)
    record.memory = memory
    record.offset = offset
    if address(other) != 0:
        record.other_thread = other.who
        record.other_access = other.access
    else:
        record.other_access = -1


FAULT_COUNT = len(FAULTS)


@compiled
def site_fault(context: Pointer[Header], site: int, fault: int, value: int) -> None:
    """Count a fault of a site that is not of an array."""
    record_fault(context, tables_of(context).first_site + site, fault, -1, value, cast(AccessEntry, 0))


@compiled
def find_memory(tables: Pointer[BlockTables], place: int) -> int:
    """The number of the array that an address is in, -1 if in none."""
    for m in range(tables.memory_count):
        memory = cast(Memory, tables.memories) + m
        offset = place - address(memory.base)
        if offset >= 0 and offset < memory.size:
            return m
    return -1


@compiled
def rank_of(context: Pointer[Header], place: int) -> int:
    """The rank of the block of the cluster whose context an address is in, 0 if it is in none."""
    state = state_of(context)
    offset = place - address(state.first)
    if offset < 0 or offset >= state.blocks * state.stride:
        return 0
    return offset // state.stride


@compiled
def place_in_first(context: Pointer[Header], place: int) -> int:
    """The address in the cluster's first block, of whose tiles the tables know, that stands for one in any block."""
    return place - rank_of(context, place) * state_of(context).stride


@compiled
def note_remote(context: Pointer[Header], rank: int, site: int) -> None:
    """Remember an access of a site to the block of a rank, which must not have ended."""
    tables = tables_of(context)
    done = tables.remote + 2 * (rank * tables.units + unit_of(context))
    done[0] = now(context)
    done[1] = site


@compiled
def record_of(context: Pointer[Header], memory: Pointer[Memory], rank: int, granule: int) -> Pointer[Record]:
    """The record of a granule, for tiles of the block of a rank."""
    granules = 0
    if rank > 0:
        granules = (memory.size + SCRATCH_BYTES + (1 << memory.granule) - 1) >> memory.granule
    return cast(Record, memory.shadow) + (rank * granules + granule)


@compiled
def set_entry(context: Pointer[Header], entry: Pointer[AccessEntry], access: int, kind: int) -> None:
    """Say that the thread that runs made an access now."""
    tables = tables_of(context)
    entry.unit = unit_of(context)
    entry.clock = now(context)
    if tables.actor >= 0:
        entry.unit = tables.actor
        entry.clock = tables.actor_time
    entry.run = tables.run
    entry.access = access
    entry.who = thread_number(context)
    if tables.starter != 0:
        entry.who = tables.starter
    entry.kind = kind


@compiled
def conflicts(context: Pointer[Header], entry: Pointer[AccessEntry], shared: bool) -> bool:
    """Whether an access is one that the thread that runs does not see, and another's."""
    if entry.who == 0:
        return False
    if entry.run != tables_of(context).run:
        return not shared
    if entry.unit == unit_of(context):
        return False
    return not sees(context, entry.unit, entry.clock)


@compiled
def is_present(context: Pointer[Header], entry: Pointer[AccessEntry]) -> bool:
    """Whether an entry is of the cluster that runs."""
    return entry.who != 0 and entry.run == tables_of(context).run


@compiled
def add_reader(context: Pointer[Header], record: Pointer[Record], access: int, shared: bool) -> None:
    """Remember a reader: in place of one that this one has seen, or else of the oldest."""
    chosen = -1
    for r in range(READERS):
        entry = record.readers[r]
        if chosen < 0 and (not conflicts(context, entry, shared)):
            chosen = r
    if chosen < 0:
        chosen = record.next_reader % READERS
        record.next_reader = chosen + 1
    set_entry(context, record.readers[chosen], access, READS)


@compiled
def set_write(context: Pointer[Header], record: Pointer[Record], access: int, kind: int) -> None:
    """Remember a write, before which all readers are done or were reported."""
    set_entry(context, record.write, access, kind)
    for r in range(READERS):
        record.readers[r].who = 0


@compiled
def unseen_reader(context: Pointer[Header], record: Pointer[Record], shared: bool) -> Pointer[AccessEntry]:
    """A reader that the thread that runs does not see, null if there is none."""
    found = cast(AccessEntry, 0)
    for r in range(READERS):
        if conflicts(context, record.readers[r], shared):
            found = record.readers[r]
    return found


@compiled
def check_under_way(
    context: Pointer[Header], record: Pointer[Record], access: int, writes: bool, number: int, offset: int
) -> bool:
    """Report an access to what a copy under way writes, or a write to what is being read; false if so."""
    if is_present(context, record.copying):
        record_fault(context, access, IN_FLIGHT, number, offset, record.copying)
        return False
    if writes and record.reading_count > 0 and is_present(context, record.reading):
        record_fault(context, access, REUSED, number, offset, record.reading)
        return False
    return True


@compiled
def check_granule(
    context: Pointer[Header],
    record: Pointer[Record],
    access: int,
    kind: int,
    memory: Pointer[Memory],
    number: int,
    offset: int,
) -> None:
    """Check an access of a granule, and remember it."""
    shared = memory.is_shared != 0
    writes = kind & WRITES != 0
    atomic = kind & ATOMIC != 0
    write = record.write
    if not check_under_way(context, record, access, writes, number, offset):
        return
    if shared and kind & READS != 0 and not is_present(context, write):
        record_fault(context, access, UNWRITTEN, number, offset, cast(AccessEntry, 0))
    may_overwrite = memory.is_overwritten != 0 and kind == WRITES
    both_atomic = atomic and cast(AccessEntry, write).kind & ATOMIC != 0
    unseen = cast(AccessEntry, 0)
    if writes:
        unseen = unseen_reader(context, record, shared)
    if not may_overwrite and not both_atomic and conflicts(context, write, shared):
        unseen = cast(AccessEntry, write)
    if address(unseen) != 0:
        record_fault(context, access, RACE, number, offset, unseen)
    if writes:
        set_write(context, record, access, kind)
    else:
        add_reader(context, record, access, shared)


@compiled
def check(
    context: Pointer[Header], number: int, place: Bytes, size: int, alignment: int, kind: int, access: int
) -> Bytes:
    """Check an access of a kernel before it is made; return where to make it."""
    tables = tables_of(context)
    scratch = cast(c_uint8, context) + SCRATCH
    if kind & AWAITS != 0:
        cast(c_uint64, scratch)[0] = -1
    at = address(place)
    rank = rank_of(context, at)
    at = place_in_first(context, at)
    if number < 0:
        number = find_memory(tables, at)
        if number < 0:
            record_fault(context, access, OUT_OF_BOUNDS, -1, 0, cast(AccessEntry, 0))
            return scratch
    memory = cast(Memory, tables.memories) + number
    offset = at - address(memory.base)
    slack = 0
    if kind & ATOMIC != 0:
        slack = size - 1
    fault = -1
    if offset < 0 or offset + size > (memory.size + slack & ~slack):
        fault = OUT_OF_BOUNDS
    elif at & (alignment - 1) != 0:
        fault = MISALIGNED
    elif kind & WRITES != 0 and memory.is_readonly != 0:
        fault = READ_ONLY
    elif kind & AWAITS != 0 and cast(c_uint64, place)[0] & MARK == 0:
        fault = UNPUBLISHED
    if fault >= 0:
        record_fault(context, access, fault, number, offset, cast(AccessEntry, 0))
        return scratch
    if address(memory.shadow) != 0:
        if memory.is_shared == 0:
            rank = 0
        elif rank != state_of(context).rank:
            note_remote(context, rank, access - tables.first_site)
        for g in range(offset >> memory.granule, (offset + size - 1 >> memory.granule) + 1):
            record = record_of(context, memory, rank, g)
            check_granule(context, record, access, kind, memory, number, g << memory.granule)
    return place


@compiled
def check_global(context: Pointer[Header], place: int, size: int, site: int) -> bool:
    """Whether bytes of global memory are those of one array; reports if not."""
    if size <= 0:
        return size == 0
    tables = tables_of(context)
    number = find_memory(tables, place)
    if number < 0:
        site_fault(context, site, OUT_OF_BOUNDS, 0)
        return False
    memory = cast(Memory, tables.memories) + number
    offset = place - address(memory.base)
    if offset + size > memory.size:
        record_fault(context, tables.first_site + site, OUT_OF_BOUNDS, number, offset, cast(AccessEntry, 0))
        return False
    return True


@compiled
def touch(context: Pointer[Header], place: int, size: int, action: int, site: int) -> None:
    """Start or end a copy into bytes of shared memory, or a read of them by a copy or product."""
    tables = tables_of(context)
    at = place_in_first(context, place)
    number = find_memory(tables, at)
    access = tables.first_site + site
    if number < 0:
        if action % 2 == 0:
            site_fault(context, site, OUT_OF_BOUNDS, 0)
        return
    memory = cast(Memory, tables.memories) + number
    offset = at - address(memory.base)
    if offset + size > memory.size:
        if action % 2 == 0:
            record_fault(context, access, OUT_OF_BOUNDS, number, offset, cast(AccessEntry, 0))
        size = memory.size - offset
    for g in range(offset >> memory.granule, offset + size + (1 << memory.granule) - 1 >> memory.granule):
        record = record_of(context, memory, rank_of(context, place), g)
        if action == START_COPY:
            start_copy(context, record, access, number, g << memory.granule)
        elif action == START_READ:
            start_read(context, record, access, number, g << memory.granule)
        elif action == END_READ:
            end_read(context, record, access)
        else:
            record.copying.who = 0
            set_write(context, record, access, ASYNCHRONOUS if tables.actor >= 0 else GENERIC)


@compiled
def end_read(context: Pointer[Header], record: Pointer[Record], access: int) -> None:
    """End a read of a granule by a copy or product, which the thread that runs has waited for."""
    record.reading_count = max(record.reading_count - 1, 0)
    add_reader(context, record, access, True)


@compiled
def start_copy(context: Pointer[Header], record: Pointer[Record], access: int, number: int, offset: int) -> None:
    """Start a copy into a granule."""
    if check_under_way(context, record, access, True, number, offset):
        unseen = unseen_reader(context, record, True)
        if conflicts(context, record.write, True):
            unseen = cast(AccessEntry, record.write)
        if address(unseen) != 0:
            record_fault(context, access, REUSED, number, offset, unseen)
    set_entry(context, record.copying, access, WRITES)


@compiled
def start_read(context: Pointer[Header], record: Pointer[Record], access: int, number: int, offset: int) -> None:
    """Start a read of a granule by a copy or product."""
    write = cast(AccessEntry, record.write)
    if check_under_way(context, record, access, False, number, offset):
        if not is_present(context, write):
            record_fault(context, access, UNWRITTEN, number, offset, cast(AccessEntry, 0))
        elif conflicts(context, write, True):
            record_fault(context, access, RACE, number, offset, write)
        elif write.kind != ASYNCHRONOUS and not sees_fenced(context, write.unit, write.clock):
            record_fault(context, access, UNFENCED, number, offset, write)
    if not is_present(context, record.reading):
        record.reading_count = 0
    record.reading_count += 1
    set_entry(context, record.reading, access, READS)


@compiled
def end_copy_of_agent(
    context: Pointer[Header], place: int, size: int, unit: int, clock: int, who: int, site: int
) -> None:
    """End a copy that a unit has made for an mbarrier; thread ``who`` of the grid, from 1, has started it."""
    tables = tables_of(context)
    tables.actor = unit
    tables.actor_time = clock
    tables.starter = who
    touch(context, place, size, END_COPY, site)
    tables.actor = -1
    tables.starter = 0
