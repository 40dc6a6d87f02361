"""From a compiled program, for each signature and target, to a package."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from xgpu.device import Device
from xgpu.driver.kernel import ProgramKernel
from xgpu.dtypes import DType
from xgpu.errors import InvalidInput, ToolError
from xgpu.frontend.signature import ArgumentSpec
from xgpu.interface.api import Compiled
from xgpu.packaging.model import (
    Base,
    ChoiceStep,
    GpuKernel,
    LaunchStep,
    LoopStep,
    Package,
    PackageArray,
    PackageHostCode,
    PackageHostKernel,
    PackageSignature,
    Resources,
    Step,
    TargetCode,
    Variant,
    all_steps,
)
from xgpu.packaging.names import identifier, identifiers, package_name
from xgpu.packaging.program import flow_of
from xgpu.packaging.slots import exchanged
from xgpu.packaging.steps import Steps, make_steps
from xgpu.target.host.context import SHARED
from xgpu.target.host.kernel_source import HostSource
from xgpu.target.host.machine_code import host_source
from xgpu.target.host.object_code import baseline_machine, object_code
from xgpu.target.nvptx.cubin import AssembledKernel, find_ptxas
from xgpu.target.nvptx.entry import entry_of

_TOO_OLD = ("is not defined for option 'gpu-name'", "Unsupported .version", "Unsupported .target")
"""The words in ptxas's errors about a target or a version of PTX that came after it."""

type Programs = Mapping[Device, Sequence[Compiled]]
"""A program compiled for each target, and for each signature in one order."""


def make_package(programs: Programs, name: str | None, with_host: bool) -> Package:
    """Return the package of a program.

    Raises Unsupported if it needs XLA, naming what does, and InvalidInput for signatures that are not of one program.
    """
    first, *_ = programs.values()
    source_name = first[0].source.name
    its_name = package_name(name, source_name)
    codes = {target: _Code(target) for target in programs}
    variants = [
        [codes[target].add(of_target[number]) for target, of_target in programs.items()] for number in range(len(first))
    ]
    arrays = _ArrayNames(first[0], its_name)
    signatures = [_signature(arrays, program, each, codes) for program, each in zip(first, variants, strict=True)]
    size_names, sizes = _sizes([each.arguments for each in signatures], [each.results for each in signatures])
    signatures = [replace(each, sizes=its) for each, its in zip(signatures, sizes, strict=True)]
    targets = tuple(TargetCode(target, tuple(code.kernels)) for target, code in codes.items())
    host = _host_code(its_name, next(iter(codes.values())).compiled) if with_host else None
    return Package(its_name, source_name, size_names, tuple(signatures), targets, host)


class _Code:
    """The kernels for one target, each once, as signatures are added."""

    def __init__(self, target: Device):
        self.target = target
        self.kernels: list[GpuKernel] = []
        self.compiled: list[ProgramKernel] = []
        self._has_ptxas = find_ptxas() is not None

    def add(self, program: Compiled) -> Steps:
        """Add the kernels of a program, and return its steps, which number those of the target."""
        steps = make_steps(flow_of(program))
        launched = {step.kernel for step in all_steps(steps.steps) if isinstance(step, LaunchStep)}
        numbers = {each: self._number(program.kernels[each]) for each in sorted(launched)}
        return replace(steps, steps=_renumbered(steps.steps, numbers))

    def _number(self, kernel: ProgramKernel) -> int:
        made = _gpu_kernel(kernel, self._has_ptxas)
        if made not in self.kernels:
            self.kernels.append(made)
            self.compiled.append(kernel)
        return self.kernels.index(made)


def _renumbered(steps: Sequence[Step], numbers: Mapping[int, int]) -> tuple[Step, ...]:
    """Return steps that launch kernels of other numbers."""
    found: list[Step] = []
    for step in steps:
        if isinstance(step, LaunchStep):
            step = replace(step, kernel=numbers[step.kernel])
        elif isinstance(step, LoopStep):
            step = replace(step, body=_renumbered(step.body, numbers))
        elif isinstance(step, ChoiceStep):
            step = replace(step, branches=tuple(_renumbered(branch, numbers) for branch in step.branches))
        found.append(step)
    return tuple(found)


def _gpu_kernel(kernel: ProgramKernel, has_ptxas: bool) -> GpuKernel:
    entry = entry_of(kernel.ptx, kernel.name)
    assembled = _assembled(kernel) if has_ptxas else None
    return GpuKernel(
        kernel.name,
        kernel.emitter,
        kernel.ptx,
        None if assembled is None else assembled.cubin,
        None if assembled is None else _resources(assembled),
        kernel.grid,
        kernel.block,
        entry.cluster,
        kernel.shared_bytes,
        entry.alignments,
    )


def _assembled(kernel: ProgramKernel) -> AssembledKernel | None:
    """Return a kernel's machine code; None if ptxas is older than the target, or than the PTX version it needs."""
    try:
        return kernel.assembled
    except ToolError as error:
        if any(sign in str(error) for sign in _TOO_OLD):
            return None
        raise


def _resources(assembled: AssembledKernel) -> Resources:
    return Resources(assembled.registers, assembled.shared_bytes, assembled.stack_bytes, assembled.spill_bytes)


class _ArrayNames:
    """Names of arguments and results in C, those of the first signature; none is like the package's own names."""

    def __init__(self, program: Compiled, package: str):
        names = [*(each.name for each in program.arguments), *(each.name for each in program.results)]
        made = identifiers(
            [f"array_{name}" if identifier(name, "array").startswith(f"{package}_") else name for name in names],
            "array",
        )
        self.arguments, self.results = made[: len(program.arguments)], made[len(program.arguments) :]


def _signature(
    names: _ArrayNames, program: Compiled, steps: Sequence[Steps], codes: Mapping[Device, _Code]
) -> PackageSignature:
    if len(program.arguments) != len(names.arguments) or len(program.results) != len(names.results):
        given = f"{len(program.arguments)} arguments and {len(program.results)} results"
        expected = f"{len(names.arguments)} and {len(names.results)}"
        raise InvalidInput(f"signatures of one package differ in sizes alone: expected {expected}, got {given}")
    alignments: dict[tuple[Base, int], int] = {}
    for its, code in zip(steps, codes.values(), strict=True):
        for base, number, alignment in _needed_alignments(its, code.kernels):
            alignments[base, number] = max(alignment, alignments.get((base, number), 1))

    def array(name: str, spec: ArgumentSpec, base: Base, number: int) -> PackageArray:
        alignment = max(alignments.get((base, number), 1), _natural_alignment(spec.dtype))
        return PackageArray(name, spec.name, spec.dtype, spec.shape, alignment)

    arguments = zip(names.arguments, program.arguments, strict=True)
    results = zip(names.results, program.results, strict=True)
    return PackageSignature(
        (),
        tuple(array(name, spec, Base.ARGUMENT, number) for number, (name, spec) in enumerate(arguments)),
        tuple(array(name, spec, Base.RESULT, number) for number, (name, spec) in enumerate(results)),
        tuple(Variant(its.steps, its.scratch_bytes, its.in_place, its.slots) for its in steps),
    )


def _needed_alignments(steps: Steps, kernels: Sequence[GpuKernel]) -> Iterator[tuple[Base, int, int]]:
    groups = exchanged(steps.steps, steps.slots)
    for step in all_steps(steps.steps):
        if isinstance(step, LaunchStep):
            for place, alignment in zip(step.places, kernels[step.kernel].alignments, strict=True):
                for each in groups[place.number] if place.base is Base.SLOT else (place,):
                    yield each.base, each.number, alignment


def _natural_alignment(dtype: DType) -> int:
    bits = dtype.storage_bits // 2 if dtype.kind == "complex" else dtype.storage_bits
    return max(bits // 8, 1)


def _sizes(
    signatures: Sequence[Sequence[PackageArray]], results: Sequence[Sequence[PackageArray]]
) -> tuple[tuple[str, ...], list[tuple[int, ...]]]:
    """Return names for the sizes in which arguments differ, and each signature's; equal sizes have one name."""
    first, *_ = signatures
    for kind, arrays in (("argument", signatures), ("result", results)):
        for several in zip(*arrays, strict=True):
            mine = several[0]
            for other in several:
                if (mine.dtype, len(mine.shape)) != (other.dtype, len(other.shape)):
                    raise InvalidInput(
                        f"signatures of one package differ in sizes alone: {kind} '{mine.source_name}' is {mine.spec} "
                        f"in one and {other.spec} in another"
                    )
    named: dict[tuple[int, ...], str] = {}
    for number, argument in enumerate(first):
        for dimension in range(len(argument.shape)):
            sizes = tuple(arguments[number].shape[dimension] for arguments in signatures)
            if len(set(sizes)) > 1:
                named.setdefault(sizes, f"{argument.name}_dim{dimension}")
    chosen = [tuple(sizes[number] for sizes in named) for number in range(len(signatures))]
    if len(set(chosen)) < len(signatures):
        raise InvalidInput("two signatures have the same sizes: expected each once")
    return identifiers(named.values(), "size", [each.name for each in (*first, *results[0])]), chosen


def _host_code(name: str, kernels: Sequence[ProgramKernel]) -> PackageHostCode:
    sources = {
        f"{name}_kernel{number}": host_source(kernel.host_module(), kernel.name, kernel.grid, kernel.block)
        for number, kernel in enumerate(kernels)
    }
    described = tuple(_host_kernel(symbol, source) for symbol, source in sources.items())
    return PackageHostCode(baseline_machine().triple, object_code(sources), described)


def _host_kernel(symbol: str, source: HostSource) -> PackageHostKernel:
    blocks, threads = (_product(each) for each in (source.cluster, source.block))
    shared_bytes = max(source.shared_end - SHARED, 0)
    return PackageHostKernel(symbol, source.clusters, blocks, threads, source.frames, shared_bytes, source.is_coroutine)


def _product(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] * shape[2]
