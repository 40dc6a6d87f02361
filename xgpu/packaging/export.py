"""`export`: a program as a folder that C, C++ and Rust programs build against."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xgpu import ir
from xgpu.device import Device, device
from xgpu.dialects.attributes import BY_THREADS, PRODUCT
from xgpu.errors import InvalidInput, checks_keywords
from xgpu.hlo.source_location import source_of
from xgpu.interface.api import DEFAULT_TARGET, Compiled, compile_to
from xgpu.options import Options, checked_options
from xgpu.packaging.build import make_package
from xgpu.packaging.checks.report import Checked, check_program, described
from xgpu.packaging.model import Package
from xgpu.packaging.write import write_package
from xgpu.records import dataclass
from xgpu.structure import walk


@dataclass(frozen=True)
class Exported:
    """A package that was written: its folder, and what it is; ``str`` says it in a few lines."""

    folder: Path
    package: Package
    checks: tuple[Checked, ...] = ()
    slow: tuple[str, ...] = ()
    """Matrix products that threads compute, without tensor cores or shared memory: operation, type and place."""

    def __str__(self) -> str:
        package = self.package
        has_code = all(kernel.cubin is not None for code in package.targets for kernel in code.kernels)
        names = ", ".join(code.target.name for code in package.targets)
        host = "none" if package.host is None else package.host.architecture
        return "\n".join(
            (
                f"package {package.name} in {self.folder}",
                f"  kernels: {max(len(code.kernels) for code in package.targets)}, for {names}"
                + ("" if has_code else "; some as PTX alone: ptxas was not found, or is too old"),
                f"  scratch: {max(signature.scratch_bytes for signature in package.signatures):,} bytes",
                f"  host library: {host}",
                *(["  waits: a call reads values to go on, and cannot be captured"] if package.waits else []),
                *(f"  slow: {each}: computed without tensor cores" for each in self.slow),
                *(["checked, at level 'emitted':", *map(str, self.checks)] if self.checks else []),
            )
        )


@checks_keywords("xgpu.export")
def export(
    source: Callable[..., Any] | str | Path,
    *args_or_specs: Any,
    to: str | Path,
    name: str | None = None,
    targets: Sequence[str] = (DEFAULT_TARGET,),
    signatures: Sequence[Sequence[Any]] = (),
    options: Options | None = None,
    host: bool = True,
    check: bool = False,
) -> Exported:
    """Compile a program, and write a folder ``to`` that C, C++ and Rust programs use with no Python and no XLA.

    - ``source`` and its arguments are those of `compile`.
    - ``name`` is the prefix of the C functions; the program's name if left out.
    - ``targets`` are the GPUs to have kernels for: as PTX, which drivers also compile for later GPUs, and as machine
      code if ptxas is found. No GPU is needed.
    - ``signatures`` are more tuples of arguments, of other sizes; the package chooses among them at run time.
    - ``host`` adds kernels for the CPU.
    - ``check`` proves, before anything is written, that no access is out of bounds, that every element of each output
      is written once, and that there are no races; where something is not proved, the program runs on the host with
      every access checked. The result's ``checks`` and the manifest say what was proved.

    Kernels compute all matrix products, however long that takes. Raises `Unsupported` for a program that needs XLA,
    with the operations that need it, and `InvalidInput` for signatures that differ in more than sizes, and if ``to`` is
    a folder with other contents.
    """
    chosen = replace(checked_options(options), products="all", control_flow="launches")
    devices = _devices(targets)
    _check_words(to, name, {"host": host, "check": check})
    _check_signatures(signatures)
    given = [tuple(args_or_specs), *map(tuple, signatures)] if args_or_specs or not signatures else [*signatures]
    programs = {target: [_compiled(source, each, target, chosen) for each in given] for target in devices}
    package = make_package(programs, name, host)
    each = [(target.name, program) for target, of_target in programs.items() for program in of_target]
    checks = tuple(check_program(*one) for one in each) if check else ()
    write_package(package, Path(to), described(checks))
    return Exported(Path(to), package, checks, tuple(dict.fromkeys(slow for _, one in each for slow in _slow(one))))


def _devices(targets: Sequence[str]) -> list[Device]:
    if isinstance(targets, str) or not isinstance(targets, Iterable):
        raise InvalidInput(f"targets: expected several names, such as ({DEFAULT_TARGET!r},), got {targets!r}")
    devices = [device(target) for target in targets]
    if not devices or len(set(devices)) < len(devices):
        raise InvalidInput(f"targets: expected one or more names, each once, got {', '.join(targets) or 'none'}")
    if any(each.in_turn for each in devices):
        raise InvalidInput("targets: expected GPUs, got host; packages have kernels for the processor in any case")
    return devices


def _check_words(to: str | Path, name: str | None, switches: Mapping[str, bool]) -> None:
    if not isinstance(to, str | os.PathLike):
        raise InvalidInput(f"to: expected the path of a folder, got {to!r}")
    if name is not None and not isinstance(name, str):
        raise InvalidInput(f"name: expected a word, got {name!r}")
    for switch, value in switches.items():
        if not isinstance(value, bool):
            raise InvalidInput(f"{switch}: expected True or False, got {value!r}")


def _check_signatures(signatures: Any) -> None:
    for each in signatures if isinstance(signatures, Sequence) else (signatures,):
        if isinstance(each, str) or not isinstance(each, Sequence):
            raise InvalidInput(f"signatures: expected tuples of arguments, such as [('f32[8]',)], got {signatures!r}")


def _slow(program: Compiled) -> Iterator[str]:
    """Yield the products of a program that threads compute; one of a few products is a loop like others."""
    for op in () if program.planned is None else walk(program.planned.operation, "stablehlo.dot_general"):
        if PRODUCT in op.attributes and ir.StringAttr(op.attributes[PRODUCT]).value == BY_THREADS:
            place = source_of(op)
            yield f"{op.name} of type {op.results[0].type}" + ("" if place is None else f" ({place})")


def _compiled(
    source: Callable[..., Any] | str | Path, given: Sequence[Any], target: Device, options: Options
) -> Compiled:
    return compile_to("ptx", source, given, target, options)
