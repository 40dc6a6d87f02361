"""Times on a device, mostly as the bytes of memory traffic that take as long.

Kernels are bound by memory: the work of threads counts where it takes longer than what they read and write.
"""

from xgpu.device import Device

_HIDDEN = 2
"""Instructions are taken to cost half of the time that they are issued in: the other half is hidden behind traffic."""


def launch_bytes(target: Device) -> int:
    """Return the bytes that a device moves in the time of one more launch."""
    return round(target.launch_seconds * target.memory_bandwidth)


def bytes_per_instruction(target: Device, threads: int | None = None) -> float:
    """Return the bytes that ``target`` moves while one instruction of a thread is executed.

    In a kernel of few ``threads`` its latency counts, not how many instructions the device issues.
    """
    issued = target.memory_bandwidth / (_HIDDEN * target.issue_rate)
    if threads is None:
        return issued
    return max(issued, target.instruction_latency * target.memory_bandwidth / threads)


def seconds_to_move(moved: int, target: Device) -> float:
    """Return how long a kernel takes that moves so many bytes, at full bandwidth: a launch at least."""
    return max(target.launch_seconds, moved / target.memory_bandwidth)


def seconds_to_execute(instructions: float, threads: int, target: Device) -> float:
    """Return how long ``threads`` take for all their instructions, as they are issued or one after the other."""
    return max(instructions / target.issue_rate, instructions / max(1, threads) * target.instruction_latency)
