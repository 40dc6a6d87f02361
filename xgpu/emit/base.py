"""The base of emitters: how a kernel is launched, which thread computes which elements, and its module."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Protocol, Self

from xgpu import ir
from xgpu.analysis.heroes import Form, forms_of
from xgpu.costs.traffic import moved_bytes
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.emit.builders import signless_tensor
from xgpu.fusion.loops.steps import read_by_loop
from xgpu.fusion.memory_reads import Known, arrays_read
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.options import Options
from xgpu.records import dataclass
from xgpu.structure import terminator_of


@dataclass(frozen=True)
class LaunchDimensions:
    """Blocks of the grid and threads of a block, each as (x, y, z)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @classmethod
    def along_x(cls, blocks: int, threads: int) -> Self:
        """Return a launch of blocks along x."""
        return cls((blocks, 1, 1), (threads, 1, 1))

    @classmethod
    def covering(cls, elements: int, threads: int, each: int = 1) -> Self:
        """Return as many blocks along x as have a thread for every ``each`` of some elements."""
        return cls.along_x(-(-elements // (threads * each)), threads)

    @property
    def ranges(self) -> tuple[Interval, Interval]:
        """The numbers of a block's threads and of the blocks along x: the dimensions of the maps of threads."""
        return Interval(0, self.block[0] - 1), Interval(0, self.grid[0] - 1)

    @property
    def thread(self) -> AffineExpr:
        """The number of a thread among all along x, given by the dimensions of a map of threads."""
        return dim(1) * self.block[0] + dim(0)


class Signature(Protocol):
    """The name of a kernel, and the arrays that it reads and writes; ``aliases`` are as those of a `Fusion`."""

    @property
    def name(self) -> str:
        """The kernel's name."""

    @property
    def aliases(self) -> tuple[int, ...]:
        """For each output the number of the input whose memory it takes over, or -1; none if there are no such ones."""

    @property
    def parameter_types(self) -> list[ir.Type]:
        """Signless tensor types of the inputs."""

    @property
    def result_types(self) -> list[ir.Type]:
        """Signless tensor types of the outputs."""


class Launched(Protocol):
    """The launch of a kernel, and the emitter that wrote it."""

    NAME: str

    def launch_dimensions(self) -> LaunchDimensions:
        """Return the launch of the kernel."""


class BodyFacts:
    """Facts of a fusion that are the same for every device, each found once.

    ``heroes`` and ``aliases`` are those of a `Fusion`.
    """

    def __init__(self, body: ir.Block, aliases: Sequence[int]):
        self._body = body
        self._aliases = aliases
        self.heroes = [op.operation for op in body.operations if attributes.HERO in op.operation.attributes]
        self._known: dict[bool, Known] = {False: {}, True: {}}
        self._arrays: dict[tuple[ir.Value, bool], list[tuple[ir.Value, IndexingMap]]] = {}

    @cached_property
    def followers(self) -> Mapping[ir.Value, Form]:
        """The results of the heroes and of their epilogues, each with its form."""
        return forms_of(self._body, self.heroes)

    @cached_property
    def moved_bytes(self) -> int:
        """The bytes that the kernel reads and writes, at most: see `moved_bytes`."""
        aliases = self._aliases or (-1,) * len(terminator_of(self._body).operands)
        return moved_bytes(self._body, aliases, read_by_loop)

    def arrays_read(self, value: ir.Value, with_heroes: bool = False) -> Sequence[tuple[ir.Value, IndexingMap]]:
        """Return the arrays in memory that ``value`` is computed from, and the maps to their elements."""
        key = value, with_heroes
        if key not in self._arrays:
            found = arrays_read(value, known=self._known[with_heroes], with_heroes=with_heroes)
            self._arrays[key] = list(found)
        return self._arrays[key]


@dataclass(frozen=True)
class Fusion:
    """A fusion to emit: a function over StableHLO whose results are what the kernel writes.

    ``aliases`` has, if any result is an update in place, an entry for each: the number of the parameter whose memory
    it takes over, or -1. A fusion on another device, made by ``replace``, has the same ``facts``.
    """

    name: str
    body: ir.Block
    device: Device
    options: Options
    aliases: tuple[int, ...] = ()
    facts: BodyFacts = field(default=None, repr=False, compare=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.facts is None:
            object.__setattr__(self, "facts", BodyFacts(self.body, self.aliases))

    @classmethod
    def of(cls, function: ir.Operation, device: Device, options: Options) -> "Fusion":
        """Return the fusion that a function of level ``fusions`` is."""
        given = function.attributes
        aliases = attributes.int_array_of(given[attributes.ALIASES]) if attributes.ALIASES in given else ()
        name = ir.StringAttr(given["sym_name"]).value
        return cls(name, function.regions[0].blocks[0], device, options, aliases)

    @property
    def heroes(self) -> list[ir.Operation]:
        """The operations that the kernel is built around, in order."""
        return self.facts.heroes

    @property
    def results(self) -> list[ir.Value]:
        """The values that the kernel writes."""
        return list(terminator_of(self.body).operands)

    @property
    def parameter_types(self) -> list[ir.Type]:
        """Signless tensor types of the parameters."""
        return [signless_tensor(value.type) for value in self.body.arguments]

    @property
    def result_types(self) -> list[ir.Type]:
        """Signless tensor types of the results."""
        return [signless_tensor(value.type) for value in self.results]


class Emitter(Protocol):
    """Writes the kernel of a fusion, as its schedule says. One class a file; `family_table` names them all."""

    NAME: str

    def launch_dimensions(self) -> LaunchDimensions:
        """Return the launch of the kernel."""

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return the map from (thread, block) and range variables to the elements of an output that they write."""

    def emit(self) -> None:
        """Write the entry function and the subgraph functions at the current insertion point."""
