"""The time of kernels that are written on tiles, by what a block does in each part of its program.

The constants are those of products that warps multiply, which were measured on an H200. No kernel of another kind was
fitted: the time is an estimate, from which only the order of magnitude is to be taken, and what limits it.
"""

from collections.abc import Sequence

from xgpu.costs.products.warp_products import (
    CACHED,
    CACHED_BYTES_PER_CYCLE,
    IN_TURN,
    SHARED_BYTES_PER_CYCLE,
    SLOWED_CLOCK,
    STEP_CYCLES,
)
from xgpu.device import KIB, Device
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE


@dataclass
class BlockWork:
    """The work of a block in a step, of which there are ``times``, or outside of all steps.

    ``array_bytes`` go from and to arrays, ``shared_bytes`` from and to shared memory. ``tensor_cycles`` are those of
    the tensor cores, ``instructions`` those of all threads. Copies are started ``ahead`` steps before they are needed.
    """

    times: int = 1
    ahead: int = 0
    array_bytes: int = 0
    shared_bytes: int = 0
    tensor_cycles: float = 0.0
    instructions: float = 0.0
    meetings: int = 0

    def cycles(self, target: Device) -> float:
        """Return the cycles in which it is done: what takes longest, and a part of the rest."""
        parts = (
            self.array_bytes / CACHED_BYTES_PER_CYCLE,
            self.shared_bytes / SHARED_BYTES_PER_CYCLE,
            self.tensor_cycles,
            self.instructions / (target.schedulers * WARP_SIZE),
        )
        return max(parts) + IN_TURN * (sum(parts) - max(parts))


def resident_blocks(threads: int, shared_bytes: int, target: Device) -> int:
    """Return how many blocks run at once on a multiprocessor, as far as threads and shared memory allow."""
    return max(1, min(target.max_threads_per_sm // threads, target.shared_bytes_optin // (shared_bytes + KIB)))


def block_program_seconds(parts: Sequence[BlockWork], blocks: int, resident: int, target: Device) -> float:
    """Return how long a kernel of so many blocks takes, of which ``resident`` run at once on a multiprocessor."""
    clock = target.clock * SLOWED_CLOCK
    at_once = max(1, min(resident, -(-blocks // target.sm_count)))
    waves = -(-blocks // (target.sm_count * at_once))
    return target.launch_seconds + waves * sum(_seconds(part, at_once, clock, target) for part in parts)


def _seconds(part: BlockWork, at_once: int, clock: float, target: Device) -> float:
    """Return the time of all steps of ``at_once`` blocks: one waits while others work, and each for its own copies."""
    work = part.cycles(target)
    latency = CACHED * target.memory_latency if part.array_bytes else 0.0
    alone = (work + STEP_CYCLES * part.meetings) / clock
    alone = max(alone, latency / part.ahead) if part.ahead else alone + latency
    return part.times * max(at_once * work / clock, alone)
