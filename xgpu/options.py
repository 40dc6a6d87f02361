"""What a user may choose about a compilation."""

from dataclasses import dataclass

from xgpu.errors import InvalidInput


@dataclass(frozen=True)
class Options:
    """Choices that change the compiled kernels; every field is part of a kernel's identity in a cache.

    ``threads_per_block`` is the block size of the loop emitter. ``max_elements_per_thread`` bounds how many consecutive
    elements a thread computes; None leaves the choice to the emitter. ``opt_level`` is LLVM's. ``deterministic`` asks
    for the same bits from every run where several updates of a scatter have the same place; it costs such scatters more
    kernels and memory, see `xgpu.passes.prepare.order_scatters`.
    """

    threads_per_block: int = 128
    max_elements_per_thread: int | None = None
    opt_level: int = 3
    deterministic: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidInput for what no kernel can have."""
        _check("threads_per_block", self.threads_per_block, 1, 1024)
        _check(
            "max_elements_per_thread", 1 if self.max_elements_per_thread is None else self.max_elements_per_thread, 1
        )
        _check("opt_level", self.opt_level, 0, 3)


def _check(name: str, value: object, least: int, most: int | None = None) -> None:
    if not isinstance(value, int) or value < least or (most is not None and value > most):
        expected = f"a number from {least} on" if most is None else f"a number from {least} to {most}"
        raise InvalidInput(f"option {name}: expected {expected}, got {value!r}")
