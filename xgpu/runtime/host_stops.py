"""The error of a stopped launch on the host whose threads wait at different places: who waits for what."""

import ctypes
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from xgpu.errors import Fault
from xgpu.records import dataclass
from xgpu.target.host.block.state import (
    DEADLOCK,
    DIVERGED,
    GROUP_THREADS,
    NAMED_BARRIERS,
    NO_MBARRIER,
    OVERRUN_STOP,
    TOO_MANY,
    Barrier,
    BlockState,
    Mbarrier,
    Thread,
    Warp,
    WarpGroup,
)
from xgpu.target.host.block.tensor_maps import BOX_ALIGNMENT
from xgpu.target.host.block_driver import position
from xgpu.target.host.context import WARP, Header
from xgpu.target.host.labels import SourceOperation
from xgpu.target.host.machine_code import HostCode

_RANK = "the rank of a block of the cluster, got {value}"
_MAP = "a tensor map that xgpu.encode_tensor_map has written"
_SHARED = "in the block's shared memory"
_BOX = f"{_MAP} for as many coordinates, and its box {_SHARED} at a multiple of {BOX_ALIGNMENT} bytes"
_BULK = f"multiples of 16 bytes, one place {_SHARED}, one of an array, got {{value}} bytes"
_EXPECTED = {
    "async copy": f"aligned places, one {_SHARED}, one of an array, and no more valid bytes than all, got {{value}}",
    "bulk load": _BULK,
    "bulk store": _BULK,
    "tensor load": f"{_BOX}, got {{value}}",
    "tensor load multicast": f"{_BOX}, and bits for blocks of the cluster, got {{value}}",
    "tensor store": f"{_BOX}, got {{value}}",
    "acquire tensor map": _MAP,
    "encode tensor map": "64 bytes or more as alignment, and an array as large as it says",
    "mbarrier init": f"8 bytes {_SHARED}, so aligned",
    "mbarrier arrive remote": _RANK,
    "cluster pointer": _RANK,
    "cluster arrive": "a wait after each arrival",
    "cluster wait": "an arrival before",
    "named barrier": "a number from 1 to 15, and as many threads as others say, got number {value}",
    "warpgroup mma": f"whole warp groups of 128 threads, operands at multiples of 16 {_SHARED}, got {{value}} threads",
}
"""The expectations of operations whose operands stopped a launch."""


@dataclass(frozen=True)
class _Block:
    """A block of the cluster that stopped: its index in the grid, and its state."""

    index: tuple[int, int, int]
    state: BlockState


def stopped(code: HostCode, header: Header) -> Fault:
    """Return why the launch stopped in whose first context a header is."""
    blocks = _blocks(code, header)
    if header.stop == DEADLOCK:
        return _deadlock(code, blocks)
    block = blocks[header.stop_rank]
    name, place = code.waits[header.stop_site - 1]
    thread = position(header.stop_thread, code.block)
    message = f"thread {thread} of block {block.index} {_reason(code, header, name)}"
    kind = "overrun" if header.stop == OVERRUN_STOP else "misused"
    fault = Fault(kind, message, place.text, place.location, thread, block.index)
    if header.stop == DIVERGED:
        return with_other(replace(fault, kind="diverged"), code.waits[header.stop_value - 1][1])
    return fault


def with_other(fault: Fault, place: SourceOperation) -> Fault:
    """Return a fault that another operation takes part in, whose place is given."""
    return replace(fault, other=place.text, other_location=place.location)


def _reason(code: HostCode, header: Header, name: str) -> str:
    if header.stop == DIVERGED:
        who = "warp group" if name.startswith("warpgroup") else "warp"
        return f"is at {name}, and other threads of its {who} are at {code.waits[header.stop_value - 1][0]}"
    if header.stop == NO_MBARRIER:
        return f"expects an mbarrier at byte {header.stop_value} of shared memory, where none was made"
    if header.stop == TOO_MANY:
        return f"is at {name} while {header.stop_value} of them are under way, the most that the host keeps"
    if header.stop == OVERRUN_STOP:
        return f"arrives at an mbarrier whose phase has all its {header.stop_value} arrivals, but not its bytes"
    expected = _EXPECTED.get(name, "operands that the hardware takes, got {value}").format(value=header.stop_value)
    return f"cannot go on at {name}, which expects {expected}"


def _blocks(code: HostCode, header: Header) -> list[_Block]:
    first = BlockState.from_address(header.state)
    found = []
    for rank in range(math.prod(code.cluster)):
        context = Header.from_address(first.first + rank * first.stride)
        found.append(_Block(position(context.block, code.grid), BlockState.from_address(context.state)))
    return found


@dataclass(frozen=True)
class _Waiting:
    """Threads of a block that wait at one site for one word to change."""

    block: _Block
    site: int
    word: int
    threads: tuple[int, ...]


def _deadlock(code: HostCode, blocks: Sequence[_Block]) -> Fault:
    groups = [group for block in blocks for group in _waiting(block)]
    first = groups[0]
    _, place = code.waits[first.site - 1]
    lines = [f"no thread can go on: {_described(code, first)}"]
    lines += [f"  and {_described(code, group)}" for group in groups[1:]]
    ended = sum(thread.site == 0 for block in blocks for thread in _threads(block))
    if ended:
        lines.append(f"  and {ended} threads have ended")
    thread = position(first.threads[0], code.block)
    fault = Fault("deadlock", "\n".join(lines), place.text, place.location, thread, first.block.index)
    return with_other(fault, code.waits[groups[1].site - 1][1]) if len(groups) > 1 else fault


def _threads(block: _Block) -> Sequence[Thread]:
    count = int(block.state.count)
    address = ctypes.cast(block.state.threads, ctypes.c_void_p).value or 0
    return list((Thread * count).from_address(address))


def _waiting(block: _Block) -> Iterator[_Waiting]:
    """Yield the threads that wait, by site and word, in the order of the first of each."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, thread in enumerate(_threads(block)):
        if thread.site:
            word = ctypes.cast(thread.waits_for, ctypes.c_void_p).value or 0
            found[thread.wait_site, word].append(number)
    for (site, word), numbers in found.items():
        yield _Waiting(block, site, word, tuple(numbers))


def _described(code: HostCode, group: _Waiting) -> str:
    name, _ = code.waits[group.site - 1]
    who = f"thread {position(group.threads[0], code.block)} of block {group.block.index}"
    more = f" and {len(group.threads) - 1} others" if len(group.threads) > 1 else ""
    waits = "waits" if len(group.threads) == 1 else "wait"
    return f"{who}{more} {waits} at {name} for {_awaited(code, group)}"


def _awaited(code: HostCode, group: _Waiting) -> str:
    """Say what a word is that threads wait for, and what is missing."""
    state = group.block.state
    base = ctypes.addressof(state)
    for number in range(NAMED_BARRIERS):
        if group.word == base + BlockState.barriers.offset + number * ctypes.sizeof(Barrier):
            barrier = state.barriers[number]
            what = f"barrier {number}" if number else "the block's barrier"
            return f"{what}: {barrier.count} of {barrier.expected} threads have come"
    for number in range(state.mbarrier_count):
        made = state.mbarriers[number]
        if group.word == ctypes.addressof(made) + Mbarrier.phase.offset:
            return _mbarrier(state, made)
    warp, rest = divmod(group.word - (ctypes.cast(state.warps, ctypes.c_void_p).value or 0), ctypes.sizeof(Warp))
    if not rest and 0 <= warp < -(-state.count // WARP):
        return _missing(code, group, range(warp * WARP, min((warp + 1) * WARP, state.count)), "lanes of its warp")
    start = ctypes.cast(state.groups, ctypes.c_void_p).value or 0
    number, rest = divmod(group.word - start, ctypes.sizeof(WarpGroup))
    if not rest and 0 <= number < -(-state.count // GROUP_THREADS):
        members = range(number * GROUP_THREADS, (number + 1) * GROUP_THREADS)
        return _missing(code, group, members, "threads of its warp group")
    first = BlockState.from_address(Header.from_address(state.first).state)
    return f"the cluster's barrier: {first.cluster.count} of {state.blocks * state.count} threads have come"


def _mbarrier(state: BlockState, made: Mbarrier) -> str:
    place = made.address - (state.shared or 0)
    missing = [f"{made.pending - made.deferred} of {made.count} arrivals"] if made.pending > made.deferred else []
    if made.bytes != made.under_way:
        missing.append(f"{made.bytes} bytes are expected and copies of {made.under_way} were started")
    what = " and ".join(missing) or "the other parity"
    return f"phase {made.phase} of the mbarrier at byte {place} of shared memory, where there is missing: {what}"


def _missing(code: HostCode, group: _Waiting, members: range, what: str) -> str:
    threads = _threads(group.block)
    absent = [number for number in members if number < len(threads) and number not in group.threads]
    who = ", ".join(str(position(number, code.block)) for number in absent[:3])
    return f"{len(absent)} {what}, {who}{' ...' if len(absent) > 3 else ''}"
