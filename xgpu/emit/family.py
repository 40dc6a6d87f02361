"""The declaration of a family of kernels, each in its own file: how they are recognised, scheduled and emitted.

The first part, `KernelFamily`, is what the planner asks. A plan names a kernel's family, which may have been changed by
hand: before a kernel is scheduled, the family checks that the fusion is one of its own.
"""

from collections.abc import Callable
from typing import Any, Protocol

from xgpu.dialects.attributes import HERO
from xgpu.emit import requirements
from xgpu.emit.base import Emitter, Fusion
from xgpu.emit.requirements import Requirement
from xgpu.emit.schedule import Schedule
from xgpu.fusion.grouping.families import KernelFamily
from xgpu.records import dataclass


class EmitterClass(Protocol):
    """An emitter's class: makes one of a fusion's facts and of its schedule."""

    NAME: str

    def __call__(self, facts: Any, schedule: Any, /) -> Emitter: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Family(KernelFamily):
    """Kernels of one emitter: how the planner recognises them, their schedules, and what their fusions must be.

    ``facts`` makes of a fusion what is known of it, for the schedule and for the emitter; it may raise `InvalidInput`.
    ``results`` and ``aliases`` are checked after the heroes, which must be alike where threads compute them together.
    Heroes that are marked where a family has none do not count. The emitter writes kernels of ``level``.
    """

    emitter: EmitterClass
    facts: Callable[[Fusion], Any]
    schedule: type[Schedule]
    results: Requirement
    aliases: Requirement = requirements.no_aliases
    level: str = "emitted"

    @property
    def name(self) -> str:
        """The emitter's name."""
        return self.emitter.NAME

    def problem(self, fusion: Fusion) -> str | None:
        """Return what ``fusion`` was expected to be, None if it is a fusion of this family."""
        if problem := requirements.outside(fusion):
            return problem
        if self.heroes is not None and self.is_cooperative:
            keys = {self.heroes.key(hero) for hero in fusion.heroes}
            if len(keys) != 1 or None in keys:
                return f"expected its heroes, marked by {HERO}, to be {self.heroes.text}"
        return self.results(fusion) or self.aliases(fusion)
