"""An exported program: its entries with typed arrays, and for each target kernels and the steps that run them.

A package has one program for one or several signatures, the sizes of its arguments. For each signature and target there
is a `Variant`: which kernels, in which order, on which memory. The same steps run on a GPU and on the host.
"""

import math
from collections.abc import Iterable, Iterator
from enum import Enum

from xgpu.device import Device
from xgpu.dtypes import DType, format_spec
from xgpu.records import dataclass

SCRATCH_ALIGNMENT = 128
"""Alignment in bytes of scratch memory and of all that lies in it: what kernels' own memory needs."""


def bytes_of(dtype: DType, shape: tuple[int, ...]) -> int:
    """Return the bytes of an array in a kernel's memory; elements of 2 and 4 bits share bytes."""
    return -(-math.prod(shape) * dtype.storage_bits // 8)


@dataclass(frozen=True)
class PackageArray:
    """An argument or result: its name in C, what the program calls it, shape, type, bytes of alignment."""

    name: str
    source_name: str
    dtype: DType
    shape: tuple[int, ...]
    alignment: int

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return bytes_of(self.dtype, self.shape)

    @property
    def spec(self) -> str:
        """Type and shape, as ``--arg`` takes them."""
        return format_spec(self.dtype, self.shape)


class Base(Enum):
    """The origin of a step's memory: the caller's arguments, results or scratch, or what a slot points to then."""

    ARGUMENT = "argument"
    RESULT = "result"
    SCRATCH = "scratch"
    SLOT = "slot"


@dataclass(frozen=True)
class StepMemory:
    """Memory that a step uses: an argument, result or slot by its number, or scratch by its offset in bytes."""

    base: Base
    number: int


@dataclass(frozen=True)
class LaunchStep:
    """A launch of one of the target's kernels, by number, on one place for each of its parameters.

    ``written`` are the positions of the parameters that it writes.
    """

    kernel: int
    places: tuple[StepMemory, ...]
    written: tuple[int, ...]


@dataclass(frozen=True)
class CopyStep:
    """A copy of so many bytes; none if both places are one."""

    source: StepMemory
    target: StepMemory
    bytes: int


@dataclass(frozen=True)
class ZeroStep:
    """So many bytes set to zero."""

    target: StepMemory
    bytes: int


@dataclass(frozen=True)
class SwapStep:
    """Two slots exchange what they point to: nothing moves in memory."""

    first: int
    second: int


@dataclass(frozen=True)
class LoopStep:
    """Steps that run ``trips`` times, or for as long as the byte at ``condition`` is not 0, which the host reads.

    If neither is known, as often as the s64 at ``count`` says, which the host reads once.
    """

    body: "tuple[Step, ...]"
    trips: int | None
    condition: StepMemory | None
    count: StepMemory | None = None


@dataclass(frozen=True)
class ChoiceStep:
    """Steps of one branch: of the number at ``index``, an s32 that the host reads, or of the last one if it has none.

    If ``is_truth``, a byte is there: the first branch is for 1, the second for 0.
    """

    branches: "tuple[tuple[Step, ...], ...]"
    index: StepMemory
    is_truth: bool


type Step = LaunchStep | CopyStep | ZeroStep | SwapStep | LoopStep | ChoiceStep


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps, each before those inside it."""
    for step in steps:
        yield step
        for inner in inner_steps(step):
            yield from all_steps(inner)


def places_of(step: Step) -> tuple[StepMemory, ...]:
    """Return the memory that a step uses itself, in the order in which the C source takes it."""
    if isinstance(step, LaunchStep):
        return step.places
    if isinstance(step, CopyStep):
        return step.source, step.target
    if isinstance(step, SwapStep):
        return StepMemory(Base.SLOT, step.first), StepMemory(Base.SLOT, step.second)
    if isinstance(step, LoopStep):
        return tuple(each for each in (step.condition, step.count) if each is not None)
    return (step.index,) if isinstance(step, ChoiceStep) else (step.target,)


def inner_steps(step: Step) -> tuple[tuple[Step, ...], ...]:
    """Return the lists of steps inside a step: the body of a loop, or the branches of a choice."""
    if isinstance(step, LoopStep):
        return (step.body,)
    return step.branches if isinstance(step, ChoiceStep) else ()


@dataclass(frozen=True)
class Resources:
    """The resources of a kernel by ptxas: registers of a thread, static shared memory, stack and spills, in bytes."""

    registers: int
    static_shared_bytes: int
    stack_bytes: int
    spill_bytes: int


@dataclass(frozen=True)
class GpuKernel:
    """A kernel for a GPU: PTX, machine code if ptxas was found, and its launch."""

    name: str
    emitter: str
    ptx: str
    cubin: bytes | None
    resources: Resources | None
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...]
    shared_bytes: int
    alignments: tuple[int, ...]


@dataclass(frozen=True)
class Variant:
    """The program for one signature and one target: the steps in order, and the bytes of scratch they need.

    ``in_place`` are pairs of a result and an argument, by number, that may be the same memory: the result begins as a
    copy of the argument, which nothing reads afterwards. ``slots`` is what each slot points to at first.
    """

    steps: tuple[Step, ...]
    scratch_bytes: int
    in_place: tuple[tuple[int, int], ...]
    slots: tuple[StepMemory, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether the host must read values from the GPU to know which steps come next."""
        return any(
            isinstance(step, ChoiceStep) or (isinstance(step, LoopStep) and step.trips is None)
            for step in all_steps(self.steps)
        )


@dataclass(frozen=True)
class PackageSignature:
    """The program for one set of sizes: its arguments and results, and a variant for each target of the package.

    ``in_place`` are the pairs of `Variant` that hold for every target.
    """

    sizes: tuple[int, ...]
    arguments: tuple[PackageArray, ...]
    results: tuple[PackageArray, ...]
    variants: tuple[Variant, ...]

    @property
    def arrays(self) -> tuple[PackageArray, ...]:
        """Arguments and results."""
        return (*self.arguments, *self.results)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that are enough for every target."""
        return max(variant.scratch_bytes for variant in self.variants)

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a result and an argument that may be the same memory, whatever the target."""
        first, *others = (variant.in_place for variant in self.variants)
        return tuple(pair for pair in first if all(pair in other for other in others))


@dataclass(frozen=True)
class TargetCode:
    """The kernels for one target, each once, whichever signatures launch it."""

    target: Device
    kernels: tuple[GpuKernel, ...]


@dataclass(frozen=True)
class PackageHostKernel:
    """A kernel in a host library: its symbols' prefix, and the layout of the memory that its threads need.

    ``frames`` are those of a `HostSource`, ``shared_bytes`` its shared memory.
    """

    symbol: str
    clusters: int
    cluster_blocks: int
    threads: int
    frames: int
    shared_bytes: int
    is_coroutine: bool


@dataclass(frozen=True)
class PackageHostCode:
    """Machine code of the kernels of the first target, in their order, and the triple that it is for."""

    triple: str
    code: bytes
    kernels: tuple[PackageHostKernel, ...]

    @property
    def architecture(self) -> str:
        """The processor's architecture, such as ``x86_64``."""
        return self.triple.split("-")[0]

    def object_path(self, name: str) -> str:
        """The path of the object file in the package of this name."""
        return f"src/{name}_host_{self.architecture}.o"


@dataclass(frozen=True)
class Package:
    """A program for one or several signatures, which differ in the sizes that ``size_names`` names.

    ``name`` is what its C functions begin with, ``source_name`` what the program calls itself. ``host`` is None if it
    has no host library.
    """

    name: str
    source_name: str
    size_names: tuple[str, ...]
    signatures: tuple[PackageSignature, ...]
    targets: tuple[TargetCode, ...]
    host: PackageHostCode | None

    @property
    def waits(self) -> bool:
        """Whether a call may have to wait for values on the GPU."""
        return any(variant.waits for signature in self.signatures for variant in signature.variants)
