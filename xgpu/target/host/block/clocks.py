"""Vector clocks of threads, which barriers and arrivals pass on: the accesses of others that a thread has seen.

Each thread counts up as it passes on what it has done. Row ``t`` of the clocks says how far the doings of every unit
are seen by thread ``t``; what was done at time ``c`` by unit ``u`` is seen if the number of ``u`` is at least ``c``.
Units are threads, and those that copy for an mbarrier or multiply for a warp group. A second half of each row says the
same of writes to shared memory for copies and products, for which a fence is needed. Barriers and mbarriers have rows
of their own, in which they gather what those that arrive have seen (Flanagan and Freund, FastTrack, 2009).
"""

from ctypes import POINTER, Structure, c_int32, c_int64, c_void_p

from xgpu.dialects.discardable import MAX_THREADS_PER_BLOCK
from xgpu.target.host.block.state import GROUP_THREADS, MOST_MBARRIERS, NAMED_BARRIERS, BlockState
from xgpu.target.host.block.threads import state_of
from xgpu.target.host.context import WARP, Header
from xgpu.target.host.language.words import Pointer, cast, compiled, fill

_COPYING_AGENTS = 64
"""Units of a block that copy for mbarriers; one for several of them if there are more."""
AGENTS = _COPYING_AGENTS + MAX_THREADS_PER_BLOCK // GROUP_THREADS
"""Those, and units that multiply, one for each warp group."""
_WARP_ROWS = 2 * (NAMED_BARRIERS + 1)
_BARRIER_ROWS = _WARP_ROWS + 2 * (MAX_THREADS_PER_BLOCK // WARP)
CLUSTER_BARRIER = NAMED_BARRIERS
"""The number of the cluster's barrier among those of its first block."""
OBJECT_ROWS = _BARRIER_ROWS + 3 * MOST_MBARRIERS
"""Rows of a block's barriers and mbarriers."""


class BlockTables(Structure):
    """The tables of a sanitized launch whose threads wait at different places; see `access_checks.Tables`.

    ``run`` numbers the clusters, from another number in every launch. The faults of site ``s`` are those of access
    ``first_site + s``. What is recorded is done by unit ``actor`` at its time, by the thread that runs if that is -1;
    ``starter`` is the thread of the grid that started it, from 1, the one that runs if that is 0.
    """

    _fields_ = [
        ("memories", c_void_p),
        ("faults", c_void_p),
        ("memory_count", c_int64),
        ("block_threads", c_int64),
        ("clocks", POINTER(c_int32)),
        ("remote", POINTER(c_int32)),
        ("units", c_int64),
        ("threads", c_int64),
        ("blocks", c_int64),
        ("first_site", c_int64),
        ("run", c_int64),
        ("actor", c_int64),
        ("actor_time", c_int64),
        ("starter", c_int64),
    ]


def clock_sizes(threads: int, blocks: int) -> tuple[int, int, int]:
    """Return the units of a cluster of blocks of so many threads, its rows, and the numbers of all."""
    units = blocks * (threads + AGENTS)
    rows = blocks * (threads + OBJECT_ROWS) + 1
    return units, rows, rows * 2 * units


@compiled
def tables_of(context: Pointer[Header]) -> Pointer[BlockTables]:
    """The tables of the launch."""
    return cast(BlockTables, context.checks)


@compiled
def clock_row(tables: Pointer[BlockTables], number: int) -> Pointer[c_int32]:
    """A row of the clocks."""
    return tables.clocks + number * 2 * tables.units


@compiled
def unit_of(context: Pointer[Header]) -> int:
    """The unit that is the thread that runs, which is its row too."""
    state = state_of(context)
    return state.rank * state.count + context.thread


@compiled
def agent_of(state: Pointer[BlockState], number: int) -> int:
    """The unit that copies for an mbarrier."""
    return state.blocks * state.count + state.rank * AGENTS + number % _COPYING_AGENTS


@compiled
def multiplier_of(state: Pointer[BlockState], group: int) -> int:
    """The unit that multiplies for a warp group."""
    return state.blocks * state.count + state.rank * AGENTS + _COPYING_AGENTS + group


@compiled
def object_row(context: Pointer[Header], number: int) -> Pointer[c_int32]:
    """A row of a block's barriers and mbarriers."""
    state = state_of(context)
    tables = tables_of(context)
    return clock_row(tables, tables.threads + state.rank * OBJECT_ROWS + number)


@compiled
def warp_row(context: Pointer[Header], warp: int) -> Pointer[c_int32]:
    """A row of the barrier of a warp's threads."""
    return object_row(context, _WARP_ROWS + 2 * warp)


@compiled
def mbarrier_row(context: Pointer[Header], number: int, part: int) -> Pointer[c_int32]:
    """A row of an mbarrier: 0 gathers, 1 and 2 are what the last phases of the two parities have passed on."""
    return object_row(context, _BARRIER_ROWS + 3 * number + part)


@compiled
def join(into: Pointer[c_int32], other: Pointer[c_int32], count: int) -> None:
    """See what another row sees."""
    for u in range(count):
        into[u] = max(into[u], other[u])


@compiled
def move(into: Pointer[c_int32], other: Pointer[c_int32], count: int) -> None:
    """Replace a row by another, which is then empty."""
    for u in range(count):
        into[u] = other[u]
    fill(other, 0, 4 * count)


@compiled
def tick(context: Pointer[Header]) -> None:
    """Let what the thread that runs does from now on be later than what it did."""
    unit = unit_of(context)
    own = clock_row(tables_of(context), unit)
    own[unit] = own[unit] + 1


@compiled
def now(context: Pointer[Header]) -> int:
    """The time of the thread that runs."""
    unit = unit_of(context)
    return clock_row(tables_of(context), unit)[unit]


@compiled
def release(context: Pointer[Header], into: Pointer[c_int32]) -> None:
    """Pass on what the thread that runs has done and seen."""
    tables = tables_of(context)
    join(into, clock_row(tables, unit_of(context)), 2 * tables.units)
    tick(context)


@compiled
def acquire(context: Pointer[Header], source: Pointer[c_int32]) -> None:
    """Let the thread that runs see what was passed on."""
    tables = tables_of(context)
    join(clock_row(tables, unit_of(context)), source, 2 * tables.units)


@compiled
def sees(context: Pointer[Header], unit: int, clock: int) -> bool:
    """Whether the thread that runs sees what a unit did at a time."""
    return clock_row(tables_of(context), unit_of(context))[unit] >= clock


@compiled
def sees_fenced(context: Pointer[Header], unit: int, clock: int) -> bool:
    """Whether the copies and products that the thread that runs starts see what a unit wrote at a time."""
    tables = tables_of(context)
    return clock_row(tables, unit_of(context))[tables.units + unit] >= clock


@compiled
def fence_writes(context: Pointer[Header]) -> None:
    """Let copies and products see what the thread that runs has written, once they see that it did so."""
    unit = unit_of(context)
    tables = tables_of(context)
    own = clock_row(tables, unit)
    own[tables.units + unit] = own[unit]
    tick(context)


@compiled
def advance_agent(context: Pointer[Header], agent: int) -> int:
    """The new time of a unit that copies or multiplies."""
    tables = tables_of(context)
    times = clock_row(tables, tables.threads + tables.blocks * OBJECT_ROWS)
    times[agent] = times[agent] + 1
    return times[agent]
