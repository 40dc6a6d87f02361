"""The steps of a program, in order: launches of kernels, moves of values, loops and choices, on numbered variables.

The arguments of a program are variables that nothing sets. All others are set by a launch or by a move, those of a
loop's state again in each iteration. A move says that variables have the values of others afterwards, all at once;
whether anything is copied is decided with their memory, by `xgpu.packaging.homes`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field

from xgpu.frontend.signature import ArgumentSpec
from xgpu.packaging.model import bytes_of
from xgpu.records import dataclass
from xgpu.runtime.program import CompiledKernel


@dataclass(frozen=True, eq=False)
class Run:
    """A launch of a kernel on the variables ``inputs``, which sets ``outputs``.

    What an output updates in place is the output itself, which a move before has given the old value.
    """

    kernel: CompiledKernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Move:
    """For each pair of a target and a source, the target has the value that the source had before."""

    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Repeating:
    """The nodes of ``body``: ``trips`` times, or for as long as the variable ``condition`` is true before.

    If neither is known, as often as the variable ``count`` says when the loop begins, an s64.
    """

    body: "tuple[Node, ...]"
    trips: int | None
    condition: int | None
    count: int | None = None


@dataclass(frozen=True, eq=False)
class Branching:
    """One of ``branches``, the one whose number the variable ``index`` has; the last one if there is none.

    If ``index`` is a truth value, the first branch is for true, the second for false.
    """

    branches: "tuple[tuple[Node, ...], ...]"
    index: int
    is_truth: bool


type Node = Run | Move | Repeating | Branching


@dataclass(frozen=True, eq=False)
class Flow:
    """A program as nodes: the first ``arguments`` of the variables, of types ``values``, are its arguments.

    ``result_values`` are the variables that are its results at the end, None for one without elements.
    """

    kernels: tuple[CompiledKernel, ...]
    arguments: int
    values: tuple[ArgumentSpec, ...]
    nodes: tuple[Node, ...]
    result_values: tuple[int | None, ...]
    sizes: tuple[int, ...] = field(init=False)
    """The bytes of each variable."""

    def __post_init__(self) -> None:
        """Compute the sizes."""
        object.__setattr__(self, "sizes", tuple(bytes_of(spec.dtype, spec.shape) for spec in self.values))


def launched(kernel: CompiledKernel, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Iterator[Node]:
    """Yield a launch after the move of what it updates in place."""
    updated = {source: output for output, source in zip(outputs, kernel.aliases, strict=True) if source >= 0}
    if updated:
        yield Move(tuple((output, inputs[source]) for source, output in updated.items()))
    yield Run(kernel, tuple(updated.get(position, number) for position, number in enumerate(inputs)), outputs)


def all_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes, each before those inside it."""
    for node in nodes:
        yield node
        if isinstance(node, Repeating):
            yield from all_nodes(node.body)
        elif isinstance(node, Branching):
            for branch in node.branches:
                yield from all_nodes(branch)


def set_by(nodes: Iterable[Node]) -> set[int]:
    """Return the variables that nodes set."""
    found: set[int] = set()
    for node in all_nodes(nodes):
        if isinstance(node, Run):
            found.update(node.outputs)
        elif isinstance(node, Move):
            found.update(target for target, _ in node.pairs)
    return found
