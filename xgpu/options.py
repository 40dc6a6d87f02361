"""What a user may choose about a compilation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Choices that change the compiled kernels; every field is part of a kernel's identity in a cache.

    ``threads_per_block`` is the block size of the loop emitter. ``max_elements_per_thread`` bounds how many consecutive
    elements a thread computes; None leaves the choice to the emitter. ``opt_level`` is LLVM's. ``deterministic`` asks
    for the same bits from every run where several updates of a scatter have the same place; it costs such scatters more
    kernels and memory, see `xgpu.fusion.scatters`.
    """

    threads_per_block: int = 128
    max_elements_per_thread: int | None = None
    opt_level: int = 3
    deterministic: bool = False
