"""The work that keeps a device busy: thresholds from which a kernel is split, or has fewer and larger parts."""

from xgpu.device import Device

_BLOCKS = 4
"""Blocks of a multiprocessor that keep it busy until those of others end."""
BYTES_IN_FLIGHT = 64
"""Bytes that a thread reads before it uses the first of them.

With all threads of an H200 that are 128 KiB for each multiprocessor: several times what a latency of 0.7 microseconds
at 4.8 TB/s needs, so that half of the threads suffice where a kernel has fewer.
"""


def blocks_that_fill(target: Device) -> int:
    """Return how many blocks keep all multiprocessors busy until the last ones end."""
    return _BLOCKS * target.sm_count


def elements_of_a_launch(target: Device) -> int:
    """Return how many elements of 4 bytes one block reads while another kernel is launched, up to a power of two.

    A block's threads wait for what they have in flight: on an H200 it reads 70 to 80 GB/s.
    """
    read = target.max_threads_per_block * BYTES_IN_FLIGHT * target.launch_seconds / target.memory_latency
    return 1 << (int(read) // 4 - 1).bit_length()


def seconds_of_blocks(moved: float, blocks: int, target: Device) -> float:
    """Return how long so many blocks of as many threads as one may have take to move so many bytes."""
    each = target.max_threads_per_block * BYTES_IN_FLIGHT / target.memory_latency
    return moved / min(target.memory_bandwidth, max(1, blocks) * each)
