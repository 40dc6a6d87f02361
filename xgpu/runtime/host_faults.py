"""Faults found by the checks of a host kernel, as errors that name operation, thread and index; the checks' tables."""

import ctypes
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xgpu.errors import CompilerError, Fault, InvalidInput
from xgpu.runtime.host_stops import stopped, with_other
from xgpu.target.host.access_checks import (
    FAULTS,
    IN_FLIGHT,
    MISALIGNED,
    OUT_OF_BOUNDS,
    RACE,
    READ_ONLY,
    READS,
    REUSED,
    SHADOW_BYTES,
    UNFENCED,
    UNPUBLISHED,
    UNWRITTEN,
    WRITES,
    FaultRecord,
    Memory,
    Tables,
)
from xgpu.target.host.block.clocks import BlockTables, clock_sizes
from xgpu.target.host.block.races import Record
from xgpu.target.host.block_driver import Dim3, position
from xgpu.target.host.context import SCRATCH_BYTES, Header
from xgpu.target.host.machine_code import HostCode
from xgpu.target.host.sanitizer import CheckedAccess, Checks, MemoryObject

type Array = np.ndarray[Any, Any]

_RACES = "{thread} accesses with no barrier between"
_OTHERS = {
    IN_FLIGHT: "a copy that {thread} started is still to write",
    REUSED: "{thread} has read or written, or still reads, with no wait between",
    UNFENCED: "{thread} has written and not fenced (xgpu.fence, kind async)",
}
_REASONS = {
    "unfenced": "is here with no fence before: of its registers, or of the mbarrier by the thread that made it",
    "unseen": "is here with no barrier after what it needs was made, or before the block ends whose memory it accesses",
    "overrun": "arrives at an mbarrier to which all have come in this phase",
    "pending": "takes accumulators of products that it has not waited for",
    "unfinished": "has started what it has not waited for at the end",
    "unacquired": "takes a tensor map that it has not acquired",
}
# Clusters are numbered from another number in every launch: memory outlives it, and what is noted in tensor maps.
_LAUNCHES, _LAUNCH_SHIFT, _LARGEST_RUN = itertools.count(1), 12, (1 << 30) - 1
_MOST_THREADS = (1 << 31) - 1


def divergence(code: HostCode, header: Header) -> Fault | None:
    """Return what a context's header says of threads of a block that did not meet, or None."""
    if not header.diverged:
        return None
    if header.stop:
        return stopped(code, header)
    block = position(header.block, code.grid)
    (site, number), (other_site, other_number) = sorted(zip(header.sites, header.threads, strict=True), reverse=True)
    thread, other = (position(each, code.block) for each in (number, other_number))
    # One of the two waits at least; the other may have ended.
    name, place = code.waits[site - 1]
    does = f"is at {code.waits[other_site - 1][0]}" if other_site else "has ended"
    group = "warp" if name.startswith("shuffle") else "block"
    message = f"thread {thread} of block {block} waits at {name} for its {group}, but thread {other} {does}"
    fault = Fault("diverged", message, place.text, place.location, thread, block)
    return with_other(fault, code.waits[other_site - 1][1]) if other_site else fault


class CheckTables:
    """The tables of one sanitized launch: what memory there is, who accessed it last, and the faults that were found.

    ``buffers`` are the launch's arrays, and ``context`` is the address of the context that all of it runs in. Raises
    InvalidInput for a launch of more threads than the records can number.
    """

    def __init__(self, code: HostCode, buffers: Sequence[Array], context: int):
        if code.checks is None:
            raise CompilerError(f"kernel '{code.name}' was compiled without checks")
        self._code = code
        self._checks: Checks = code.checks
        threads = math.prod(code.block)
        if math.prod(code.grid) * threads > _MOST_THREADS:
            raise InvalidInput(f"kernel '{code.name}' has more than {_MOST_THREADS} threads, too many to be checked")
        memories = self._checks.memories
        self._memories = (Memory * len(memories))()
        blocks = math.prod(code.cluster)
        record = ctypes.sizeof(Record) if self._checks.sites else SHADOW_BYTES
        self._shadows: dict[object, Array] = {}
        for number, (entry, memory) in enumerate(zip(self._memories, memories, strict=True)):
            _fill(entry, memory, buffers, context)
            if not memory.is_readonly:
                self._watch(number, entry, memory, record * (blocks if memory.is_shared else 1))
        self._faults = (FaultRecord * (len(self._checks.accesses) * len(FAULTS)))()
        addresses = ctypes.addressof(self._memories), ctypes.addressof(self._faults)
        self._tables: Tables | BlockTables = Tables(*addresses, len(memories), threads)
        if self._checks.sites:
            self._clocks, self._remote, self._tables = _block_tables(self._tables, blocks, self._checks)

    def _watch(self, number: int, entry: Memory, memory: MemoryObject, record_bytes: int) -> None:
        """Give an array records of its bytes; tiles that share memory have the same."""
        first, end = memory.common or (0, int(entry.size))
        shared_by = memory.common or number
        if shared_by not in self._shadows:
            # The records of the bytes that an atomic access may reach past the end come on top.
            granules = -(-(end - first + SCRATCH_BYTES) // memory.granule)
            self._shadows[shared_by] = np.zeros(granules * record_bytes, np.uint8)
        before = (memory.offset - first) // memory.granule if memory.common and memory.offset else 0
        entry.shadow = self._shadows[shared_by].ctypes.data + before * record_bytes

    @property
    def address(self) -> int:
        """The address for the context's field ``checks``."""
        return ctypes.addressof(self._tables)

    def faults(self) -> list[Fault]:
        """Return what was found, in the order of the operations."""
        found = []
        for number, access in enumerate(self._checks.accesses):
            for kind in range(len(FAULTS)):
                record = self._faults[number * len(FAULTS) + kind]
                if record.count:
                    found.append(self._fault(access, kind, record))
        return found

    def _fault(self, access: CheckedAccess, kind: int, record: FaultRecord) -> Fault:
        memory = self._checks.memories[record.memory] if record.memory >= 0 else None
        thread, block = self._thread_and_block(record.thread)
        index = record.offset // access.element
        does = {READS: "reads", WRITES: "writes", 0: "copies to or from"}.get(access.kind & (READS | WRITES), "updates")
        what = f"element {index} (byte {record.offset}) of {_description(memory)}" if memory else "memory"
        reason = self._reason(kind, record, access)
        message = (
            f"thread {thread} of block {block} {f'{does} {what}{reason}' if memory or kind < IN_FLIGHT else reason}"
        )
        times = f" ({record.count} times)" if record.count > 1 else ""
        place = access.place
        fault = Fault(FAULTS[kind], message + times, place.text, place.location, thread, block, count=record.count)
        if memory:
            fault = replace(fault, memory=_description(memory), byte=record.offset, index=index)
        has_other = kind == RACE or (kind > UNPUBLISHED and record.other_access >= 0)
        return with_other(fault, self._checks.accesses[record.other_access].place) if has_other else fault

    def _reason(self, kind: int, record: FaultRecord, access: CheckedAccess) -> str:
        if kind == OUT_OF_BOUNDS and record.memory < 0:
            return " that is no array's"
        size = self._memories[record.memory].size
        if kind == OUT_OF_BOUNDS:
            return f", which has {size} bytes" + (f", with an access of {access.size}" if access.size > 1 else "")
        if kind == MISALIGNED:
            return ", at an address that is less aligned than the operation says"
        if kind == READ_ONLY:
            return ", which is read-only"
        if kind == UNWRITTEN:
            return ", which no thread of the block has written"
        if kind == UNPUBLISHED:
            return ", where no block before has left a message"
        if kind > UNPUBLISHED and record.memory < 0:
            return _REASONS[FAULTS[kind]]
        thread, block = self._thread_and_block(record.other_thread)
        of_block = "" if self._thread_and_block(record.thread)[1] == block else f" of block {block}"
        return f", which {_OTHERS.get(kind, _RACES).format(thread=f'thread {thread}{of_block}')}"

    def _thread_and_block(self, number: int) -> tuple[Dim3, Dim3]:
        block, thread = divmod(number - 1, math.prod(self._code.block))
        return position(thread, self._code.block), position(block, self._code.grid)


def _block_tables(tables: Tables, blocks: int, checks: Checks) -> tuple[Array, Array, BlockTables]:
    """Return clocks, notes of accesses to other blocks, and tables for threads that wait at different places."""
    threads = int(tables.block_threads)
    units, _, numbers = clock_sizes(threads, blocks)
    clocks, remote = np.zeros(numbers, np.int32), np.zeros(2 * blocks * units, np.int32)
    pointers = (ctypes.cast(each.ctypes.data, ctypes.POINTER(ctypes.c_int32)) for each in (clocks, remote))
    given = (tables.memories, tables.faults, tables.memory_count, threads)
    first_site = len(checks.accesses) - checks.sites - 1
    run = next(_LAUNCHES) << _LAUNCH_SHIFT & _LARGEST_RUN
    return clocks, remote, BlockTables(*given, *pointers, units, blocks * threads, blocks, first_site, run, -1, 0, 0)


def _fill(entry: Memory, memory: MemoryObject, buffers: Sequence[Array], context: int) -> None:
    """Describe one array in the tables."""
    entry.size, entry.granule = memory.size, memory.granule.bit_length() - 1
    entry.is_shared, entry.is_readonly = memory.is_shared, memory.is_readonly
    entry.is_overwritten = memory.is_overwritten
    if memory.parameter is not None:
        buffer = buffers[memory.parameter]
        entry.base, entry.size = buffer.ctypes.data, memory.size or buffer.nbytes
    elif memory.offset is not None:
        entry.base = context + memory.offset


def _description(memory: MemoryObject) -> str:
    if memory.parameter is not None:
        return memory.name
    return f"{'tile' if memory.is_shared else 'constant'} '{memory.name}'"
