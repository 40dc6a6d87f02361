"""The number by which a kernel that is written on tiles is launched; all else that is decided stands on its tiles."""

from collections.abc import Iterator
from typing import Any, Self

from xgpu.emit.schedule import Schedule, whole_number
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

EMITTER_NAME = "block"
"""The emitter of these kernels."""


@dataclass(frozen=True)
class BlockProgramSchedule(Schedule):
    """The number of a block's threads."""

    threads: int = whole_number("Threads of a block, whole warps.", most=1024, least=WARP_SIZE)

    @classmethod
    def of(cls, facts: Any) -> Self:
        """Four warps."""
        return cls(threads=4 * WARP_SIZE)

    def range_problems(self) -> Iterator[str]:
        """Yield an error for a number of threads that are no whole warps."""
        yield from super().range_problems()
        if self.threads % WARP_SIZE:
            yield self.wrong("threads", f"a multiple of {WARP_SIZE}")
