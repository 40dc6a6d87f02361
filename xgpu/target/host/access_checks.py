"""The checking functions that a sanitized kernel calls, as LLVM IR, and the tables that they read and write.

Before each access a kernel calls ``ptr @xgpu_check(ptr context, i32 memory, ptr address, i64 size, i64 alignment, i32
kind, i32 access)`` and then accesses what that returns: the address, or scratch memory if the access must not be made.

For every granule of the memory that a kernel writes there is a shadow record of who accessed it last. Two accesses are
ordered if they are the same thread's, or if a barrier of their block lies between: then their epochs differ. So are two
of one warp if a barrier of warps lies between: then their turns differ, and both are of the present run of the warp,
as warps run one after the other from one barrier of the block to the next. Everything else is a race if one of the two
writes and one is not atomic, but for two stores to what may be overwritten. Blocks run one after the other, so one last
write, and two readers and two atomic accesses by different threads are enough to find a race with each later access:
the first of the two is kept while it is another block's, and replaced once a barrier separates it from the present; the
second one is kept if it is another warp's and the first one is not.

As blocks run one after the other, a message that is not there when it is awaited never will be. Such a read is made of
scratch memory that looks like one, so that it ends.

Tiles that lie in the same memory have the same records, which tell the memory that was written last: what a tile held
is lost where another one is written.

Elements smaller than a word are updated atomically as part of the word around them, so an atomic access may reach past
the end of an array whose bytes are no multiple of its own.
"""

import ctypes

from xgpu.dialects.messages import MARK
from xgpu.target.host.context import SCRATCH, offset_of

CHECK = "xgpu_check"
READS, WRITES, ATOMIC, AWAITS = 1, 2, 4, 8
"""Bits of an access's kind; what awaits a message is a read, made again until the message is there."""
FAULTS = (
    *("out of bounds", "misaligned", "read-only", "unwritten", "race", "unpublished"),
    *("in flight", "reused", "unfenced", "unseen", "overrun", "pending", "unfinished", "unacquired"),
)
"""Faults of an access, or of a copy or wait; their numbers are their positions here."""
OUT_OF_BOUNDS, MISALIGNED, READ_ONLY, UNWRITTEN, RACE, UNPUBLISHED, *_OTHERS = range(len(FAULTS))
IN_FLIGHT, REUSED, UNFENCED, UNSEEN, OVERRUN, PENDING, UNFINISHED, UNACQUIRED = _OTHERS
"""Those of blocks whose threads wait at different places: bytes that a copy writes meanwhile, or that are still read;
no fence; an mbarrier or map that was not made yet, or a block that may have ended; an arrival too many; accumulators
before their wait; a copy that nobody waits for; a map that was not acquired."""
_ENTRY_BYTES = 16
_WRITER, _ATOMICS, _READERS, _WRITTEN, _OWNER = (
    0,
    _ENTRY_BYTES,
    3 * _ENTRY_BYTES,
    5 * _ENTRY_BYTES,
    5 * _ENTRY_BYTES + 4,
)
SHADOW_BYTES = _OWNER + 4
"""Size of one granule's record: the last writer, two atomic accesses, two readers, epoch and memory of the last write.

Who is four i32: the thread's number in the grid, from 1, the number of the access, the epoch and the turn."""


class Memory(ctypes.Structure):
    """An array that accesses are checked against: address, bytes, shadow (null: none), log2 of a granule."""

    _fields_ = [
        ("base", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("shadow", ctypes.c_void_p),
        ("granule", ctypes.c_int64),
        ("is_shared", ctypes.c_int64),
        ("is_readonly", ctypes.c_int64),
        ("is_overwritten", ctypes.c_int64),
    ]


class FaultRecord(ctypes.Structure):
    """Count of one fault of one access, and its first occurrence: thread (from 1), memory, byte, the other access."""

    _fields_ = [
        ("count", ctypes.c_int64),
        ("thread", ctypes.c_int64),
        ("memory", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("other_thread", ctypes.c_int64),
        ("other_access", ctypes.c_int64),
    ]


class Tables(ctypes.Structure):
    """The target of the context's field ``checks``; ``faults`` holds a record per access and fault."""

    _fields_ = [
        ("memories", ctypes.c_void_p),
        ("faults", ctypes.c_void_p),
        ("memory_count", ctypes.c_int64),
        ("block_threads", ctypes.c_int64),
    ]


def _load(result: str, type_: str, base: str, offset: int) -> str:
    """Return IR that loads ``%result`` from ``offset`` bytes after ``%base``."""
    return (
        f"  %{result}.at = getelementptr inbounds i8, ptr %{base}, i64 {offset}\n"
        f"  %{result} = load {type_}, ptr %{result}.at"
    )


def _store(type_: str, value: str, base: str, offset: int) -> str:
    """Return IR that stores ``%value`` at ``offset`` bytes after ``%base``."""
    return (
        f"  %{value}.to = getelementptr inbounds i8, ptr %{base}, i64 {offset}\n"
        f"  store {type_} %{value}, ptr %{value}.to"
    )


def _field(structure: type[ctypes.Structure], result: str, type_: str, base: str, name: str) -> str:
    return _load(result, type_, base, int(getattr(structure, name).offset))


_RECORD_FAULT = f"""
define internal void @record_fault(ptr %tables, i32 %access, i32 %fault, i32 %who, i64 %memory, i64 %offset,
                                   ptr %other) noinline {{
{_field(Tables, "records", "ptr", "tables", "faults")}
  %row = mul i32 %access, {len(FAULTS)}
  %number = add i32 %row, %fault
  %number.wide = zext i32 %number to i64
  %record.start = mul i64 %number.wide, {ctypes.sizeof(FaultRecord)}
  %record = getelementptr i8, ptr %records, i64 %record.start
  %count = load i64, ptr %record
  %more = add i64 %count, 1
  store i64 %more, ptr %record
  %is_first = icmp eq i64 %count, 0
  br i1 %is_first, label %first, label %done
first:
  %thread = zext i32 %who to i64
{_store("i64", "thread", "record", FaultRecord.thread.offset)}
{_store("i64", "memory", "record", FaultRecord.memory.offset)}
{_store("i64", "offset", "record", FaultRecord.offset.offset)}
  %alone = icmp eq ptr %other, null
  br i1 %alone, label %done, label %both
both:
{_load("other.who", "i32", "other", 0)}
{_load("other.site", "i32", "other", 4)}
  %other.thread = zext i32 %other.who to i64
  %other.access = zext i32 %other.site to i64
{_store("i64", "other.thread", "record", FaultRecord.other_thread.offset)}
{_store("i64", "other.access", "record", FaultRecord.other_access.offset)}
  br label %done
done:
  ret void
}}
"""

# Who (i32 thread, access, epoch, turn) lies at %entry; %first is the epoch in which the present block began. Times are
# the present epoch and turn, and the first turn of the warp since the last barrier of the block.
_ORDER = f"""
define internal i1 @is_of_warp(ptr %entry, i32 %now, i32 %first_turn) {{
{_load("epoch", "i32", "entry", 8)}
{_load("turn", "i32", "entry", 12)}
  %is_now = icmp eq i32 %epoch, %now
  %is_own = icmp uge i32 %turn, %first_turn
  %both = and i1 %is_now, %is_own
  ret i1 %both
}}

define internal i1 @is_before(ptr %entry, i32 %now, i32 %turn_now, i32 %first_turn) {{
{_load("turn", "i32", "entry", 12)}
  %of_warp = call i1 @is_of_warp(ptr %entry, i32 %now, i32 %first_turn)
  %is_past = icmp ult i32 %turn, %turn_now
  %both = and i1 %of_warp, %is_past
  ret i1 %both
}}

define internal ptr @if_unordered(ptr %record, i64 %at, i1 %matters, i32 %who, i32 %now, i32 %turn_now, i32 %first_turn,
                                  i32 %first, i1 %shared) {{
  %entry = getelementptr inbounds i8, ptr %record, i64 %at
  %thread = load i32, ptr %entry
{_load("epoch", "i32", "entry", 8)}
  %is_there = icmp ne i32 %thread, 0
  %is_other = icmp ne i32 %thread, %who
  %in_epoch = icmp eq i32 %epoch, %now
  %before = call i1 @is_before(ptr %entry, i32 %now, i32 %turn_now, i32 %first_turn)
  %not_before = xor i1 %before, true
  %is_now = and i1 %in_epoch, %not_before
  %is_earlier = icmp ult i32 %epoch, %first
  %is_global = xor i1 %shared, true
  %other_block = and i1 %is_earlier, %is_global
  %at_once = or i1 %is_now, %other_block
  %there = and i1 %is_there, %is_other
  %conflict = and i1 %there, %at_once
  %counts = and i1 %conflict, %matters
  %found = select i1 %counts, ptr %entry, ptr null
  ret ptr %found
}}

define internal ptr @either(ptr %a, ptr %b) {{
  %none = icmp eq ptr %a, null
  %chosen = select i1 %none, ptr %b, ptr %a
  ret ptr %chosen
}}

define internal void @write_entry(ptr %entry, i32 %who, i32 %access, i32 %now, i32 %turn_now) {{
  store i32 %who, ptr %entry
{_store("i32", "access", "entry", 4)}
{_store("i32", "now", "entry", 8)}
{_store("i32", "turn_now", "entry", 12)}
  ret void
}}

define internal void @write_either(ptr %one, i32 %who, i32 %access, i32 %now, i32 %turn_now, i32 %first_turn,
                                   i32 %first, i1 %shared) {{
  %thread = load i32, ptr %one
{_load("epoch", "i32", "one", 8)}
  %two = getelementptr inbounds i8, ptr %one, i64 {_ENTRY_BYTES}
  %is_free = icmp eq i32 %thread, 0
  %is_own = icmp eq i32 %thread, %who
  %is_past = icmp ult i32 %epoch, %now
  %is_here = icmp uge i32 %epoch, %first
  %may_end = or i1 %is_here, %shared
  %is_over = and i1 %is_past, %may_end
  %before = call i1 @is_before(ptr %one, i32 %now, i32 %turn_now, i32 %first_turn)
  %usable = or i1 %is_free, %is_own
  %ended = or i1 %is_over, %before
  %takes_one = or i1 %usable, %ended
  br i1 %takes_one, label %take_one, label %may_take_two
take_one:
  call void @write_entry(ptr %one, i32 %who, i32 %access, i32 %now, i32 %turn_now)
  ret void
may_take_two:
  %thread.two = load i32, ptr %two
{_load("epoch.two", "i32", "two", 8)}
  %one_of_warp = call i1 @is_of_warp(ptr %one, i32 %now, i32 %first_turn)
  %two_of_warp = call i1 @is_of_warp(ptr %two, i32 %now, i32 %first_turn)
  %two_of_other = xor i1 %two_of_warp, true
  %two_is_now = icmp eq i32 %epoch.two, %now
  %two_is_there = icmp ne i32 %thread.two, 0
  %two_counts = and i1 %two_is_now, %two_is_there
  %two_is_other = and i1 %two_counts, %two_of_other
  %keeps = and i1 %one_of_warp, %two_is_other
  br i1 %keeps, label %done, label %take_two
take_two:
  call void @write_entry(ptr %two, i32 %who, i32 %access, i32 %now, i32 %turn_now)
  ret void
done:
  ret void
}}
"""

_NOW = "i32 %now, i32 %turn, i32 %first_turn"
_TIMES = f"i32 %who, {_NOW}"

_CHECK_GRANULE = f"""
define internal void @check_granule(ptr %tables, ptr %record, i32 %who, i32 %access, i32 %kind, i32 %now,
                                    i32 %turn, i32 %first_turn, i32 %first, i1 %shared, i1 %overwritten, i64 %memory,
                                    i64 %offset) {{
  %read.bit = and i32 %kind, {READS}
  %write.bit = and i32 %kind, {WRITES}
  %atomic.bit = and i32 %kind, {ATOMIC}
  %reads = icmp ne i32 %read.bit, 0
  %writes = icmp ne i32 %write.bit, 0
  %plain = icmp eq i32 %atomic.bit, 0
  %only_writes = icmp eq i32 %kind, {WRITES}
  %may_overwrite = and i1 %only_writes, %overwritten
  %not_after_write = xor i1 %may_overwrite, true
{_load("written", "i32", "record", _WRITTEN)}
  %is_early = icmp ult i32 %written, %first
{_load("owner", "i32", "record", _OWNER)}
  %present = trunc i64 %memory to i32
  %is_lost = icmp ne i32 %owner, %present
  %is_fresh = or i1 %is_early, %is_lost
  %reads_shared = and i1 %reads, %shared
  %unwritten = and i1 %reads_shared, %is_fresh
  br i1 %unwritten, label %fresh, label %races
fresh:
  call void @record_fault(ptr %tables, i32 %access, i32 {UNWRITTEN}, i32 %who, i64 %memory, i64 %offset, ptr null)
  br label %races
races:
  %w = call ptr @if_unordered(ptr %record, i64 {_WRITER}, i1 %not_after_write, {_TIMES}, i32 %first, i1 %shared)
  %a1 = call ptr @if_unordered(ptr %record, i64 {_ATOMICS}, i1 %plain, {_TIMES}, i32 %first, i1 %shared)
  %a2 = call ptr @if_unordered(ptr %record, i64 {_ATOMICS + _ENTRY_BYTES}, i1 %plain, {_TIMES}, i32 %first, i1 %shared)
  %r1 = call ptr @if_unordered(ptr %record, i64 {_READERS}, i1 %writes, {_TIMES}, i32 %first, i1 %shared)
  %r2 = call ptr @if_unordered(ptr %record, i64 {_READERS + _ENTRY_BYTES}, i1 %writes, {_TIMES}, i32 %first, i1 %shared)
  %w_a = call ptr @either(ptr %w, ptr %a1)
  %w_aa = call ptr @either(ptr %w_a, ptr %a2)
  %w_aar = call ptr @either(ptr %w_aa, ptr %r1)
  %other = call ptr @either(ptr %w_aar, ptr %r2)
  %alone = icmp eq ptr %other, null
  br i1 %alone, label %remember, label %race
race:
  call void @record_fault(ptr %tables, i32 %access, i32 {RACE}, i32 %who, i64 %memory, i64 %offset, ptr %other)
  br label %remember
remember:
  br i1 %plain, label %plainly, label %atomically
atomically:
  %atomics = getelementptr inbounds i8, ptr %record, i64 {_ATOMICS}
  call void @write_either(ptr %atomics, i32 %who, i32 %access, {_NOW}, i32 %first, i1 %shared)
  br i1 %writes, label %wrote, label %done
plainly:
  br i1 %writes, label %wrote_plainly, label %read
wrote_plainly:
  call void @write_entry(ptr %record, i32 %who, i32 %access, i32 %now, i32 %turn)
  br label %wrote
wrote:
{_store("i32", "now", "record", _WRITTEN)}
{_store("i32", "present", "record", _OWNER)}
  br label %done
read:
  %readers = getelementptr inbounds i8, ptr %record, i64 {_READERS}
  call void @write_either(ptr %readers, i32 %who, i32 %access, {_NOW}, i32 %first, i1 %shared)
  br label %done
done:
  ret void
}}
"""

_FIND_MEMORY = f"""
define internal i64 @find_memory(ptr %tables, i64 %address) {{
entry:
{_field(Tables, "memories", "ptr", "tables", "memories")}
{_field(Tables, "count", "i64", "tables", "memory_count")}
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %go_on ]
  %is_left = icmp ult i64 %i, %count
  br i1 %is_left, label %compare, label %none
compare:
  %start = mul i64 %i, {ctypes.sizeof(Memory)}
  %memory = getelementptr i8, ptr %memories, i64 %start
  %base = load i64, ptr %memory
{_field(Memory, "size", "i64", "memory", "size")}
  %offset = sub i64 %address, %base
  %is_inside = icmp ult i64 %offset, %size
  br i1 %is_inside, label %found, label %go_on
go_on:
  %next = add i64 %i, 1
  br label %look
found:
  ret i64 %i
none:
  ret i64 -1
}}
"""

_CHECK = f"""
define ptr @{CHECK}(ptr %context, i32 %memory, ptr %address, i64 %size, i64 %alignment, i32 %kind, i32 %access) {{
entry:
{_load("tables", "ptr", "context", offset_of("checks"))}
{_load("block", "i64", "context", offset_of("block"))}
{_load("thread", "i32", "context", offset_of("thread"))}
{_load("now", "i32", "context", offset_of("epoch"))}
{_load("first", "i32", "context", offset_of("first_epoch"))}
{_load("turn", "i32", "context", offset_of("turn"))}
{_load("first_turn", "i32", "context", offset_of("first_turn"))}
{_field(Tables, "memories", "ptr", "tables", "memories")}
{_field(Tables, "block_threads", "i64", "tables", "block_threads")}
  %scratch = getelementptr inbounds i8, ptr %context, i64 {SCRATCH}
  %await.bit = and i32 %kind, {AWAITS}
  %awaits = icmp ne i32 %await.bit, 0
  br i1 %awaits, label %prepare, label %begin
prepare:
  store i64 -1, ptr %scratch
  br label %begin
begin:
  %block.number = trunc i64 %block to i32
  %block_threads.number = trunc i64 %block_threads to i32
  %threads.before = mul i32 %block.number, %block_threads.number
  %thread.number = add i32 %threads.before, %thread
  %who = add i32 %thread.number, 1
  %place = ptrtoint ptr %address to i64
  %stated = sext i32 %memory to i64
  %is_stated = icmp sge i64 %stated, 0
  br i1 %is_stated, label %known, label %search
search:
  %found = call i64 @find_memory(ptr %tables, i64 %place)
  %is_found = icmp sge i64 %found, 0
  br i1 %is_found, label %known, label %nowhere
nowhere:
  call void @record_fault(ptr %tables, i32 %access, i32 {OUT_OF_BOUNDS}, i32 %who, i64 -1, i64 0, ptr null)
  ret ptr %scratch
known:
  %number = phi i64 [ %stated, %begin ], [ %found, %search ]
  %entry.start = mul i64 %number, {ctypes.sizeof(Memory)}
  %entry.at = getelementptr i8, ptr %memories, i64 %entry.start
  %base = load i64, ptr %entry.at
{_field(Memory, "bytes.exact", "i64", "entry.at", "size")}
{_field(Memory, "shadow", "ptr", "entry.at", "shadow")}
{_field(Memory, "granule", "i64", "entry.at", "granule")}
{_field(Memory, "is_shared", "i64", "entry.at", "is_shared")}
{_field(Memory, "is_readonly", "i64", "entry.at", "is_readonly")}
{_field(Memory, "is_overwritten", "i64", "entry.at", "is_overwritten")}
  %offset = sub i64 %place, %base
  %end = add i64 %offset, %size
  %atomic.bit = and i32 %kind, {ATOMIC}
  %is_plain = icmp eq i32 %atomic.bit, 0
  %rounding = sub i64 %size, 1
  %slack = select i1 %is_plain, i64 0, i64 %rounding
  %padded = add i64 %bytes.exact, %slack
  %slack.mask = xor i64 %slack, -1
  %bytes = and i64 %padded, %slack.mask
  %starts_before = icmp slt i64 %offset, 0
  %ends_after = icmp sgt i64 %end, %bytes
  %is_outside = or i1 %starts_before, %ends_after
  br i1 %is_outside, label %outside, label %inside
outside:
  call void @record_fault(ptr %tables, i32 %access, i32 {OUT_OF_BOUNDS}, i32 %who, i64 %number, i64 %offset, ptr null)
  ret ptr %scratch
inside:
  %mask = sub i64 %alignment, 1
  %surplus = and i64 %place, %mask
  %is_aligned = icmp eq i64 %surplus, 0
  br i1 %is_aligned, label %aligned, label %misaligned
misaligned:
  call void @record_fault(ptr %tables, i32 %access, i32 {MISALIGNED}, i32 %who, i64 %number, i64 %offset, ptr null)
  ret ptr %scratch
aligned:
  %write.bit = and i32 %kind, {WRITES}
  %write.wide = zext i32 %write.bit to i64
  %forbidden = mul i64 %write.wide, %is_readonly
  %is_forbidden = icmp ne i64 %forbidden, 0
  br i1 %is_forbidden, label %readonly, label %allowed
readonly:
  call void @record_fault(ptr %tables, i32 %access, i32 {READ_ONLY}, i32 %who, i64 %number, i64 %offset, ptr null)
  ret ptr %scratch
allowed:
  br i1 %awaits, label %awaited, label %there
awaited:
  %word = load i64, ptr %address
  %mark = and i64 %word, {MARK}
  %is_published = icmp ne i64 %mark, 0
  br i1 %is_published, label %there, label %unpublished
unpublished:
  call void @record_fault(ptr %tables, i32 %access, i32 {UNPUBLISHED}, i32 %who, i64 %number, i64 %offset, ptr null)
  ret ptr %scratch
there:
  %is_unwatched = icmp eq ptr %shadow, null
  br i1 %is_unwatched, label %done, label %watch
watch:
  %shared = icmp ne i64 %is_shared, 0
  %overwritten = icmp ne i64 %is_overwritten, 0
  %granule.first = ashr i64 %offset, %granule
  %last = sub i64 %end, 1
  %granule.last = ashr i64 %last, %granule
  br label %granules
granules:
  %g = phi i64 [ %granule.first, %watch ], [ %g.next, %granules ]
  %record.start = mul i64 %g, {SHADOW_BYTES}
  %record = getelementptr i8, ptr %shadow, i64 %record.start
  %byte = shl i64 %g, %granule
  call void @check_granule(ptr %tables, ptr %record, i32 %who, i32 %access, i32 %kind, {_NOW},
                           i32 %first, i1 %shared, i1 %overwritten, i64 %number, i64 %byte)
  %g.next = add i64 %g, 1
  %is_last = icmp eq i64 %g, %granule.last
  br i1 %is_last, label %done, label %granules
done:
  ret ptr %address
}}
"""

CHECK_IR = _RECORD_FAULT + _ORDER + _CHECK_GRANULE + _FIND_MEMORY + _CHECK
"""The functions, of which kernels call ``xgpu_check``."""
