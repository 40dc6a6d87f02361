"""The levels of the compiler as a graph: what each level is, and what leads from one to the next."""

from collections import deque
from collections.abc import Container
from functools import cached_property
from typing import Literal

from xgpu.errors import InvalidInput, did_you_mean
from xgpu.records import dataclass

Pipeline = tuple[tuple[str, str], ...]
"""Passes as their command line spells them, each with its reason; ``{target}`` and such are filled in."""


@dataclass(frozen=True)
class Level:
    """One form of a program, or of a kernel of its own. The text of levels of MLIR is accepted back.

    A level ``is_of_some`` if only some programs have it, or only kernels of some emitters.
    """

    name: str
    of: Literal["program", "kernel"]
    is_mlir: bool = True
    is_of_some: bool = False


@dataclass(frozen=True)
class Edge:
    """The way from one level to another: passes, or else a stage that is code of its own or a tool."""

    source: str
    target: str
    passes: Pipeline = ()
    stage: str = ""
    """The stage that does it where no passes do, as documents name it."""


@dataclass(frozen=True)
class LevelGraph:
    """Levels, in the order that texts list them in, and the edges between them."""

    levels: tuple[Level, ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        """Raise ValueError for two levels of one name, and for an edge to no level or by nothing."""
        names = [level.name for level in self.levels]
        if len(set(names)) != len(names):
            raise ValueError(f"two levels have one name: {', '.join(names)}")
        for edge in self.edges:
            if edge.source not in names or edge.target not in names:
                raise ValueError(f"an edge leads from '{edge.source}' to '{edge.target}'; levels: {', '.join(names)}")
            if bool(edge.passes) == bool(edge.stage):
                raise ValueError(f"the edge from '{edge.source}' to '{edge.target}': expected passes or else a stage")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all levels."""
        return tuple(level.name for level in self.levels)

    @cached_property
    def mlir_names(self) -> tuple[str, ...]:
        """The names of the levels whose text is accepted back."""
        return tuple(level.name for level in self.levels if level.is_mlir)

    def level(self, name: str) -> Level:
        """Return the level of this name. Raises InvalidInput if there is none."""
        for level in self.levels:
            if level.name == name:
                return level
        near = did_you_mean(name, self.names)
        raise InvalidInput(f"unknown level {name!r}{near}; the levels are {', '.join(self.names)}")

    def path(self, given: Container[str], wanted: str) -> tuple[Edge, ...] | None:
        """Return the edges from the nearest of the ``given`` levels to ``wanted``, in order; None if there are none.

        No edges lead to a level that is given.
        """
        ways: dict[str, tuple[Edge, ...]] = {wanted: ()}
        waiting = deque([wanted])
        while waiting:
            name = waiting.popleft()
            if name in given:
                return ways[name]
            for edge in self.edges:
                if edge.target == name and edge.source not in ways:
                    ways[edge.source] = (edge, *ways[name])
                    waiting.append(edge.source)
        return None

    def leads(self, source: str, target: str) -> bool:
        """Whether ``target`` is ``source``, or made from it."""
        return self.path((source,), target) is not None
